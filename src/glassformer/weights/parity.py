"""The parity table: our parts against Hugging Face transformers, tensor for tensor.

`python -m glassformer.weights.parity` makes small random models of every family, saves them, loads them with
`load_model` and prints the largest difference between any two logits. Each family also has controls: one part of it
is broken on purpose, and the difference must then exceed the bar, which shows that the bar can tell.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from glassformer.common.errors import GlassformerError
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.model.attention import Attention
from glassformer.model.embedding import Rotary, sinusoid
from glassformer.model.layer import Residual
from glassformer.weights.pretrained.family import Settings
from glassformer.weights.pretrained.llama import swapped
from glassformer.weights.pretrained.loader import FAMILIES, load_model
from glassformer.weights.pretrained.marian import sines_first

# Width, pieces of the vocabulary; then of encoder and decoder: heads, feed-forward widths, layers.
SEQ2SEQ = (
    (32, 97, (4, 4), (64, 64), (2, 2)),
    (48, 131, (6, 3), (80, 112), (3, 1)),
    (40, 61, (5, 2), (33, 160), (1, 4)),
)

ROPES: list[dict[str, Any]] = [
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 16},
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 3.0},
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One random model: its family, a name for the table, the settings Hugging Face builds it from."""

    family: str
    name: str
    settings: dict[str, Any]
    seed: int
    untied: bool = False


SIZES = {"hidden_size": (32, 48, 40), "num_attention_heads": (4, 6, 2), "num_hidden_layers": (2, 3, 1),
         "intermediate_size": (64, 50, 160)}  # fmt: skip
T5 = {
    "vocab_size": (83, 84, 85, 86), "d_model": (32, 48, 40, 64), "d_kv": (8, 6, 16, 10), "num_heads": (4, 3, 5, 2),
    "d_ff": (64, 96, 40, 128), "num_layers": (2, 1, 3, 2), "num_decoder_layers": (2, 3, 1, 2),
    "feed_forward_proj": ("relu", "gated-gelu", "relu", "gated-silu"),
    "tie_word_embeddings": (True, False, False, True),
    "relative_attention_num_buckets": (32, 16, 8, 32), "relative_attention_max_distance": (128, 20, 12, 64),
}  # fmt: skip
BERT = SIZES | {"vocab_size": (101, 102, 103), "max_position_embeddings": 64, "type_vocab_size": (2, 3, 1),
                "hidden_act": ("gelu", "relu", "gelu_new")}  # fmt: skip
ROBERTA = BERT | {"hidden_act": "gelu", "pad_token_id": 1}
DISTILBERT = {
    "vocab_size": (97, 96, 95), "dim": (32, 48, 40), "n_heads": (4, 6, 2), "n_layers": (2, 3, 1),
    "hidden_dim": (64, 50, 160), "max_position_embeddings": 64, "activation": ("gelu", "relu", "gelu"),
}  # fmt: skip
VIT = SIZES | {"image_size": 16, "patch_size": (4, 8, 2), "num_labels": (7, 5, 11), "qkv_bias": (True, False, True),
               "initializer_range": 0.1}  # fmt: skip
GPT2 = {
    "vocab_size": (89, 90, 91), "n_embd": (32, 48, 40), "n_head": (4, 3, 5), "n_layer": (2, 4, 1),
    "n_inner": (None, 100, 77), "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0,
    "scale_attn_by_inverse_layer_idx": (False, True, False),
}  # fmt: skip
LLAMA = SIZES | {
    "vocab_size": (73, 74, 75), "num_key_value_heads": (2, 6, 1), "head_dim": (8, 8, 12),
    "intermediate_size": (56, 80, 33), "max_position_embeddings": 64, "tie_word_embeddings": (False, True, False),
    "initializer_range": 0.1, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def column(table: dict[str, Any], i: int) -> dict[str, Any]:
    """The settings of one case; a setting without a tuple is the same in all."""
    return {name: value[i] if isinstance(value, tuple) else value for name, value in table.items()}


def cases() -> list[Case]:
    table: list[Case] = []
    for i, (width, vocab, (heads, dheads), (ffn, dffn), (depth, ddepth)) in enumerate(SEQ2SEQ):
        shared = {
            "vocab_size": vocab, "d_model": width, "encoder_attention_heads": heads, "decoder_attention_heads": dheads,
            "encoder_ffn_dim": ffn, "decoder_ffn_dim": dffn, "encoder_layers": depth, "decoder_layers": ddepth,
            "max_position_embeddings": 64, "scale_embedding": i != 1,
        }  # fmt: skip
        name = f"d{width} heads {heads}+{dheads} layers {depth}+{ddepth}"
        marian = {"pad_token_id": 60, "eos_token_id": 0, "decoder_start_token_id": 60, "activation_function": "swish"}
        table.append(Case("marian", name, shared | marian, i))
        bart = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "activation_function": "gelu"}
        table.append(Case("bart", name, shared | bart, 10 + i))
        table.append(Case("mbart", name, shared | bart | {"activation_function": ("gelu", "relu", "gelu")[i]}, 50 + i))
        m2m100 = bart | {"pad_token_id": i % 2, "activation_function": "relu"}
        table.append(Case("m2m_100", name, shared | m2m100, 60 + i))
        pegasus = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "activation_function": "relu"}
        table.append(Case("pegasus", name, shared | pegasus, 70 + i))
    apart = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 71, "activation_function": "relu"}
    table.append(Case("marian", "separate vocabularies 97+71", table[0].settings | apart, 4))
    for i in range(4):
        t5 = column(T5, i)
        untied = not t5["tie_word_embeddings"]
        table.append(Case("t5", f"{t5['feed_forward_proj']}, {'untied' if untied else 'tied'}", t5, 20 + i, untied))
    for i in range(3):
        bert, roberta, vit, gpt2, llama = (column(one, i) for one in (BERT, ROBERTA, VIT, GPT2, LLAMA))
        name = f"d{bert['hidden_size']} layers {bert['num_hidden_layers']}"
        table.append(Case("bert", name, bert, 30 + i))
        table.append(Case("roberta", name, roberta, 90 + i))
        table.append(Case("xlm-roberta", name, roberta | {"type_vocab_size": 1, "vocab_size": 160 - i}, 100 + i))
        table.append(Case("distilbert", name, column(DISTILBERT, i), 110 + i))
        table.append(Case("vit", f"d{vit['hidden_size']} patches of {vit['patch_size']}", vit, 120 + i))
        table.append(Case("gpt2", f"d{gpt2['n_embd']} layers {gpt2['n_layer']}", gpt2, 40 + i))
        name = f"d{llama['hidden_size']} heads {llama['num_attention_heads']}/{llama['num_key_value_heads']}"
        for family, rope, more in (
            ("llama", ROPES[i], {}),
            ("mistral", ROPES[1], {"sliding_window": (None, 64, 100)[i]}),
            ("qwen2", ROPES[(1, 2, 0)[i]], {}),
        ):
            rope = {"rope_theta": (10_000.0, 500.0, 1e6)[i]} | rope
            table.append(Case(family, f"{name}, {rope['rope_type']}", llama | more | {"rope_parameters": rope}, 80 + i))
    return sorted(table, key=lambda case: list(FAMILIES).index(case.family))


def hugging_face() -> Any:
    """The library transformers, silent and offline."""
    if find_spec("transformers") is None:
        raise GlassformerError("transformers is the peer to compare with: pip install transformers")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    hf: Any = transformers
    hf.logging.set_verbosity_error()
    hf.logging.disable_progress_bar()
    return hf


def random_model(case: Case) -> nn.Module:
    """The Hugging Face model of a case, its norms and biases moved away from ones and zeros."""
    hf = hugging_face()
    config = hf.AutoConfig.for_model(case.family, **case.settings)
    heads = {EncoderDecoder: "Seq2SeqLM", EncoderOnly: "MaskedLM", DecoderOnly: "CausalLM"}
    head = "ImageClassification" if case.family == "vit" else heads[FAMILIES[case.family](Settings({})).model]
    with torch.random.fork_rng():
        torch.manual_seed(case.seed)
        peer: nn.Module = getattr(hf, f"AutoModelFor{head}").from_config(config).eval()
        with torch.no_grad():
            for name, value in [*peer.named_parameters(), *peer.named_buffers()]:
                if "inv_freq" in name:
                    continue
                if value.dim() == 1 or name.endswith("final_logits_bias"):
                    value += 0.1 * torch.randn_like(value)
                elif "relative_attention_bias" in name:
                    value += torch.randn_like(value)
        if case.untied:
            output: Any = peer.get_submodule("lm_head")
            output.weight = nn.Parameter(torch.randn_like(output.weight))
    return peer


@contextlib.contextmanager
def saved(peer: Any, case: Case) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        if case.untied:  # transformers saves an untied T5 head only when told to keep it apart
            from safetensors.torch import load_file, save_file

            file = Path(folder) / "model.safetensors"
            save_file(load_file(file) | {"lm_head.weight": peer.lm_head.weight.detach().contiguous()}, file)
        yield Path(folder)


BAR = 1e-5


@dataclass(frozen=True)
class Batch:
    """Three padded rows of odd lengths; `mask` marks the real tokens of `ids`, `tgt` is a target where there is one,
    and `images` are in their place where a model reads images."""

    ids: Tensor
    mask: Tensor
    tgt: Tensor
    images: Tensor


def random_batch(vocab: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, vocab, (3, 11), generator=generator)
    mask = torch.arange(11) < torch.tensor([[11], [7], [3]])
    tgt = torch.randint(3, vocab, (3, 9), generator=generator)
    return Batch(ids, mask, tgt, torch.randn(3, 3, 16, 16, generator=generator))


def peer_logits(peer: Any, batch: Batch) -> Tensor:
    if peer.config.model_type == "vit":
        of_images: Tensor = peer(pixel_values=batch.images).logits.unsqueeze(1)
        return of_images  # (B, 1, V): one position, as in a text
    arguments = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    if peer.config.is_encoder_decoder:
        arguments["decoder_input_ids"] = batch.tgt
    logits: Tensor = peer(**arguments).logits
    return logits


def our_logits(model: Model, batch: Batch) -> Tensor:
    if model.config.patch_size is not None:
        of_images: Tensor = model(batch.images)[:, :1]
        return of_images
    arguments = (batch.ids, batch.tgt, batch.mask) if isinstance(model, EncoderDecoder) else (batch.ids, batch.mask)
    logits: Tensor = model(*arguments)
    return logits


def difference(ours: Tensor, theirs: Tensor, batch: Batch) -> float:
    """The largest difference of any two logits, at every real token."""
    apart = (ours - theirs).abs()
    return float(apart[batch.mask].max() if apart.shape[:2] == batch.mask.shape else apart.max())


def measure(case: Case, spoil: Spoil | None = None) -> float:
    """The difference of one case, after `spoil` has broken something if it is given."""
    with saved(peer := random_model(case), case) as folder, torch.no_grad():
        model = load_model(folder)
        vocab = min(model.config.vocab_size, model.config.encoder.vocab_size)
        batch = random_batch(vocab, case.seed)
        ours = our_logits(model, (spoil(model, batch) if spoil else None) or batch)
        return difference(ours, peer_logits(peer, batch), batch)


Part = TypeVar("Part", bound=nn.Module)


def parts(model: Model, kind: type[Part]) -> list[Part]:
    return [module for module in model.modules() if isinstance(module, kind)]


def tables(model: Model, name: str) -> list[Tensor]:
    """Those whose names end so, learnt or not."""
    every = [*model.named_parameters(), *model.named_buffers()]
    return [table for known, table in every if known.endswith(name)]


def wrong_norm_order(model: Model, batch: Batch) -> None:
    for module in parts(model, Residual):
        module.pre = not module.pre


def ignored_padding(model: Model, batch: Batch) -> Batch:
    return replace(batch, mask=torch.ones_like(batch.mask))


def missing_offset(model: Model, batch: Batch) -> None:
    """As if the position table were read from its first stored row."""
    for table in tables(model, "positions.table"):
        table.copy_(table.roll(2, 0))


def interleaved_sinusoid(model: Model, batch: Batch) -> None:
    for table in tables(model, "positions.table"):
        table.copy_(sinusoid(*table.shape))


def marian_sinusoid(model: Model, batch: Batch) -> None:
    """As if the slowest frequency were that of the paper, one step above 1/10000."""
    for table in tables(model, "positions.table"):
        table.copy_(sines_first(len(table) + 2, table.shape[1])[2:])


def scaled_scores(model: Model, batch: Batch) -> None:
    """As if the scores had the 1/sqrt(d) that the family leaves out."""
    for module in parts(model, Attention):
        module.scale = 1 / math.sqrt(module.d_head)


def missing_fold(model: Model, batch: Batch) -> None:
    """As if the last norm did not carry the scale of the decoder's output."""
    model.get_parameter("decoder.norm.weight").mul_(math.sqrt(model.config.d_model))


def missing_segments(model: Model, batch: Batch) -> None:
    for table in tables(model, "segments.weight"):
        table.zero_()


def missing_transform_norm(model: Model, batch: Batch) -> None:
    model.get_submodule("head.transform").norm = nn.Identity()


def turned_squares(model: Model, batch: Batch) -> Batch:
    """As if each square were read by columns."""
    squares = batch.images.unfold(2, 4, 4).unfold(3, 4, 4)  # (B, C, 4, 4, P, P)
    return replace(batch, images=squares.permute(0, 1, 2, 5, 3, 4).reshape_as(batch.images))


def missing_first(model: Model, batch: Batch) -> None:
    model.get_parameter("encoder.embedding.first").zero_()


def untransposed(model: Model, batch: Batch) -> None:
    for module in parts(model, Attention):
        module.output.weight.copy_(module.output.weight.T.clone())


def unslowed(model: Model, batch: Batch) -> None:
    """As if no pair turned slower than it did in training."""
    for module in parts(model, Rotary):
        module.factor = 1.0


def halves_for_pairs(model: Model, batch: Batch) -> None:
    """As if the rows of W_Q and W_K were left in the file's order."""
    for module in parts(model, Attention):
        q, k, v = module.projection.weight.split(module.projection.rows)
        again = [swapped(part, module.d_head // 2, 2) for part in (q, k)]
        module.projection.weight.copy_(torch.cat((*again, v)))


def other_groups(model: Model, batch: Batch) -> None:
    """As if each query head belonged to the group of its neighbour."""
    for module in parts(model, Attention):
        queries, outputs = module.projection.weight[: module.projection.rows[0]], module.output.weight.T
        for rows in (queries, outputs):
            rows.copy_(rows.roll(module.d_head, 0))


def missing_biases(model: Model, batch: Batch) -> None:
    for module in parts(model, Attention):
        module.projection.bias.zero_()


Spoil = Callable[[Model, Batch], Batch | None]  # breaks the model, or gives another batch

CONTROLS: dict[str, tuple[Spoil, ...]] = {
    "marian": (wrong_norm_order, interleaved_sinusoid, ignored_padding),
    "bart": (wrong_norm_order, missing_offset, ignored_padding),
    "mbart": (wrong_norm_order, missing_offset, ignored_padding),
    "m2m_100": (wrong_norm_order, missing_offset, marian_sinusoid, ignored_padding),
    "pegasus": (wrong_norm_order, interleaved_sinusoid, ignored_padding),
    "t5": (wrong_norm_order, scaled_scores, missing_fold, ignored_padding),
    "bert": (wrong_norm_order, missing_segments, ignored_padding),
    "roberta": (wrong_norm_order, missing_offset, missing_segments, ignored_padding),
    "xlm-roberta": (wrong_norm_order, missing_offset, ignored_padding),
    "distilbert": (wrong_norm_order, missing_offset, missing_transform_norm, ignored_padding),
    "vit": (wrong_norm_order, missing_offset, turned_squares, missing_first),
    "gpt2": (wrong_norm_order, missing_offset, untransposed),
    "llama": (wrong_norm_order, unslowed, halves_for_pairs, other_groups),
    "mistral": (wrong_norm_order, halves_for_pairs, other_groups),
    "qwen2": (wrong_norm_order, missing_biases, halves_for_pairs, other_groups),
}


def main() -> int:
    """Print the table; 1 if any case misses the bar or any control meets it."""
    hf = hugging_face()
    print(
        f"max |logit difference| to transformers {hf.__version__}, torch {torch.__version__}, float32, padded batches"
    )
    print(f"bar: {BAR:.0e}; a control is broken on purpose and must exceed it\n")
    failed = 0
    for case in cases():
        value = measure(case)
        failed += value > BAR
        print(f"  {case.family:11} {case.name:32} {value:9.1e}  {'ok' if value <= BAR else 'FAILED'}")
    print()
    for family, controls in CONTROLS.items():
        case = next(case for case in cases() if case.family == family)
        for spoil in controls:
            value = measure(case, spoil)
            failed += value <= BAR
            name = f"control: {spoil.__name__.replace('_', ' ')}"
            print(f"  {family:11} {name:32} {value:9.1e}  {'fails, as it must' if value > BAR else 'NOT NOTICED'}")
    print(f"\n{'all hold' if not failed else f'{failed} FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
