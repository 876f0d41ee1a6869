"""The subject of a trace: a translator, another pipeline that reads texts or images, or a model alone, which reads
ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from glassformer.common.errors import InputError, did_you_mean
from glassformer.data import About, PairTokenizer
from glassformer.decode import Search
from glassformer.decode.generation import USUAL_LIMIT
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.pipelines import Classifier, MaskFiller, TextGenerator
from glassformer.pipelines.classifier import Image
from glassformer.pipelines.translator import Translator

UNKNOWN = "<unk>"
WHOLE = "[CLS]"  # the position that stands for the whole image
Sentence = str | Sequence[int] | Image
Pipeline = TextGenerator | MaskFiller | Classifier
Traced = Translator | Pipeline | Model


class Subject:
    """A model, and the tokenizer of its pipeline where there is one."""

    def __init__(self, given: Traced) -> None:
        self.labels: Sequence[str] = given.labels if isinstance(given, Classifier) else ()
        self.mask_id = given.tokenizer.mask_id if isinstance(given, MaskFiller) else None  # of a gap
        self.gap = given.tokenizer.gap if isinstance(given, MaskFiller) else None  # as a text writes it
        if isinstance(given, Translator | Pipeline):
            self.model: Model = given.model
            self.text: PairTokenizer | None = given.tokenizer
            self.about = given.about
        else:
            self.model, self.text, self.about = given, None, About()
        self.given = given
        self.config = self.model.config
        self.device = next(self.model.parameters()).device

    @property
    def writes(self) -> bool:
        return not isinstance(self.model, EncoderOnly)

    @property
    def reads_images(self) -> bool:
        return self.config.patch_size is not None

    @property
    def has_labels(self) -> bool:
        return self.config.labels > 0 or self.reads_images

    @property
    def task(self) -> str:
        """What the model does with what it reads."""
        if isinstance(self.model, EncoderDecoder):
            return "translate"
        if self.writes:
            return "continue"
        return "image" if self.reads_images else "label" if self.has_labels else "fill"

    @property
    def places(self) -> list[str]:
        """The names of an image's positions: the whole, then its patches by row and column; none for a text."""
        side = self.config.image_size // (self.config.patch_size or self.config.image_size)
        squares = [f"{row},{column}" for row in range(side) for column in range(side)]
        return [WHOLE, *squares] if self.reads_images else []

    def image(self, given: Any) -> Tensor:
        """What the model reads of an image: (1, C, H, W)."""
        if isinstance(self.given, Classifier):
            given = given[0] if isinstance(given, Tensor) and given.dim() == 4 and given.shape[0] == 1 else given
            return self.given.image_processor.tensor([given]).to(self.device)
        shape = (self.config.channels, self.config.image_size, self.config.image_size)
        if isinstance(given, Tensor) and given.is_floating_point() and given.shape in (shape, (1, *shape)):
            return given.reshape(1, *shape).to(self.device)
        found = f"of shape {tuple(given.shape)} and dtype {given.dtype}" if isinstance(given, Tensor) else "no tensor"
        raise InputError(f"this model reads images of shape {shape} as floating-point numbers; the input is {found}")

    def answers(self, ids: Sequence[int]) -> list[str]:
        """The labels, or pieces, of the ids of an answer."""
        if not self.has_labels:
            return self.pieces(ids, source=not self.writes)
        return [self.labels[id] if self.labels else str(id) for id in ids]

    def source_ids(self, sentence: Sentence) -> list[int]:
        if self.reads_images:
            return []
        if self.text is None:
            ids = self._plain_ids(sentence, "the sentence")
        elif isinstance(sentence, str):
            ids = self.encoded(sentence)
            if (not sentence.strip() and not isinstance(self.given, TextGenerator)) or not ids:
                raise InputError("the sentence is empty; there is nothing to trace")
        else:
            name = f"a {type(self.given).__name__}" if isinstance(self.given, Pipeline) else "a translator"
            raise InputError(f"{name} reads text; the sentence is a {type(sentence).__name__}, not a string")
        if not ids:
            raise InputError("the sentence holds no ids; there is nothing to trace")
        self.check(ids, self.source_size, "the sentence")
        if len(ids) > self.config.max_length:
            most = self.config.max_length
            raise InputError(f"the sentence has {len(ids)} tokens, the model reads at most {most}; trace a shorter one")
        return ids

    def encoded(self, sentence: str) -> list[int]:
        """A text as the model reads it."""
        assert self.text is not None
        if isinstance(self.given, TextGenerator):
            return self.given.prompts([sentence])[0]
        encode = self.given.tokenizer.encode_gaps if isinstance(self.given, MaskFiller) else self.text.encode_source
        return encode([sentence])[0]

    def text_of(self, sentence: Sentence) -> str:
        """What is read, as text."""
        if self.reads_images:
            size = self.config.image_size
            return Path(sentence).name if isinstance(sentence, str | Path) else f"{size}×{size}"
        return sentence if isinstance(sentence, str) else " ".join(map(str, self.source_ids(sentence)))

    @property
    def opening(self) -> list[int]:
        """The ids that every output begins with."""
        return [] if self.text is None else self.text.encode_target([""])[0]

    def target_ids(self, target: Sentence) -> list[int]:
        if isinstance(target, str) and self.text is not None:
            return self.text.encode_target([target])[0]
        ids = self._plain_ids(target, "the target")
        self.check(ids, self.config.vocab_size, "the target")
        return ids

    def prefix_ids(self, prefix: Sequence[int | str]) -> list[int]:
        """A prefix of the output, by ids or by pieces; the token of its language comes first, where there is one."""
        ids = [self.piece_id(one, source=False) if isinstance(one, str) else one for one in prefix]
        self.check(ids, self.config.vocab_size, "the prefix")
        return ids if ids[: len(self.opening)] == self.opening else [*self.opening, *ids]

    def piece_id(self, piece: str, source: bool) -> int:
        """The id of a piece as it is shown, or of a text that makes exactly one piece."""
        size = self.source_size if source else self.config.vocab_size
        if self.mask_id is not None and piece == self.gap:
            return self.mask_id
        pieces = self.pieces(range(size), source)
        if piece in pieces:
            return pieces.index(piece)
        ids: list[int] = []
        if self.text is not None:
            encode = self.text.encode_source if source else self.text.encode_target
            ids = [id for id in encode([piece])[0] if id != self.config.end_id]
        made = self.pieces(ids, source)
        if not ids or UNKNOWN in made:
            raise InputError(f"`{piece}` is no piece of the vocabulary{did_you_mean(piece, pieces)}")
        if len(ids) > 1:
            cut = " ".join(made)
            raise InputError(f"`{piece}` is not one piece of the vocabulary (it is cut into: {cut}); give one of those")
        return int(ids[0])

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece at each position that is read."""
        return self.places or self.pieces(ids, source=True)

    def pieces(self, ids: Sequence[int], source: bool) -> list[str]:
        if self.text is not None:
            return self.text.source_pieces(ids) if source else self.text.target_pieces(ids)
        marks = {self.config.pad_id: "<pad>", self.config.end_id: "</s>", self.config.start_id: "<s>"}
        return [marks.get(id, str(id)) for id in ids]

    @property
    def tag(self) -> str | None:
        """The target language, if the first piece of a source sets it."""
        return self.given.to if isinstance(self.given, Translator) else None

    def unfamiliar(self, sentence: str) -> list[str]:
        """The words of a sentence that were not in the training data."""
        return self.given.unfamiliar([sentence]) if isinstance(self.given, Translator) else []

    def written(self, ids: Sequence[int], prompt: Sequence[int]) -> str:
        """The text that follows a prompt; its first word keeps the space before it."""
        if self.text is None:
            return " ".join(map(str, ids))
        if self.task != "continue":
            return self.text.decode_target([ids])[0]
        before, whole = self.text.decode_target([prompt, [*prompt, *ids]])
        return whole[len(before) :]

    def filled(self, ids: Sequence[int], fillings: Sequence[int]) -> str:
        """A text with its gaps filled; of a model alone, the fillings."""
        if self.text is None:
            return " ".join(self.pieces(fillings, source=True))
        return self.text.decode_target([ids])[0].strip()

    def max_target_length(self, read: int) -> int:
        """The default limit of new tokens after a source of `read` tokens."""
        if isinstance(self.given, Translator):
            return self.given.max_target_length(read)
        if isinstance(self.given, TextGenerator):
            return self.given.max_new_tokens(read, Search())
        return max(1, min(USUAL_LIMIT, self.config.max_length - (read if isinstance(self.model, DecoderOnly) else 1)))

    @property
    def source_size(self) -> int:
        return self.config.vocab_size if isinstance(self.model, DecoderOnly) else self.config.encoder.vocab_size

    def max_source_length(self) -> int:
        """The most tokens that can be read."""
        if isinstance(self.given, Translator):
            return self.given.max_source_length()
        return self.config.max_length - isinstance(self.model, DecoderOnly)  # with room for one that is written

    def _plain_ids(self, given: Sentence, what: str) -> list[int]:
        if isinstance(given, str | Path):
            raise InputError(f"{what} is text, but a model alone reads ids; give ids, or trace a Translator")
        if isinstance(given, Tensor):
            if given.dim() not in (1, 2) or (given.dim() == 2 and given.shape[0] != 1):
                shape = tuple(given.shape)
                raise InputError(f"{what} has shape {shape}; one sentence is traced at a time: (1, length)")
            if given.dtype not in (torch.int64, torch.int32):
                raise InputError(f"{what} has dtype {given.dtype}; ids are whole numbers")
            return cast(list[int], given.flatten().tolist())
        return cast(list[int], list(given))

    def check(self, ids: list[int], size: int, what: str) -> None:
        for id in ids:
            if type(id) is not int:
                raise InputError(f"{what} holds {id!r}; ids are whole numbers")
            if not 0 <= id < size:
                raise InputError(f"{what} holds the id {id}, outside the vocabulary of {size} (0 to {size - 1})")
