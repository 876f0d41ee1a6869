"""python docs/make_page.py    the page that the handbook shows in place, in site/page: the demo, without a server

The demo is the one that the tests of the handbook keep. What runs it in a browser is fetched once, with a network;
without one the handbook is built without that page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

import keep_demo  # noqa: E402

import glassformer as gf  # noqa: E402
from glassformer.common.errors import GlassformerError  # noqa: E402
from glassformer.deploy.export.runtime import fetch_if_missing  # noqa: E402

PLACE = ROOT / "site" / "page"


def main() -> None:
    try:
        fetch_if_missing()
    except GlassformerError as error:
        sys.exit(f"the handbook gets no page to try: {error}")
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        shutil.copytree(keep_demo.KEPT, demo)
        keep_demo.cast(demo / keep_demo.WEIGHTS, keep_demo.WHOLE)
        made = gf.export(demo, "page", PLACE, force=True)
    print(f"{PLACE.relative_to(ROOT)}: {made.size / 1e6:.1f} MB, its values as those of gf.trace")


if __name__ == "__main__":
    main()
