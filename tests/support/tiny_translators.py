"""Small random translators: a bundle, and a folder as Marian's."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights import bundle

WORDS = ["the", "a", "small", "red", "house", "dog", "cat", "river", "runs", "sees", "over", "bright", "and", "two"]
LIMIT = 40


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))).capitalize() + "." for _ in range(count)]


def tiny_bundle(folder: Path) -> Path:
    """A random model with a real vocabulary: what it says is nonsense, but always the same nonsense."""
    lines = sentences(300, seed=1)
    tokenizer = Tokenizer.train(zip(lines, lines, strict=True), TokenizerOptions(vocab_size=340))
    sizes = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 1, "max_length": LIMIT, "tied": False}
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, seed=3, **sizes))
    with torch.no_grad():  # livelier than fresh weights, which say one word whatever they read
        for weight in model.parameters():
            weight *= 3
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return folder


def write_marian(folder: Path, shared: bool) -> Path:
    """Two small SentencePiece models, the numbering of their pieces, and a random model."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder.mkdir()
    tables = []
    for side, seed in (("source", 1), ("target", 2)):
        lines = [line if side == "source" else line.upper() for line in sentences(400, seed)]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / side),
            vocab_size=90 if side == "source" else 80,
            minloglevel=2,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        table = (folder / f"{side}.vocab").read_text(encoding="utf-8").splitlines()
        tables.append([line.split("\t")[0] for line in table])
    source, target = tables

    def numbered(pieces: list[str]) -> dict[str, int]:
        kept = [piece for piece in dict.fromkeys(pieces) if piece not in ("<unk>", "<s>", "</s>")]
        order = ["</s>", "<unk>", *reversed(kept), ">>xyz<<", "<pad>"]
        return {piece: id for id, piece in enumerate(order)}

    vocabularies = [numbered(source + target)] if shared else [numbered(source), numbered(target)]
    for name, vocabulary in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps(vocabulary), encoding="utf-8")
    if not shared:
        (folder / "tokenizer_config.json").write_text('{"separate_vocabs": true}', encoding="utf-8")
    pad = vocabularies[-1]["<pad>"]
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=len(vocabularies[0]),
        decoder_vocab_size=len(vocabularies[-1]),
        share_encoder_decoder_embeddings=shared,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
        init_std=0.6,
    )
    MarianMTModel(config).save_pretrained(folder)
    return folder
