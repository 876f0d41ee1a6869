"""The labs over HTTP and on the page: the numbers are the experiment's own, one runs at a time, nothing else waits."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import torch
from sampled import sampled
from sockets import post, until
from visitor import SENTENCE, Live, agrees

from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import translator_directions
from glassformer.deploy.server.trace_api import LabRunner
from glassformer.labs import NAMES, find
from glassformer.labs.experiment import Check, Finding, Lab
from glassformer.labs.figures import Figure, Text
from glassformer.labs.run import LabRun, run
from glassformer.labs.seeds import merge

T = Text("word", "词")


@pytest.fixture
def client(live):
    with httpx.Client(base_url=live.address, timeout=600) as found:
        yield found


@pytest.fixture
def labs(live):
    """The server's labs as they are before any request, and restored afterwards."""
    labs, fresh = live.app.state.labs, LabRunner()
    before = dict(vars(labs))
    vars(labs).update(vars(fresh) | {"worker": labs.worker, "execute": labs.worker.run})  # one process for all
    yield labs
    vars(labs).update(before)


def without_time_and_svg(report):
    return {name: value for name, value in report.items() if name not in ("seconds", "svg")}


def refused(answer, status, code):
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), answer.text
    assert error["message"]
    return error


@pytest.mark.parametrize("lang", sampled(["en", "zh"], ["zh"]))
def test_the_list_and_a_run_are_those_of_the_python_interface(client, labs, lang):
    answer = client.get("/api/labs", params={"lang": lang}).json()
    assert answer == {"labs": [find(name).as_dict(lang) for name in NAMES], "kept": [], "running": None}
    found = client.post("/api/labs/sinusoids", json={"seed": 2, "lang": lang}).json()
    expected = json.loads(json.dumps(run(find("sinusoids"), 2).as_dict(lang)))
    assert without_time_and_svg(found) == without_time_and_svg(expected)
    assert found["svg"].startswith('<svg class="lab-figure"')
    kept = client.get("/api/labs").json()["kept"]
    assert kept == [{"name": "sinusoids", "seed": 2, "verdict": "holds with limits"}]


def test_wrong_lab_requests_are_refused_with_a_reason(client, labs):
    error = refused(client.post("/api/labs/sinusoid", json={}), 404, "no_lab")
    assert "sinusoids" in error["hint"]
    for body in ({"seed": -1}, {"seed": 1.5}, {"seed": 2**31}, {"seed": "0"}, {"lang": "fr"}, {"colour": 1}, []):
        refused(client.post("/api/labs/sinusoids", json=body), 422, "invalid")
    refused(client.post("/api/labs/Sin%20usoids", json={}), 422, "invalid")
    refused(client.get("/api/labs", params={"lang": "fr"}), 422, "invalid")
    refused(client.get("/api/labs/sinusoids"), 405, "method")


def here(labs):
    """How to run one of `labs` in this process."""

    def run_here(name, seed):
        lab = labs.find(name)
        ran = LabRun(lab, merge([lab.run(seed)]), [seed], 0.0)
        return {language: {**ran.as_dict(language), "svg": None} for language in ("en", "zh")}

    return run_here


class Gate:
    """A lab that waits until it is let go."""

    def __init__(self, fails=False):
        self.open, self.begun, self.runs, self.fails = threading.Event(), threading.Event(), 0, fails
        self.lab = dataclasses.replace(find("sinusoids"), run=self.run)

    def put_on(self, labs):
        """In place of the lab of its name, in this process."""
        labs.find, labs.execute = lambda name: self.lab if name == self.lab.name else find(name), here(labs)

    def run(self, seed):
        self.runs += 1
        self.begun.set()
        assert self.open.wait(20)
        if self.fails:
            raise MemoryError("no room")
        return Finding({Text("seed", "种子"): seed}, [Check(T, 1.0, 1, 1)], Figure([]), T)


def test_one_lab_runs_at_a_time_and_other_requests_do_not_wait(client, labs):
    gate = Gate()
    gate.put_on(labs)
    with ThreadPoolExecutor(2) as pool:
        pending = [pool.submit(client.post, "/api/labs/sinusoids", json={"lang": lang}) for lang in ("en", "zh")]
        assert gate.begun.wait(20)
        assert client.get("/api/labs").json()["running"] == {"name": "sinusoids", "seed": 0}
        assert client.post("/api/translate", json={"text": SENTENCE}).status_code == 200
        for name, seed in (("scaling", 0), ("sinusoids", 1)):
            error = refused(client.post(f"/api/labs/{name}", json={"seed": seed}), 409, "lab_busy")
            assert error["values"] == {"name": "sinusoids", "seed": 0}
        gate.open.set()
        english, chinese = (one.result().json() for one in pending)
    assert (english["summary"], chinese["summary"]) == ("word", "词")
    assert client.post("/api/labs/sinusoids", json={}).json() == english
    assert gate.runs == 1
    assert client.get("/api/labs").json()["running"] is None


def test_a_failed_lab_can_run_again():
    gate = Gate(fails=True)
    gate.put_on(labs := LabRunner())
    gate.open.set()

    async def ask():
        for _ in range(2):
            with pytest.raises(MemoryError):
                await labs.run("sinusoids", 0)
        gate.fails = False
        return await labs.run("sinusoids", 0)

    with ThreadPoolExecutor(1) as apart:  # the browser of other tests keeps a loop running in this thread
        assert apart.submit(asyncio.run, ask()).result()["en"]["numbers"] == {"seed": 0}
    assert gate.runs == 3


def test_a_lab_changes_no_thread_of_the_server(client, labs):
    """torch gives a thread that is born later whatever number of threads was set last, by anyone."""
    before, seen = torch.get_num_threads(), set()
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(client.post, "/api/labs/sinusoids", json={"seed": 3})
        while not pending.done():
            running = client.get("/api/labs").json()["running"]
            born = threading.Thread(target=lambda at=running: seen.add((at is None, torch.get_num_threads())))
            born.start()
            born.join()
            assert client.post("/api/translate", json={"text": SENTENCE}).status_code == 200
    assert pending.result().json()["verdict"] == "holds with limits"
    assert (False, before) in seen  # it was running
    assert {number for _, number in seen} == {before}


def test_a_lab_ends_with_its_server(translator):
    with (
        Live(app := create_app(translator_directions(translator, "model"))) as server,
        post(server, "/api/labs/sinusoids", seed=7),
    ):
        until(lambda: app.state.labs.worker.process)
        process = app.state.labs.worker.process
    assert not process.is_alive()


def test_a_killed_lab_is_an_error_and_the_next_one_runs(client, labs):
    assert client.post("/api/labs/sinusoids", json={"seed": 4}).status_code == 200
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(client.post, "/api/labs/residuals", json={"seed": 4})
        until(lambda: client.get("/api/labs").json()["running"])
        labs.worker.process.kill()
        refused(pending.result(), 500, "lab_broke")
    assert client.post("/api/labs/sinusoids", json={"seed": 5}).json()["verdict"] == "holds with limits"


def table(page, name):
    rows = page.page.locator(f"[data-testid={name}] tbody tr")
    return [row.locator("td").all_inner_texts() for row in rows.all()]


@pytest.mark.parametrize(
    ("lang", "theme", "width"), [("en", "light", 1280), pytest.param("zh", "dark", 390, marks=pytest.mark.long)]
)
def test_the_page_runs_a_lab_and_shows_the_servers_numbers(visit, client, labs, lang, theme, width):
    page = visit(viewport={"width": width, "height": 900})
    page.go(text=SENTENCE, view="labs", lang=lang, theme=theme)
    titles = page.page.locator(".lab-title").all_inner_texts()
    assert titles == [find(name).title.say(lang) for name in NAMES]
    page.page.locator("[data-lab=sinusoids]").click()
    page.page.wait_for_selector("[data-testid=lab]")
    assert page.page.locator("[data-testid=lab-figure]").count() == 0
    page.page.locator("[data-testid=lab-run]").click()
    page.page.wait_for_selector("[data-testid=lab-figure]")
    report = client.post("/api/labs/sinusoids", json={"lang": lang}).json()
    assert page.text("[data-testid=lab-verdict]") == report["verdict_text"]
    assert report["summary"] in page.text("[data-testid=lab]")
    shown = table(page, "lab-numbers")
    assert [name for name, _ in shown] == list(report["numbers"])
    assert all(agrees(text.split(" ±")[0], report["numbers"][name]) for name, text in shown)
    assert any("±" in text for _, text in shown)
    for (mark, text, value, _), check in zip(table(page, "lab-checks"), report["checks"], strict=True):
        assert (mark == "✓") is check["passed"]
        assert text.startswith(check["text"])
        assert agrees(value.split(" ±")[0], check["value"])
    picture = page.page.locator("[data-testid=lab-figure] img")
    assert picture.get_attribute("alt") == "; ".join(panel["title"] for panel in report["figure"]["panels"])
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 900
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    assert "lab=sinusoids" in page.page.url
    # The address alone shows it again, from what the server has kept.
    other = visit()
    other.open(page.page.url[page.page.url.index("#") :])
    other.page.wait_for_selector("[data-testid=lab-figure]")
    assert other.text("[data-testid=lab-verdict]") == report["verdict_text"]
    page.page.go_back()
    page.page.wait_for_selector("[data-testid=lab]", state="detached")
    assert page.errors == []
    assert page.outside == []


def test_without_matplotlib_the_page_shows_numbers_and_what_to_install(visit, labs):
    checks = [Check(T, 1, low=2), Check(T, 2, extent=True)]
    finding = Finding({Text("size", "大小"): float("inf")}, checks, Figure([]), T)
    claim = {"title": T, "claim": T, "prediction": T, "change": T}
    labs.find, labs.execute = lambda name: Lab(name=name, run=lambda seed: finding, **claim), here(labs)
    page = visit()
    page.go(text=SENTENCE, view="labs", lab="heads")
    page.page.locator("[data-testid=lab-run]").click()
    page.page.wait_for_selector("[data-testid=lab-numbers]")
    assert "pip install 'glassformer[plot]'" in page.text("[data-testid=lab]")
    assert page.text("[data-testid=lab-verdict]") == "does not hold"
    assert table(page, "lab-numbers") == [["size", "∞"]]
    assert page.errors == []


@pytest.mark.long
def test_a_busy_server_is_shown_and_the_seed_is_checked(visit, labs):
    gate = Gate()
    gate.put_on(labs)
    page = visit()
    page.go(text=SENTENCE, view="labs", lab="sinusoids")
    page.page.locator("[data-testid=lab-seed]").fill("-1")
    page.page.locator("[data-testid=lab-run]").click()
    assert page.page.locator("[data-testid=lab-seed]:user-invalid").count() == 1
    assert not gate.begun.is_set()
    page.page.locator("[data-testid=lab-seed]").fill("5")
    page.page.locator("[data-testid=lab-run]").click()
    page.page.wait_for_selector(".lab-progress")
    while not gate.begun.is_set():
        page.page.wait_for_timeout(10)  # the browser's requests pass through this thread
    assert "seed=5" in page.page.url
    other = visit()
    other.go(text=SENTENCE, view="labs", lab="scaling")
    other.page.locator("[data-testid=lab-run]").click()
    assert "sinusoids" in other.page.wait_for_selector("[data-testid=lab-error]").inner_text()
    page.page.locator("[data-key='tab:trace']").click()
    page.page.wait_for_selector("main[data-view=trace]")
    gate.open.set()
    page.page.locator("[data-key='tab:labs']").click()
    page.page.wait_for_selector("[data-testid=lab-verdict]")
    assert table(page, "lab-numbers") == [["seed", "5.000"]]


@pytest.mark.long
def test_a_saved_page_has_no_labs(visit, translator, tmp_path):
    import glassformer as gf

    file = tmp_path / "saved.html"
    gf.trace(translator, SENTENCE).to_html(file)
    page = visit(file.as_uri())
    page.page.goto(f"{file.as_uri()}#view=labs")
    page.page.wait_for_selector("main[data-view=flow] > section")
    assert page.page.locator("[data-key='tab:trace']").count() == 1
    assert page.page.locator("[data-key='tab:labs']").count() == 0
    assert page.errors == []
