"""Text in, more text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import torch

from glassformer.common.arguments import check_texts, checked
from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import InputError
from glassformer.data import About
from glassformer.data.tokenizer import stream_decode
from glassformer.decode import Hypothesis, Search, generate
from glassformer.decode.engine import BATCH_TOKENS, Likelihood, ModelRunner, batches, pad_batch
from glassformer.decode.generation import USUAL_LIMIT, stream
from glassformer.decode.precision import Precision
from glassformer.decode.search import SearchOptions, check_stream, search_of
from glassformer.model import DecoderOnly
from glassformer.pipelines.loading import MonolingualTokenizer, SingleStackPipeline, check_lengths, load_model_of


@dataclass(frozen=True)
class Continuation:
    """What a model has written after a `prompt`: its text, its tokens and its score, the log-probability over the
    length rule's divisor. One that is not `finished` was stopped by the limit of length."""

    prompt: str
    text: str
    score: float
    tokens: list[str]
    finished: bool

    @property
    def whole(self) -> str:
        """The prompt and what follows it."""
        return join(self.prompt, self.text)


def join(prompt: str, text: str) -> str:
    """A prompt and what follows it; a space that both have is one."""
    return (prompt.rstrip(" ") if text.startswith(" ") else prompt) + text


@checked
class TextGenerator(SingleStackPipeline[DecoderOnly, MonolingualTokenizer]):
    """A decoder with its tokenizer. `g("Once upon")` gives the text continued; `g.generate` takes many. It is trained
    by objective = "language", or published: GPT-2, Llama, Mistral or Qwen2 with its tokenizer.json.

    `g.model` is the plain float32 model; what runs is a copy of it in the given `precision`, made again after the
    weights have changed.
    """

    def __init__(
        self,
        model: DecoderOnly,
        tokenizer: MonolingualTokenizer,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        about: About | None = None,
    ) -> None:
        super().__init__(model, tokenizer, device, about)
        self.precision = precision
        self._running = ModelRunner(self.model, self.device, precision)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        *,
        adapter: str | Path | None = None,
        revision: str | None = None,
        offline: bool = False,
    ) -> TextGenerator:
        """A folder that `glassformer train` has made, a Hugging Face folder, or a name of the hub, of such a model.
        The weights of an `adapter`, a folder of a run with `train.lora_rank`, are added to the model's."""
        loaded = load_model_of(folder, DecoderOnly, revision, offline, adapter)
        assert loaded.tokenizer is not None
        return cls(loaded.model, loaded.tokenizer, device, precision, loaded.about)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.tokenizer, self.device, self.precision, self.about)

    def __call__(self, text: str) -> str:
        return self.generate([text])[0][0].whole

    def generate(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        batch_tokens: int = BATCH_TOKENS,
        **options: Unpack[SearchOptions],
    ) -> list[list[Continuation]]:
        """The `nbest` best continuations of each text, in the order given: the likeliest tokens, a beam, or drawn by
        `sampling`. The search is a `Search`, options by name, such as `beam=4`, or both: a name wins.

        They have at most `max_new_tokens`: 128, or what the model has places for after the text. A text's own does not
        depend on the texts beside it.
        """
        search, texts = search_of(search, **options), check_texts(texts, "texts")
        prompts = self.prompts(texts)
        found: list[list[Continuation]] = [[] for _ in texts]
        for rows in batches([len(ids) for ids in prompts], batch_tokens // search.beam, alike=True):
            src = torch.tensor([prompts[i] for i in rows], device=self.device)
            limited = replace(search, max_new_tokens=self.max_new_tokens(src.shape[1], search))
            for i, best in zip(rows, generate(self.ready, src, search=limited), strict=True):
                found[i] = [self._continuation(texts[i], prompts[i], one) for one in best]
        return found

    def stream(self, text: str, *, search: Search | None = None, **options: Unpack[SearchOptions]) -> Iterator[str]:
        """The continuation of one text piece by piece, as it is written; joined, what `generate` gives."""
        search = check_stream(search_of(search, **options))
        (prompt,) = self.prompts([text])
        limited = replace(search, max_new_tokens=self.max_new_tokens(len(prompt), search))
        tokens = stream(self.ready, torch.tensor([prompt], device=self.device), search=limited)
        return stream_decode(_AfterPrompt(self.tokenizer, prompt), tokens)

    @disable_cudnn_sdp
    @torch.inference_mode()
    def likelihoods(self, texts: Iterable[str], *, batch_tokens: int = BATCH_TOKENS) -> list[Likelihood]:
        """How likely the model finds each text, from its start mark to its end mark, where it has these; of a family
        without a start mark, the first token is given."""
        texts, config = check_texts(texts, "texts"), self.model.config
        start = [] if config.start_id is None else [config.start_id]
        end = [] if config.end_id is None else [config.end_id]
        wanted = self.tokenizer.encode_target(texts)
        rows = [[*(start or ids[:1]), *(ids if start else ids[1:]), *end] for ids in wanted]
        check_lengths([row[:-1] for row in rows], config.max_length)
        found = [Likelihood(0.0, 0)] * len(texts)
        for batch in batches([len(row) for row in rows], batch_tokens):
            ids, real = pad_batch([rows[i] for i in batch], 0, self.device)
            if ids.shape[1] < 2:  # nothing but what is given
                continue
            log_probabilities = self.ready(ids[:, :-1], real[:, :-1]).float().log_softmax(-1)
            own = log_probabilities.gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2).masked_fill(~real[:, 1:], 0.0)
            for i, total in zip(batch, own.double().sum(1).tolist(), strict=True):
                found[i] = Likelihood(total, len(rows[i]) - 1)
        return found

    def prompts(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids that each text begins with; an empty one, with the start mark alone."""
        start = self.model.config.start_id
        prompts = [ids or ([] if start is None else [start]) for ids in self.tokenizer.encode_source(texts)]
        for i, ids in enumerate(prompts):
            if not ids:
                raise InputError(f"texts[{i}] is empty, and this model has no mark to start from; give it a word")
        check_lengths(prompts, self.model.config.max_length)
        return prompts

    def max_new_tokens(self, length: int, search: Search) -> int:
        """The most tokens written after a prompt of `length`; the last is written and never read."""
        if search.max_new_tokens is not None:
            return search.max_new_tokens
        return min(USUAL_LIMIT, self.model.config.max_length - length + 1)

    @property
    def ready(self) -> DecoderOnly:
        """The copy that runs."""
        return self._running.ready

    def _continuation(self, text: str, prompt: list[int], one: Hypothesis) -> Continuation:
        (written,) = _AfterPrompt(self.tokenizer, prompt).decode_target([one.ids])
        return Continuation(text, written, one.score, self.tokenizer.target_pieces(one.ids), one.finished)


class _AfterPrompt:
    """Decodes ids as what follows a prompt, so that a first word keeps the space before it."""

    def __init__(self, tokenizer: MonolingualTokenizer, prompt: Sequence[int]) -> None:
        self.tokenizer, self.prompt = tokenizer, list(prompt)
        (self.start,) = tokenizer.decode_target([self.prompt])

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        whole = self.tokenizer.decode_target([[*self.prompt, *ids] for ids in batch])
        return [text[len(self.start) :] for text in whole]
