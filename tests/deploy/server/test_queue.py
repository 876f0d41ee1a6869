"""The queue: translations equal single ones, turns are fair, abandoned sentences are dropped."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sockets import until

from glassformer.common.errors import GlassformerError
from glassformer.decode import Search
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.directions import translator_directions
from glassformer.deploy.server.listen import GC_THRESHOLD, warm_up
from glassformer.deploy.server.queue import Queue, QueueClosed, QueueFull
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.text.sentence_translator import TranslateRequest
from glassformer.pipelines.translator import Translator

WORDS = ("one", "two", "three", "four", "five", "six")
TEXTS = [" ".join(WORDS[(i + k) % 6] for k in range(1 + i % 7)) for i in range(60)]


class Gone(GlassformerError):
    pass


class Slow(Translator):
    """A translator that waits until it may `go`, and records its batches."""

    def __init__(self, translator: Translator) -> None:
        super().__init__(translator.model, translator.tokenizer)
        self.batches: list[list[str]] = []
        self.go, self.begun = threading.Event(), threading.Event()

    def translate(self, texts, *, search, placeholders, between_steps):
        self.batches.append(list(texts))
        self.begun.set()
        while not self.go.wait(0.01):
            between_steps()
        return super().translate(texts, search=search, placeholders=placeholders)


@pytest.fixture
def queue():
    made = Queue(threads=1)
    yield made
    made.close()


@pytest.fixture(params=[1, 3])
def crowd(request):
    """Of one worker, or of several."""
    made = Queue(request.param)
    yield made
    made.close()


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for one in threads:
        one.start()
    return threads


def begin(queue, held, texts, name=""):
    """A thread that waits for the translations of texts, of which the first batch has begun."""
    threads = in_threads(1, lambda _: queue.translate(TranslateRequest(held, texts, Search()), RequestState(name)))
    assert held.begun.wait(30)
    return threads


def release(queue, held, waiting, threads):
    """Let the batch go on once so many tokens wait, and all threads come to their end."""
    until(lambda: queue.waiting >= waiting)
    held.go.set()
    for one in threads:
        one.join()


@pytest.mark.parametrize("search", [Search(), Search(beam=3, nbest=2)])
def test_batched_translations_equal_single_ones(translator, crowd, search):
    alone = [translator.translate([text], search=search)[0] for text in TEXTS]
    with ThreadPoolExecutor(len(TEXTS)) as pool:
        ask = lambda text: crowd.translate(TranslateRequest(translator, [text], search), RequestState(text[:3]))[0]  # noqa: E731
        made = list(pool.map(ask, TEXTS))
    for found, ranked in zip(made, alone, strict=True):
        assert [one.tokens for one in found] == [one.tokens for one in ranked]
        assert [one.score for one in found] == pytest.approx([one.score for one in ranked], abs=1e-5)
    assert crowd.waiting == 0


def test_in_int8_they_are_equal_to_the_bit(crowd):
    german = Translator.load("en-de", precision="int8")
    texts = ["Where is the station?", "Open the file.", "It is late.", "Run `make` twice, and then wait for it.", "Yes"]
    with ThreadPoolExecutor(20) as pool:
        ask = lambda text: crowd.translate(TranslateRequest(german, [text], Search(beam=4)), RequestState(text))[0]  # noqa: E731
        made = list(pool.map(ask, texts * 4))
    assert made == [german.translate([text], beam=4)[0] for text in texts] * 4


@pytest.mark.parametrize(
    ("search", "batches"), [(Search(beam=2), 2), (Search(), 3), (Search(beam=2, no_repeat_ngram=3), 3)]
)
def test_shorter_sentences_fill_a_batch(translator, queue, search, batches):
    held, long = Slow(translator), " ".join(WORDS * 4)
    assert 16 < len(translator.tokenizer.encode_source([long])[0]) <= 32
    ask = [["six"], [long], ["one"], ["two"]]

    def go(i):
        return queue.translate(TranslateRequest(held, ask[i], search), RequestState(str(i)))

    threads = in_threads(1, go)
    held.begun.wait()
    for i, waiting in zip((1, 2, 3), (32, 48, 64), strict=True):
        threads += in_threads(1, lambda _, i=i: go(i))
        until(lambda waiting=waiting: queue.waiting >= waiting)
    release(queue, held, 0, threads)
    assert len(held.batches) == batches
    assert held.batches[1] == ([long, "one", "two"] if batches == 2 else [long])
    assert (
        queue.translate(TranslateRequest(held, ["two"], search), RequestState())[0]
        == translator.translate(["two"], search=search)[0]
    )
    assert queue.cache_hits == 1


def test_waiting_sentences_share_a_batch_and_results_are_cached(translator, queue):
    held = Slow(translator)
    first = begin(queue, held, ["six"])
    later = in_threads(5, lambda i: queue.translate(TranslateRequest(held, [WORDS[i]], Search()), RequestState(str(i))))
    release(queue, held, 5 * 16, first + later)
    assert held.batches[0] == ["six"]
    assert sorted(held.batches[1]) == sorted(WORDS[:5])
    assert len(held.batches) == 2
    assert queue.translate(TranslateRequest(held, ["six"], Search()), RequestState())[0][0].tokens == ["sechs"]
    assert len(held.batches) == 2
    assert queue.cache_hits == 1


def test_a_book_does_not_delay_a_word(translator, queue):
    held = Slow(translator)
    book = [f"{' '.join(WORDS[:5])} {i}" for i in range(400)]
    reading = begin(queue, held, book, "book")
    asking = begin(queue, held, ["one two"], "word")
    release(queue, held, 16 * (400 - len(held.batches[0]) + 1), asking + reading)
    assert "one two" in held.batches[1]


def test_abandoned_sentences_cost_no_turn(translator, queue):
    """Whoever asks again with every key that is pressed, and leaves what was asked before, waits no longer for it."""
    held = Slow(translator)
    book = [f"{' '.join(WORDS[:5])} {i}" for i in range(1000)]
    reading = begin(queue, held, book, "book")
    for i in range(800):
        left = RequestState("keys")
        queue.submit(TranslateRequest(held, [f"one two {i}"], Search()), left)
        left.abandoned = True
    asked = {
        name: queue.submit(TranslateRequest(held, [name], Search()), RequestState(name)) for name in ("keys", "other")
    }
    held.go.set()
    assert all(answer.result(60) for answers in asked.values() for answer in answers)
    assert {"keys", "other"} <= set(held.batches[1])
    reading[0].join()


def test_sentences_of_disconnected_clients_are_not_translated(translator, queue):
    held, left = Slow(translator), threading.Event()

    def check():
        if left.is_set():
            raise Gone("left")

    ended = []

    def ask(i):
        with pytest.raises(Gone):
            queue.translate(TranslateRequest(held, [WORDS[i]], Search()), RequestState("a", check))
        ended.append(i)

    threads = in_threads(1, ask)
    held.begun.wait()
    threads += in_threads(3, lambda i: ask(i + 1))
    until(lambda: queue.waiting >= 3 * 16)
    left.set()  # the one that runs, and those that wait
    for one in threads:
        one.join(10)
    assert len(ended) == 4
    held.go.set()
    assert queue.translate(TranslateRequest(held, ["five"], Search()), RequestState())[0][0].tokens == ["fünf"]
    assert held.batches == [["one"], ["five"]]
    assert queue.waiting == 0


def test_a_full_queue_refuses(translator):
    held, queue = Slow(translator), Queue(threads=1, max_waiting=32)
    threads = begin(queue, held, ["one"]) + begin(queue, held, ["two", "three"])
    until(lambda: queue.waiting >= 32)
    with pytest.raises(QueueFull, match="32 tokens are waiting"):
        queue.translate(TranslateRequest(held, ["four"], Search()), RequestState())
    release(queue, held, 32, threads)
    queue.close()
    with pytest.raises(QueueClosed):
        queue.translate(TranslateRequest(held, ["four"], Search()), RequestState())


def test_an_error_reaches_its_request_and_the_queue_goes_on(translator, queue):
    class Broken(Translator):
        def translate(self, texts, **options):
            raise RuntimeError("broken")

    broken = Broken(translator.model, translator.tokenizer)
    with pytest.raises(RuntimeError, match="broken"):
        queue.translate(TranslateRequest(broken, ["one"], Search()), RequestState())
    assert queue.translate(TranslateRequest(translator, ["one"], Search()), RequestState()) == translator.translate(
        ["one"]
    )


def rested(workers):
    """A queue all of whose workers have come to wait."""
    made = Queue(workers)
    until(lambda: len(made._idle) == workers)
    return made


def test_a_lone_sentence_always_runs_on_the_first_worker(translator, monkeypatch):
    given = []
    monkeypatch.setattr("torch.set_num_threads", lambda count: given.append((count, threading.get_ident())))
    monkeypatch.setattr("torch.get_num_threads", lambda: 6)
    queue, held = rested(2), [Slow(translator), Slow(translator)]
    ask = lambda one, text: queue.translate(TranslateRequest(one, [text], Search()), RequestState())  # noqa: E731
    asking = []
    for one in held:
        asking += in_threads(1, lambda _, one=one: ask(one, "six"))
        assert one.begun.wait(30)
    for one, thread in zip(held, asking, strict=True):
        one.go.set()
        thread.join()
    until(lambda: len(queue._idle) == 2)
    ask(held[0], "five")
    queue.close()
    (first, one), (second, other), (third, again) = given
    assert (first, second, third) == (6, 3, 6)
    assert one == again != other


def test_free_workers_share_sentences_and_a_lone_one_has_all_cores(translator, monkeypatch):
    given = []
    monkeypatch.setattr("torch.set_num_threads", given.append)
    monkeypatch.setattr("torch.get_num_threads", lambda: 6)
    held, queue = Slow(translator), rested(3)
    ask = lambda texts: queue.translate(TranslateRequest(held, texts, Search()), RequestState())  # noqa: E731
    first = in_threads(1, lambda _: ask(["six"]))
    assert held.begun.wait(30)
    assert given == [6]
    later = in_threads(1, lambda _: ask([" ".join((WORDS[i % 6], WORDS[i // 6])) for i in range(30)]))
    until(lambda: len(held.batches) == 3)
    assert [len(one) for one in held.batches] == [1, 15, 15]
    assert given == [6, 2, 2]
    held.go.set()
    for one in first + later:
        one.join()
    queue.close()


def test_close_does_not_wait_for_running_batches(translator):
    held, queue, ended = Slow(translator), Queue(threads=1), []

    def ask(_):
        try:
            queue.translate(TranslateRequest(held, ["six"], Search()), RequestState())
        except QueueClosed as error:
            ended.append(error)

    asking = in_threads(1, ask)
    assert held.begun.wait(30)
    queue.close()
    asking[0].join(30)
    assert [str(error) for error in ended] == ["the server is stopping; ask again in a moment"]


def test_loaded_models_are_exempt_from_garbage_collection(translator, queue):
    service, before, frozen = (
        TranslationService(translator_directions(translator, "toy"), queue),
        gc.get_threshold(),
        gc.get_freeze_count(),
    )
    loaded = service.directions.get().translator.engine
    gc.unfreeze()
    try:
        assert any(one is loaded for one in gc.get_objects())  # those that are searched
        warm_up(service)
        assert not any(one is loaded for one in gc.get_objects())
        assert gc.get_threshold() == (GC_THRESHOLD, *before[1:])
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()
