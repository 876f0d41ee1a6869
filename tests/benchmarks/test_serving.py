"""`serve`, `attack` and `soak`: real servers under a little load."""

from pathlib import Path

import loops
import pytest

import glassformer as gf
from benchmarks.attack import measured
from benchmarks.serving import Bare, ask, running
from benchmarks.soak import FILE, LEFT, requests, soak

TEXTS = ["Save the file.", "Open the window.", "Close it.", "Press the key.", "It is late."]


def test_what_a_translator_makes_alone_is_what_its_server_is_held_to():
    bare = Bare("en-de", "de", TEXTS[:2])
    assert min(bare.speed(), bare.alone()) > 0
    assert bare.answers() == [gf.translate(text, to="de", source="en") for text in TEXTS[:2]]
    kinds = {one.kind for one in requests(TEXTS, 40, seed=3)}
    assert kinds >= {"text", "array", "wrong", FILE, LEFT}


def test_another_client_is_answered_under_each_attack():
    rows = measured("en-de", requests=5, rounds=1, slow=40, many=40)
    assert [(row.attack, row.lost) for row in rows] == [
        ("no attack", 0),
        ("40 slow bodies", 0),
        ("40 idle connections", 0),
    ]
    assert [len(row.seconds) for row in rows] == [5, 5, 1]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the server's memory is read from /proc")
def test_a_soaked_server_answers_each_as_alone_and_another_answer_is_seen():
    pool = requests(TEXTS, 40, seed=3)
    with running("glassformer", "serve", "en-de", "--only", "api", "--port", "0") as server:
        _, answers = loops.run(ask(server.address, TEXTS, "en", "de", clients=2))
        done = loops.run(soak(server.address, server.pid, pool, lambda number: None, clients=8))
        swapped = [one._replace(answer=pool[i - 1].answer) for i, one in enumerate(pool)]
        other = loops.run(soak(server.address, server.pid, swapped, lambda number: None, clients=8))
    assert answers == Bare("en-de", "de", TEXTS).answers()
    assert done.kinds.total() == 40
    assert set(done.kinds) >= {"text", "array", "wrong", FILE, LEFT}
    assert set(done.statuses) == {200, 400}
    assert (done.other, done.failures) == ([], 0)
    assert done.first > 0
    assert done.last > 0
    different = sum(one.answer != pool[i - 1].answer for i, one in enumerate(pool) if one.kind != LEFT)
    assert len(other.other) == different > 10
