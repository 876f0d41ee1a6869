"""Small random translators: a bundle, and a folder in the layout of Marian."""

import json
import random
from pathlib import Path

import torch

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights import bundle

WORDS = ["the", "a", "small", "red", "house", "dog", "cat", "river", "runs", "sees", "over", "bright", "and", "two"]
LIMIT = 40
SIZES = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
}  # fmt: skip


def train_pieces(folder: Path, name: str, lines: list[str], vocab_size: int, kind: str = "unigram") -> list[str]:
    """The pieces of a SentencePiece model of these lines, which is written to `name`.model."""
    import sentencepiece
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(folder / name), vocab_size=vocab_size, model_type=kind,
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    return [line.split("\t")[0] for line in (folder / f"{name}.vocab").read_text(encoding="utf-8").splitlines()]


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))).capitalize() + "." for _ in range(count)]


def tiny_bundle(folder: Path) -> Path:
    """A random model with a real vocabulary: its output is nonsense, but always the same."""
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
    """Two small SentencePiece models, the ids of their pieces, and a random model."""
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir()
    source = train_pieces(folder, "source", sentences(400, 1), 90)
    target = train_pieces(folder, "target", [line.upper() for line in sentences(400, 2)], 80)
    for side in ("source", "target"):
        (folder / f"{side}.model").rename(folder / f"{side}.spm")

    def numbered(pieces: list[str]) -> dict[str, int]:
        kept = [piece for piece in dict.fromkeys(pieces) if piece not in ("<unk>", "<s>", "</s>")]
        order = ["</s>", "<unk>", *reversed(kept), ">>xyz<<", "<pad>"]
        return {piece: id for id, piece in enumerate(order)}

    vocabularies = [numbered(source + target)] if shared else [numbered(source), numbered(target)]
    for name, vocabulary in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps(vocabulary), encoding="utf-8")
    if not shared:
        (folder / "tokenizer_config.json").write_text('{"separate_vocabs": true}', encoding="utf-8")
    pad, share = vocabularies[-1]["<pad>"], {"share_encoder_decoder_embeddings": shared}
    sizes = SIZES | {"vocab_size": len(vocabularies[0]), "decoder_vocab_size": len(vocabularies[-1])}
    ids = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad, "forced_eos_token_id": 0}
    torch.manual_seed(0)
    MarianMTModel(MarianConfig(**sizes, **ids, **share, init_std=0.6)).save_pretrained(folder)
    return folder
