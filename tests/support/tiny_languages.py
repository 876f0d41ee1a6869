"""Tiny random translators of many languages, with real SentencePiece files, as transformers saves and reads them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch

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


def write(kind: str, folder: Path) -> tuple[Any, Any]:
    """A folder, and what transformers makes of it: tokenizer and model."""
    import sentencepiece
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400, seed=1)),
        model_prefix=str(folder / "tiny"),
        vocab_size=90,
        model_type="bpe" if kind == "nllb" else "unigram",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "tiny.model").rename(folder / "sentencepiece.bpe.model")
    pieces = [line.split("\t")[0] for line in (folder / "tiny.vocab").read_text(encoding="utf-8").splitlines()]
    (folder / "tiny.vocab").unlink()
    told: dict[str, Any] = {"tokenizer_class": CLASSES[kind]}
    if kind == "m2m100":
        numbered = ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:]]
        (folder / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(numbered)}))
        told["additional_special_tokens"] = [f"__{code}__" for code in multilingual.M2M100]
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    tokenizer = getattr(transformers, CLASSES[kind]).from_pretrained(folder)
    if kind == "nllb":  # from pieces alone, transformers knows no languages; the published folder has tokenizer.json
        rules = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
        numbers = {piece: id for piece, id in rules["vocab"].items() if piece != "<mask>"}
        numbers |= {code: len(numbers) + i for i, code in enumerate([*multilingual.NLLB, "<mask>"])}
        tokenizer = transformers.NllbTokenizer(vocab=numbers, merges=[tuple(pair) for pair in rules["merges"]])
        tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size = {
        "vocab_size": len(pieces) + len(multilingual.NLLB) + 2, "d_model": 32, "encoder_layers": 1,
        "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "max_position_embeddings": 64, "init_std": 0.4, "pad_token_id": 1, "bos_token_id": 0,
        "eos_token_id": 2, "decoder_start_token_id": 2,
    }  # fmt: skip
    if kind.startswith("mbart"):
        model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(**size, forced_eos_token_id=2))
    else:
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**size))
    with torch.no_grad():  # let it speak, rather than name languages
        model.model.shared.weight[len(pieces) + 1 :] *= 0.2
        model.model.shared.weight[[0, 1, 3]] *= 0.2
        end = model.model.shared.weight[2]
        model.model.decoder.layer_norm.bias += 1.8 * end / end.norm()  # and come to an end, now and then
    model.eval().save_pretrained(folder)
    return tokenizer, model
