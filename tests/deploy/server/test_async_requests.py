"""Translations without a thread equal those with one, and cancelled requests do not disturb others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest
from live_page import toy_service
from loops import run

from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.libre import MAX_QUICK, LibreApi
from glassformer.deploy.server.queue import LoopWaker, Queue, QueueClosed
from glassformer.deploy.server.translation_service import TranslationService, UnsupportedPair

LONGEST = 60.0  # seconds; who waits longer has been forgotten
TEXTS = [
    "one two three",
    "four\n\nfive six. one",
    "",
    "one {name} two",
    "see <b>three</b>, 12.5 and `code`",
    *(f"one {'two ' * n}three" for n in range(20)),
]


@pytest.fixture
def service(translator):
    made = toy_service(translator, Queue(2, 1))
    yield made
    made.queue.close()


def translating(
    service: TranslationService, text: str, state: RequestState | None = None, way: tuple[str, str] = ("en", "de")
):
    return service.translate_async(text, *way, state or RequestState())


async def together(*several):
    return await asyncio.wait_for(asyncio.gather(*several), LONGEST)


def rounded(texts):
    """Scores depend in their last digits on who is in the batch."""
    return [
        replace(text, sentences=tuple(replace(one, score=round(one.score, 4)) for one in text.sentences))
        for text in texts
    ]


def test_async_translations_equal_threaded_ones(service):
    expected, _ = service.translate(TEXTS, ["en"] * len(TEXTS), "de", RequestState())
    service.queue._cache.clear()
    before = threading.active_count()
    seen = []

    async def all_at_once():
        made = together(*(translating(service, text) for text in TEXTS))
        told = asyncio.ensure_future(made)
        await asyncio.sleep(0)  # in which the loop begins all of them
        await asyncio.sleep(0)
        seen.append(threading.active_count())
        return await told

    assert rounded(run(all_at_once())) == rounded(expected)
    assert seen[0] <= before + 1  # that of the loop
    assert run(together(translating(service, "one", way=("de", "de"))))[0].text == "one"
    with pytest.raises(UnsupportedPair):
        run(together(translating(service, "one", way=("de", "en"))))


def test_cancelled_requests_do_not_delay_others(service):
    left = RequestState("left")

    async def some_leave():
        leaving = [asyncio.ensure_future(translating(service, f"two {'three ' * n}", left)) for n in range(12)]
        staying = asyncio.ensure_future(together(*(translating(service, text) for text in TEXTS)))
        await asyncio.sleep(0)  # all have asked, and nobody was told yet
        for one in leaving:
            one.cancel()
        found = await asyncio.gather(*leaving, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in found)
        return await staying

    made = run(some_leave())
    expected, _ = service.translate(TEXTS, ["en"] * len(TEXTS), "de", RequestState())
    assert rounded(made) == rounded(expected)
    assert left.abandoned


def test_errors_of_the_queue_reach_the_request(service):
    service.queue.close()
    with pytest.raises(QueueClosed):
        run(together(translating(service, "one")))


def test_the_waker_wakes_every_coroutine():
    """Answers that several threads give while others begin to wait."""
    waker, answers = LoopWaker(), [Future() for _ in range(600)]

    def answer(start):
        for one in answers[start::3]:
            one.set_result([])

    async def wait():
        threads = [threading.Thread(target=answer, args=(n,)) for n in range(3)]
        waiting = asyncio.ensure_future(together(*(waker.wait(one) for one in answers)))
        for one in threads:
            one.start()
        await waiting

    run(wait())


def test_only_a_short_text_in_a_known_language_takes_no_thread(service):
    api, quick = LibreApi(service), {"q": "one", "source": "en", "target": "de"}
    assert not api.is_quick(quick)  # its model may have to be loaded
    service.load()
    for fields in (quick, quick | {"format": "text", "alternatives": 0}):
        assert api.is_quick(fields)
        assert run(api.translate_async(fields, RequestState())) == api.translate(fields, RequestState())
    for more in (
        {"q": ["one"]},
        {"q": "o" * (MAX_QUICK + 1)},
        {"source": "auto"},
        {"format": "html"},
        {"format": "no format"},
        {"alternatives": 2},
    ):
        assert not api.is_quick(quick | more), more
