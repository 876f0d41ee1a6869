"""`bench serve`: two real servers under a little load."""

from __future__ import annotations

import json

from small_run import call, command


def test_both_servers_give_the_answers_of_a_text_translator(tmp_path):
    (tmp_path / "few.txt").write_text("Save the file.\nOpen the window.\nClose it.\n", encoding="utf-8")
    done = call(command("bench", "serve", "few.txt", "--clients", "2", "--json"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert [(one["name"], one["clients"], one["wrong"]) for one in figures] == [
        ("glassformer", 2, 0),
        ("a call for each", 2, 0),
    ]
    assert all(0 < one["median"] <= one["p95"] for one in figures)
