"""To Hugging Face: a folder that `transformers` loads, with a fast tokenizer, so that text in is text out there too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.common.files import write_tensors, write_text
from glassformer.data import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.deploy.export.check import Ids, same_labels, same_logits, same_targets, tensors
from glassformer.deploy.export.families import Shape, shape_of
from glassformer.deploy.export.formats import CheckFailed, Format, Progress
from glassformer.deploy.export.inputs import LoadedModel, Sample
from glassformer.deploy.export.tokenizer_files import same_texts, spelling, write_fast_tokenizer
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.weights.bundle import is_bundle
from glassformer.weights.parity import hugging_face
from glassformer.weights.pretrained.family import Settings
from glassformer.weights.pretrained.loader import family_state_dict, load_model, read_config, read_weights

TOLERANCE = 1e-4  # of scores
LOGITS = 1e-5  # of logits, and for each unit of their size
CLASSES = {EncoderDecoder: "AutoModelForSeq2SeqLM", DecoderOnly: "AutoModelForCausalLM"}
NOT_TEXT = (".safetensors", ".bin", ".h5", ".msgpack", ".onnx", ".pt", ".index.json")  # of a folder: weights
WRITTEN = ("config.json", "report.json")


@dataclass(frozen=True)
class Options:
    """`family`: the one to be written as, such as "marian"; not given, the first that has the model's shape."""

    family: str | None = None


class HuggingFace(Format):
    name = "huggingface"
    options = Options

    def refuse(self, loaded: LoadedModel, options: Options) -> None:
        shape(loaded, options)

    def write(self, loaded: LoadedModel, folder: Path, options: Options) -> None:
        made = shape(loaded, options)
        write_tensors(folder / "model.safetensors", made.tensors, {"format": "pt"})
        write_text(folder / "config.json", json.dumps(made.settings, indent=2) + "\n")
        if (came := came_from(loaded)) is not None:
            for file in sorted(came.iterdir()):
                if file.is_file() and not file.name.endswith(NOT_TEXT) and file.name not in WRITTEN:
                    shutil.copyfile(file, folder / file.name)
            return
        config = loaded.model.config
        if isinstance(loaded.model, EncoderDecoder | DecoderOnly):
            told = generation(loaded.model) | {"max_length": config.max_length}
            write_text(folder / "generation_config.json", json.dumps(told, indent=2) + "\n")
        if isinstance(loaded.tokenizer, Tokenizer):
            write_fast_tokenizer(loaded, folder)

    def check(
        self, loaded: LoadedModel, folder: Path, sample: Sample, options: Options, progress: Progress
    ) -> dict[str, Any]:
        hf = hugging_face()
        model = plain_model(loaded)
        image = model.config.patch_size is not None
        kind = "AutoModelForImageClassification" if image else CLASSES.get(type(model), "AutoModelForMaskedLM")
        peer, told = getattr(hf, kind).from_pretrained(folder, output_loading_info=True)
        for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            if told.get(problem):
                raise CheckFailed(
                    f"transformers finds {problem.replace('_', ' ')} in what was written: {told[problem]}"
                )
        peer.eval()
        if image:
            return same_labels(model, lambda images: peer(pixel_values=images).logits, LOGITS)
        figures = same_logits(model, lambda *ids: logits(peer, *ids), sample, LOGITS, progress)
        if isinstance(model, EncoderDecoder | DecoderOnly) and model.config.end_id is not None:

            def write(sources: Sequence[Ids], beam: int, limit: int, ours: Sequence[Hypothesis]) -> list[Hypothesis]:
                return generated(hf, peer, model, sources, beam, limit)

            figures |= same_targets(model, write, sample, TOLERANCE, progress, spelling(loaded))
        return figures | same_text(hf, loaded, folder, sample)

    def versions(self) -> dict[str, str]:
        return {"transformers": hugging_face().__version__}


FORMAT = HuggingFace()


def came_from(loaded: LoadedModel) -> Path | None:
    """The Hugging Face folder that the model was loaded from."""
    return None if loaded.folder is None or is_bundle(loaded.folder) else loaded.folder


def plain_model(loaded: LoadedModel) -> Model:
    """The model without what a translator has changed in it."""
    came = came_from(loaded)
    return loaded.model if came is None or loaded.tokenizer is None else load_model(came)


def shape(loaded: LoadedModel, options: Options) -> Shape:
    """What came from a folder goes out as it came; what was trained here, in the family that has its shape."""
    came = came_from(loaded)
    if came is None or options.family is not None:
        return shape_of(plain_model(loaded), options.family)
    settings: Settings = read_config(came)
    tensors = family_state_dict(plain_model(loaded), settings)
    for name, tensor in read_weights(came).items():  # also what a file holds twice, or for a head that is not loaded
        ours = tensors.setdefault(name, tensor)
        tensors[name] = ours.to(tensor.dtype).view(tensor.shape)
    return Shape(dict(settings.values), tensors)


def generation(model: EncoderDecoder | DecoderOnly) -> dict[str, Any]:
    """The marks of a target, and that a search goes on until no other target could win, as ours does."""
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
    found: Tensor = peer(**given).logits
    return found


@torch.inference_mode()
def generated(
    hf: Any, peer: Any, model: EncoderDecoder | DecoderOnly, sources: Sequence[Ids], beam: int, limit: int
) -> list[Hypothesis]:
    """What `generate` writes, with its score as we count it."""
    src, mask = tensors(model, sources, left=isinstance(model, DecoderOnly))
    options = generation(model) | {"num_beams": beam, "max_new_tokens": limit, "length_penalty": 1.0}
    if beam == 1:
        del options["early_stopping"]
    options["use_cache"] = model.config.decoder.layers <= model.config.layers  # more have no place in that of T5
    config = hf.GenerationConfig(**options, do_sample=False, return_dict_in_generate=True, output_scores=True)
    out = peer.generate(input_ids=src, attention_mask=mask.long(), generation_config=config)
    begun = 1 if isinstance(model, EncoderDecoder) else src.shape[1]
    found = []
    for row, ids in enumerate(out.sequences[:, begun:].tolist()):
        end = model.config.end_id
        length = ids.index(end) + 1 if end in ids else len(ids)
        if beam > 1:
            score = float(out.sequences_scores[row])
        else:
            steps = (step[row].log_softmax(-1)[token] for step, token in zip(out.scores, ids[:length], strict=False))
            score = float(sum(steps)) / length
        found.append(Hypothesis([id for id in ids[:length] if id != end], score))
    return found


def same_text(hf: Any, loaded: LoadedModel, folder: Path, sample: Sample) -> dict[str, Any]:
    """Whether `AutoTokenizer` cuts the texts as ours does, and spells targets alike."""
    if loaded.tokenizer is None or not sample.texts:
        return {}
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    target = folder / "target"
    writer = hf.AutoTokenizer.from_pretrained(target) if target.is_dir() else tokenizer
    end = [] if loaded.model.config.end_id is None else [loaded.model.config.end_id]

    def spelt(ids: Ids) -> str:
        return str(writer.decode([*ids, *end], skip_special_tokens=True))

    return same_texts(loaded.tokenizer, sample, lambda text: tokenizer(text)["input_ids"], spelt)
