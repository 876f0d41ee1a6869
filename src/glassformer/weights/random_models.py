"""Small random models of every family that is loaded, as Hugging Face makes and saves them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.common.errors import GlassformerError
from glassformer.weights.pretrained.loader import FAMILIES

_SEQ2SEQ: list[dict[str, Any]] = [
    {"d_model": 32, "heads": (4, 4), "ffn": (64, 64), "layers": (2, 2), "vocab_size": 97},
    {"d_model": 48, "heads": (6, 3), "ffn": (80, 112), "layers": (3, 1), "vocab_size": 131},
    {"d_model": 40, "heads": (5, 2), "ffn": (33, 160), "layers": (1, 4), "vocab_size": 61},
]


SLOWED: list[dict[str, Any]] = [
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 16},
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 3.0},
]  # fmt: skip


def quiet_transformers() -> Any:
    """The library, kept from the network and from speaking."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    hf: Any = transformers
    hf.logging.set_verbosity_error()
    hf.logging.disable_progress_bar()
    return hf


@dataclass(frozen=True)
class Case:
    """One random model: its family, a name for the table, the settings Hugging Face builds it from."""

    family: str
    name: str
    settings: dict[str, Any]
    seed: int
    untied: bool = False


def cases() -> list[Case]:
    table: list[Case] = []
    for i, size in enumerate(_SEQ2SEQ):
        (heads, dheads), (ffn, dffn), (depth, ddepth) = size["heads"], size["ffn"], size["layers"]
        shared = {
            "vocab_size": size["vocab_size"],
            "d_model": size["d_model"],
            "encoder_attention_heads": heads,
            "decoder_attention_heads": dheads,
            "encoder_ffn_dim": ffn,
            "decoder_ffn_dim": dffn,
            "encoder_layers": depth,
            "decoder_layers": ddepth,
            "max_position_embeddings": 64,
            "scale_embedding": i != 1,
        }
        name = f"d{size['d_model']} heads {heads}+{dheads} layers {depth}+{ddepth}"
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
    for i, (proj, untied) in enumerate((("relu", False), ("gated-gelu", True), ("relu", True), ("gated-silu", False))):
        settings = {
            "vocab_size": 83 + i,
            "d_model": (32, 48, 40, 64)[i],
            "d_kv": (8, 6, 16, 10)[i],
            "num_heads": (4, 3, 5, 2)[i],
            "d_ff": (64, 96, 40, 128)[i],
            "num_layers": (2, 1, 3, 2)[i],
            "num_decoder_layers": (2, 3, 1, 2)[i],
            "feed_forward_proj": proj,
            "tie_word_embeddings": not untied,
            "relative_attention_num_buckets": (32, 16, 8, 32)[i],
            "relative_attention_max_distance": (128, 20, 12, 64)[i],
        }
        table.append(Case("t5", f"{proj}, {'untied' if untied else 'tied'}", settings, 20 + i, untied))
    for i in range(3):
        sizes = {
            "hidden_size": (32, 48, 40)[i],
            "num_attention_heads": (4, 6, 2)[i],
            "num_hidden_layers": (2, 3, 1)[i],
            "intermediate_size": (64, 50, 160)[i],
        }
        name = f"d{sizes['hidden_size']} layers {sizes['num_hidden_layers']}"
        bert = sizes | {
            "vocab_size": 101 + i,
            "max_position_embeddings": 64,
            "hidden_act": ("gelu", "relu", "gelu_new")[i],
            "type_vocab_size": (2, 3, 1)[i],
        }
        table.append(Case("bert", name, bert, 30 + i))
        same = {"hidden_act": "gelu", "pad_token_id": 1}
        table.append(Case("roberta", name, bert | same, 90 + i))
        table.append(Case("xlm-roberta", name, bert | same | {"type_vocab_size": 1, "vocab_size": 160 - i}, 100 + i))
        distilbert = {
            "vocab_size": 97 - i,
            "dim": (32, 48, 40)[i],
            "n_heads": (4, 6, 2)[i],
            "n_layers": (2, 3, 1)[i],
            "hidden_dim": (64, 50, 160)[i],
            "max_position_embeddings": 64,
            "activation": ("gelu", "relu", "gelu")[i],
        }
        table.append(Case("distilbert", name, distilbert, 110 + i))
        vit = sizes | {
            "image_size": 16,
            "patch_size": (4, 8, 2)[i],
            "num_labels": (7, 5, 11)[i],
            "qkv_bias": i != 1,
            "initializer_range": 0.1,
        }
        table.append(Case("vit", f"d{vit['hidden_size']} patches of {vit['patch_size']}", vit, 120 + i))
        gpt2 = {
            "vocab_size": 89 + i,
            "n_embd": (32, 48, 40)[i],
            "n_head": (4, 3, 5)[i],
            "n_layer": (2, 4, 1)[i],
            "n_inner": (None, 100, 77)[i],
            "n_positions": 64,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "scale_attn_by_inverse_layer_idx": i == 1,
        }
        table.append(Case("gpt2", f"d{gpt2['n_embd']} layers {gpt2['n_layer']}", gpt2, 40 + i))
        llama = sizes | {
            "vocab_size": 73 + i,
            "num_key_value_heads": (2, 6, 1)[i],
            "head_dim": (8, 8, 12)[i],
            "intermediate_size": (56, 80, 33)[i],
            "max_position_embeddings": 64,
            "tie_word_embeddings": i == 1,
            "initializer_range": 0.1,
            "bos_token_id": 1,
            "eos_token_id": 2,
        }
        name = f"d{llama['hidden_size']} heads {llama['num_attention_heads']}/{llama['num_key_value_heads']}"
        for family, rope, more in (
            ("llama", SLOWED[i], {}),
            ("mistral", SLOWED[1], {"sliding_window": (None, 64, 100)[i]}),
            ("qwen2", SLOWED[(1, 2, 0)[i]], {}),
        ):
            rope = {"rope_theta": (10_000.0, 500.0, 1e6)[i]} | rope
            table.append(Case(family, f"{name}, {rope['rope_type']}", llama | more | {"rope_parameters": rope}, 80 + i))
    return sorted(table, key=lambda case: list(FAMILIES).index(case.family))


def hugging_face() -> Any:
    if find_spec("transformers") is None:
        raise GlassformerError("transformers is the peer to compare with: pip install transformers")
    return quiet_transformers()


def random_model(case: Case) -> nn.Module:
    """The Hugging Face model of a case, its norms and biases moved away from ones and zeros."""
    hf = hugging_face()
    config, model = {
        "marian": (hf.MarianConfig, hf.MarianMTModel),
        "bart": (hf.BartConfig, hf.BartForConditionalGeneration),
        "mbart": (hf.MBartConfig, hf.MBartForConditionalGeneration),
        "m2m_100": (hf.M2M100Config, hf.M2M100ForConditionalGeneration),
        "pegasus": (hf.PegasusConfig, hf.PegasusForConditionalGeneration),
        "t5": (hf.T5Config, hf.T5ForConditionalGeneration),
        "bert": (hf.BertConfig, hf.BertForMaskedLM),
        "roberta": (hf.RobertaConfig, hf.RobertaForMaskedLM),
        "xlm-roberta": (hf.XLMRobertaConfig, hf.XLMRobertaForMaskedLM),
        "distilbert": (hf.DistilBertConfig, hf.DistilBertForMaskedLM),
        "vit": (hf.ViTConfig, hf.ViTForImageClassification),
        "gpt2": (hf.GPT2Config, hf.GPT2LMHeadModel),
        "llama": (hf.LlamaConfig, hf.LlamaForCausalLM),
        "mistral": (hf.MistralConfig, hf.MistralForCausalLM),
        "qwen2": (hf.Qwen2Config, hf.Qwen2ForCausalLM),
    }[case.family]
    with torch.random.fork_rng():
        torch.manual_seed(case.seed)
        peer: nn.Module = model(config(**case.settings)).eval()
        with torch.no_grad():
            for name, value in [*peer.named_parameters(), *peer.named_buffers()]:
                if "inv_freq" in name:
                    continue
                if value.dim() == 1 or name.endswith("final_logits_bias"):
                    value += 0.1 * torch.randn_like(value)
                elif "relative_attention_bias" in name:
                    value += torch.randn_like(value)
        if case.untied:
            head: Any = peer.get_submodule("lm_head")
            head.weight = nn.Parameter(torch.randn_like(head.weight))
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
