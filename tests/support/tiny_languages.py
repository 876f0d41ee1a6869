"""Tiny random translators of many languages, with real SentencePiece files, as transformers saves and reads them."""

import json
import random
from pathlib import Path
from typing import Any

import torch
from tiny_translators import SIZES, train_pieces

from glassformer.weights.pretrained import multilingual

CLASSES = {
    "nllb": "NllbTokenizer", "m2m100": "M2M100Tokenizer", "mbart": "MBartTokenizer", "mbart50": "MBart50Tokenizer",
}  # fmt: skip
WORDS = [
    "the", "a", "small", "green", "house", "cat", "dog", "sees", "near", "under", "river", "and", "two", "three",
    "birds", "über", "größer", "naïve", "well.", "ok,", "(yes)",
]  # fmt: skip


def sentences(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 6))) for _ in range(count)]


def write_multilingual(kind: str, folder: Path) -> tuple[Any, Any]:
    """Write a folder; its tokenizer and model, as transformers reads them, come back."""
    import transformers

    folder.mkdir()
    pieces = train_pieces(folder, "tiny", sentences(400, seed=1), 90, "bpe" if kind == "nllb" else "unigram")
    (folder / "tiny.model").rename(folder / "sentencepiece.bpe.model")
    (folder / "tiny.vocab").unlink()
    settings: dict[str, Any] = {"tokenizer_class": CLASSES[kind]}
    if kind == "m2m100":
        numbered = ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:]]
        (folder / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(numbered)}))
        settings["additional_special_tokens"] = [f"__{code}__" for code in multilingual.M2M100]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = getattr(transformers, CLASSES[kind]).from_pretrained(folder)
    if kind == "nllb":  # from pieces alone, transformers knows no languages; the published folder has tokenizer.json
        rules = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
        numbers = {piece: id for piece, id in rules["vocab"].items() if piece != "<mask>"}
        numbers |= {code: len(numbers) + i for i, code in enumerate([*multilingual.NLLB, "<mask>"])}
        tokenizer = transformers.NllbTokenizer(vocab=numbers, merges=[tuple(pair) for pair in rules["merges"]])
        tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size = SIZES | {
        "vocab_size": len(pieces) + len(multilingual.NLLB) + 2, "init_std": 0.4, "pad_token_id": 1, "bos_token_id": 0,
        "eos_token_id": 2, "decoder_start_token_id": 2,
    }  # fmt: skip
    if kind.startswith("mbart"):
        model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(**size, forced_eos_token_id=2))
    else:
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**size))
    with torch.no_grad():  # it writes pieces rather than languages
        model.model.shared.weight[len(pieces) + 1 :] *= 0.2
        model.model.shared.weight[[0, 1, 3]] *= 0.2
        end = model.model.shared.weight[2]
        model.model.decoder.layer_norm.bias += 1.8 * end / end.norm()  # and ends now and then
    model.eval().save_pretrained(folder)
    return tokenizer, model
