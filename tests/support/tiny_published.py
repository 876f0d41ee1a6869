"""Tiny random models of one stack as Hugging Face saves them, each with its own tokenizer."""

import warnings
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = ["Paris is the capital of France.", "Berlin is the capital of Germany.", "The river of the city is long."]


def gpt2(folder: Path) -> Any:
    """GPT-2 with a byte-level BPE: a leading space is part of a word, and no mark stands around a text."""
    from transformers import GPT2Config, GPT2LMHeadModel

    rust = tokenizers.Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    rust.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    )
    torch.manual_seed(3)
    size = rust.get_vocab_size()
    config = GPT2Config(
        vocab_size=size, n_embd=32, n_head=4, n_layer=2, n_positions=64, bos_token_id=0, eos_token_id=0,
        initializer_range=0.3,
    )  # fmt: skip
    return saved(GPT2LMHeadModel(config), rust, folder)


def bert(folder: Path) -> Any:
    """BERT with WordPiece in lower case, [CLS] before a text and [SEP] after it."""
    from transformers import BertConfig, BertForMaskedLM

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    rust = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rust.normalizer = normalizers.BertNormalizer(lowercase=True)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    rust.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=90, special_tokens=marks))
    rust.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    torch.manual_seed(4)
    config = BertConfig(
        vocab_size=rust.get_vocab_size(), hidden_size=32, num_attention_heads=4, num_hidden_layers=2,
        intermediate_size=48, max_position_embeddings=40, pad_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    return saved(BertForMaskedLM(config), rust, folder)


def vit(folder: Path) -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(5)
    names = {0: "cat", 1: "dog", 2: "bird"}
    config = ViTConfig(
        hidden_size=32, num_attention_heads=4, num_hidden_layers=2, intermediate_size=48, image_size=16, patch_size=4,
        id2label=names, label2id={name: id for id, name in names.items()}, initializer_range=0.3,
    )  # fmt: skip
    return saved(ViTForImageClassification(config), None, folder)


def saved(model: Any, rust: tokenizers.Tokenizer | None, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.eval().save_pretrained(folder)
    if rust is not None:
        rust.save(str(folder / "tokenizer.json"))
    return model
