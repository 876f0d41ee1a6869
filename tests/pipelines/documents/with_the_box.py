"""The structure of a hundred real documents after a real translation:
python tests/pipelines/documents/with_the_box.py en-de de

Prints for Markdown and HTML how many are the same, and how often markup had to be kept by translating in pieces. A
third argument is a part of the names of the documents to take.
"""

import sys
import time
from pathlib import Path

import parsed
import real

from glassformer.pipelines.documents import translate_bytes
from glassformer.pipelines.documents.segments import DocumentStats
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator


def main(model, target, part=""):
    source = "en" if target != "en" else model.replace("en", "").strip("-")
    translator = TextTranslator(Translator.load(model, precision="int8", to=target), source=source, target=target)
    kinds = (
        (".md", real.markdown_files(), parsed.markdown_structure),
        (".html", real.html_pages(), parsed.html_structure),
    )
    for kind, documents, structure in kinds:
        stats, same, count, begun = DocumentStats(), 0, 0, time.monotonic()
        for name, text in documents.items():
            if part not in name or name.startswith("docs/zh"):
                continue
            made, one = translate_bytes(Path(f"x{kind}"), text.encode(), translator)
            right = structure(made.decode()) == structure(text)
            same, count = same + right, count + 1
            stats.add(one)
            print(f"{'same' if right else 'NOT THE SAME'}  {name}  {one}", flush=True)
        print(f"{kind}: {same} of {count} the same; {stats}; {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
