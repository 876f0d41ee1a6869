"""To Hugging Face: a folder that `transformers` loads, with a fast tokenizer, so that text in is text out there too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from glassformer.common.files import write_tensors, write_text
from glassformer.data import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.deploy.export.check import GenerativeModel, same_labels, same_logits, same_targets, tensors
from glassformer.deploy.export.families import PROPOSALS, FamilyModel, convert_to_family
from glassformer.deploy.export.formats import CannotExport, CheckFailed, Format, Progress
from glassformer.deploy.export.inputs import Ids, LoadedModel, Sample
from glassformer.deploy.export.tokenizer_files import decode_function, same_texts, write_fast_tokenizer
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.weights.bundle import is_bundle
from glassformer.weights.parity import hugging_face
from glassformer.weights.pretrained.family import Settings
from glassformer.weights.pretrained.loader import family_state_dict, load_model, read_config, read_weights

CLASSES = {EncoderDecoder: "AutoModelForSeq2SeqLM", DecoderOnly: "AutoModelForCausalLM"}
WEIGHTS = (".safetensors", ".bin", ".h5", ".msgpack", ".onnx", ".pt", ".index.json")
NOT_COPIED = ("config.json", "report.json")


class HuggingFace(Format):
    name = "huggingface"
    options: ClassVar = {"family": tuple(PROPOSALS)}

    def refuse(self, loaded: LoadedModel) -> None:
        if (own := loaded.model.config.autoregression) != "attention":
            raise CannotExport(f"no family of transformers has a decoder of autoregression={own!r}")
        family_model(loaded)

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        converted = family_model(loaded)
        write_tensors(folder / "model.safetensors", converted.tensors, {"format": "pt"})
        write_text(folder / "config.json", json.dumps(converted.settings, indent=2) + "\n")
        if (original := original_folder(loaded)) is not None:
            for file in sorted(original.iterdir()):
                if file.is_file() and not file.name.endswith(WEIGHTS) and file.name not in NOT_COPIED:
                    shutil.copyfile(file, folder / file.name)
            return
        config = loaded.model.config
        if isinstance(loaded.model, EncoderDecoder | DecoderOnly):
            generation = generation_config(loaded.model) | {"max_length": config.max_length}
            write_text(folder / "generation_config.json", json.dumps(generation, indent=2) + "\n")
        if isinstance(loaded.tokenizer, Tokenizer):
            write_fast_tokenizer(loaded, folder)

    def check(self, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
        hf = hugging_face()
        model = plain_model(loaded)
        image = model.config.patch_size is not None
        kind = "AutoModelForImageClassification" if image else CLASSES.get(type(model), "AutoModelForMaskedLM")
        peer, info = getattr(hf, kind).from_pretrained(folder, output_loading_info=True)
        for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            if info.get(problem):
                raise CheckFailed(
                    f"transformers finds {problem.replace('_', ' ')} in what was written: {info[problem]}"
                )
        peer.eval()
        if image:
            return same_labels(model, lambda images: peer(pixel_values=images).logits)
        figures = same_logits(model, lambda *ids: logits(peer, *ids), sample, progress)
        if isinstance(model, EncoderDecoder | DecoderOnly) and model.config.end_id is not None:
            generate = partial(generate_peer, hf, peer, model)
            figures |= same_targets(model, generate, sample, progress, decode_function(loaded))
        return figures | check_tokenizer(hf, loaded, folder, sample)


FORMAT = HuggingFace()


def original_folder(loaded: LoadedModel) -> Path | None:
    """The Hugging Face folder that the model was loaded from."""
    return None if loaded.folder is None or is_bundle(loaded.folder) else loaded.folder


def plain_model(loaded: LoadedModel) -> Model:
    """The model as its folder has it: a translator may have changed it."""
    original = original_folder(loaded)
    return loaded.model if original is None or loaded.tokenizer is None else load_model(original)


def family_model(loaded: LoadedModel) -> FamilyModel:
    """As its folder has it, if the model came from one; else converted to a family that can express it."""
    original = original_folder(loaded)
    if original is None or loaded.family is not None:
        return convert_to_family(plain_model(loaded), loaded.family)
    settings: Settings = read_config(original)
    tensors = family_state_dict(plain_model(loaded), settings)
    for name, tensor in read_weights(original).items():  # also copies, and heads that are not loaded
        ours = tensors.setdefault(name, tensor)
        tensors[name] = ours.to(tensor.dtype).view(tensor.shape)
    return FamilyModel(dict(settings.values), tensors)


def generation_config(model: GenerativeModel) -> dict[str, Any]:
    """The special tokens of a target, and a search that ends when no other target can win, as ours does."""
    config = model.config
    return {
        "pad_token_id": config.end_id if config.pad_id is None else config.pad_id,
        "bos_token_id": config.start_id,
        "eos_token_id": config.end_id,
        "decoder_start_token_id": config.start_id if isinstance(model, EncoderDecoder) else None,
        "forced_eos_token_id": config.end_id if config.force_end else None,
        "early_stopping": "never",
        "num_beams": 4 if isinstance(model, EncoderDecoder) else 1,
    }


@torch.inference_mode()
def logits(peer: Any, src: Tensor, mask: Tensor, tgt: Tensor | None) -> Tensor:
    given = {"input_ids": src, "attention_mask": mask.long()}
    if tgt is not None:
        given["decoder_input_ids"] = tgt
    return cast(Tensor, peer(**given).logits)


@torch.inference_mode()
def generate_peer(
    hf: Any, peer: Any, model: GenerativeModel, sources: Sequence[Ids], beam: int, limit: int, _: Sequence[Hypothesis]
) -> list[Hypothesis]:
    """The targets of `generate`, with scores as we count them."""
    src, mask = tensors(model, sources, "left" if isinstance(model, DecoderOnly) else "right")
    options = generation_config(model) | {"num_beams": beam, "max_new_tokens": limit, "length_penalty": 1.0}
    if beam == 1:
        del options["early_stopping"]
    options["use_cache"] = model.config.decoder.layers <= model.config.layers  # the cache of T5 has no room for more
    config = hf.GenerationConfig(**options, do_sample=False, return_dict_in_generate=True, output_scores=True)
    out = peer.generate(input_ids=src, attention_mask=mask.long(), generation_config=config)
    first = 1 if isinstance(model, EncoderDecoder) else src.shape[1]
    found = []
    for row, ids in enumerate(out.sequences[:, first:].tolist()):
        end = model.config.end_id
        length = ids.index(end) + 1 if end in ids else len(ids)
        if beam > 1:
            score = float(out.sequences_scores[row])
        else:
            steps = (step[row].log_softmax(-1)[token] for step, token in zip(out.scores, ids[:length], strict=False))
            score = float(sum(steps)) / length
        found.append(Hypothesis([id for id in ids[:length] if id != end], score))
    return found


def check_tokenizer(hf: Any, loaded: LoadedModel, folder: Path, sample: Sample) -> dict[str, Any]:
    """Whether `AutoTokenizer` encodes the texts and decodes targets as ours does."""
    if loaded.tokenizer is None or not sample.texts:
        return {}
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    target = folder / "target"
    decoder = hf.AutoTokenizer.from_pretrained(target) if target.is_dir() else tokenizer
    end = [] if loaded.model.config.end_id is None else [loaded.model.config.end_id]

    def decode(ids: Ids) -> str:
        return str(decoder.decode([*ids, *end], skip_special_tokens=True))

    return same_texts(loaded.tokenizer, sample, lambda text: tokenizer(text)["input_ids"], decode)
