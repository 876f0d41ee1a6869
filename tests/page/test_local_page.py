"""The page that needs no server: static files, a real browser, and the numbers of `gf.trace`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from sampled import sampled
from starlette.staticfiles import StaticFiles
from test_page_numbers import check_equation, picks
from visitor import Live, Visit, printed, unit

import glassformer as gf
from glassformer.common.errors import GlassformerError
from glassformer.data import About, Tokenizer
from glassformer.data.vocabulary import TokenizerOptions
from glassformer.page import page_files
from glassformer.pipelines import box

SENTENCE = "two three, four (one) nine"
TEXT = [
    "one two three four five",
    "eins zwei drei vier fünf",
    "one one, (two) three! nine nine?",
    "sechs, neun (vier)!",
]
ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "graphs"  # of the small model, made by make_graphs.py


def serve(folder: Path) -> Live:
    """A plain file server, as `python -m http.server` is."""
    return Live(StaticFiles(directory=folder, html=True, follow_symlink=True))


def tokenizer(kind, texts, size):
    return Tokenizer.train([(text, text) for text in texts], TokenizerOptions(kind=kind, vocab_size=size))


def small_translator() -> gf.Translator:
    """Of a model that has learnt nothing, and writes all the more different tokens."""
    text = tokenizer("bpe", TEXT * 30, 300)
    config = gf.ModelConfig(
        vocab_size=text.tgt_size, d_model=16, heads=2, d_ff=24, layers=1, max_length=64, gated=True, activation="silu"
    )
    model = gf.EncoderDecoder(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.8)
    return gf.Translator(model, text, about=About(source="en", target="de", examples=(SENTENCE,)))


@pytest.fixture(scope="module")
def small():
    return small_translator()


@pytest.fixture(scope="module")
def runtime():
    """What an export to a page needs."""
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from glassformer.deploy.export.runtime import runtime_files

    try:
        runtime_files()
    except GlassformerError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def site(small, runtime, tmp_path_factory):
    """An export, checked as all are, of graphs that were captured before: see make_graphs.py."""
    import onnx

    from glassformer.deploy.export import page as exporting

    folder = tmp_path_factory.mktemp("page") / "site"
    *two, third = (onnx.load(KEPT / f"{name}.onnx") for name in exporting.GRAPHS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "encoder_and_decoder", lambda model: two)
        patch.setattr(exporting, "trace_graph", lambda model, values: third)
        made = gf.export(small, "page", folder, sentences=1)
    assert made.report["figures"]["traced"]["numbers"] > 1000
    with serve(folder) as files:
        files.folder = folder
        yield files


@pytest.mark.long
def test_graphs_that_are_captured_now_make_the_same_page(small, site, tmp_path):
    made = gf.export(small, "page", tmp_path / "new", sentences=20)
    assert made.report["figures"]["greedy"]["sentences"] == 20
    assert {*made.report["files"]} == {str(file.relative_to(site.folder)) for file in site.folder.rglob("*.*")} - {
        "report.json"
    }
    for name in ("weights.bin", "told.json", "config.json"):
        assert (tmp_path / "new" / "model" / name).read_bytes() == (site.folder / "model" / name).read_bytes(), name


@pytest.fixture(scope="module")
def page(chromium, site):
    """One visit for all that look: to open it is most of the work."""
    made = Visit(chromium, site.address + "/")
    made.page.set_default_timeout(60_000)
    made.go()
    yield made
    made.context.close()
    assert made.errors == []
    assert made.outside == []


def near(text, value):
    """Whether what is printed is the value, within 1e-4 of it and what printing rounds."""
    if not math.isfinite(value):
        return text == {math.inf: "\u221e", -math.inf: "\u2212\u221e"}[value]
    return abs(printed(text) - value) <= 0.5000001 * unit(text) + 1e-4 * abs(value) + 1e-9


@pytest.mark.parametrize(
    ("state", "count"),
    [pytest.param({}, 16, marks=pytest.mark.long), ({"beam": 3, "padding": 2}, 16)],
    ids=["greedy", "beam"],
)
def test_every_kind_of_value_is_that_of_a_trace(page, small, state, count):
    trace = gf.trace(small, SENTENCE, **state)
    for name, index in picks(trace, count):
        shown = page.pick(name, index, text=SENTENCE, **state)
        assert near(shown["result"], float(trace[name][index])), (name, index, shown, float(trace[name][index]))
        check_equation(shown, name, index)


def test_what_is_typed_is_translated_here(page, small):
    page.go(text=SENTENCE)
    assert page.page.locator("[data-testid=output]").text_content() == small(SENTENCE)
    for text in ("four", "nine (nine) two", "ünknown ☃"):
        page.page.locator("#sentence").fill(text)
        page.page.wait_for_function("text => location.hash.includes(encodeURIComponent(text))", arg=text)
        page.page.wait_for_selector("html:not([data-stale])")
        assert page.page.locator("[data-testid=output]").text_content() == small(text)


MANIFEST = """async ({text, beam, padding, prefix}) => {
    const {LocalSource} = await import(new URL("static/local_source.js", document.baseURI));
    const source = window.second ??= new LocalSource("model/");
    const {run} = await source.run({text, beam, padding, prefix, changes: []}, new AbortController().signal);
    return run.manifest;
}"""


OPTIONS = {
    "greedy": {"beam": 1, "padding": 0, "prefix": []},
    "beam": {"beam": 4, "padding": 1, "prefix": []},
    "prefix": {"beam": 2, "padding": 0, "prefix": [21, 77]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_manifest_is_the_servers(page, small, options):
    found = page.page.evaluate(MANIFEST, {"text": SENTENCE, **options})
    ours = json.loads(json.dumps(gf.trace(small, SENTENCE, **options).manifest()))
    for part in found.keys() & ours.keys() - {"run", "tensors", "steps", "beam", "output", "cache"}:
        assert found[part] == ours[part], part
    rows, expected = (
        [{key: row[key] for key in row.keys() - {"low", "high"}} for row in manifest["tensors"]]
        for manifest in (found, ours)
    )
    assert rows == expected
    for part in ("steps", "beam", "output"):
        assert alike(found[part], ours[part]), part
    assert found["cache"]["steps"] == ours["cache"]["steps"]
    assert found["cache"]["equal"] is True


def alike(a, b):
    """Equal, numbers up to rounding; of two as likely as each other, either may come first."""
    if isinstance(b, dict):
        return isinstance(a, dict) and a.keys() == b.keys() and all(alike(a[key], b[key]) for key in b)
    if isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(b, float):
        return a == pytest.approx(b, rel=1e-4, abs=2e-5)
    return a == b


@pytest.mark.long
def test_every_view_is_drawn_in_both_languages_on_a_phone(page):
    page.page.set_viewport_size({"width": 390, "height": 844})
    for lang in ("en", "zh"):
        for view in ("flow", "block", "cell", "positions", "decode", "cache", "trace"):
            page.go(view=view, lang=lang)
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "glassformer serve" in page.text("[data-testid=in-page]")
    assert page.page.locator("#tab-labs, #tab-whatif").count() == 0


@pytest.mark.long
def test_a_file_that_is_missing_is_reported(chromium, site):
    page = Visit(chromium, site.address)
    page.context.route("**/weights.bin", lambda route: route.fulfill(status=404, body=""))
    page.page.goto(site.address)
    page.page.wait_for_selector("[data-testid=error]")
    assert "http.server" in page.text("[data-testid=error]")
    page.forgive(404)
    assert page.errors == []
    page.context.close()


CUT = """async ([file, texts]) => {
    const {Tokenizer} = await import(new URL("tokenizer.js", document.baseURI));
    const text = new Tokenizer(file);
    return texts.map((one) => {
        const ids = text.encode(one);
        return [ids, text.target.decode(text.target.encode(one)), text.source.readable(ids), text.unfamiliar(one)];
    });
}"""


UNUSUAL = [
    "", " ", "  two  spaces ", "a\tb\u00a0c\u3000d\u0085e", "🙂👩‍👩‍👧 1/2 ½ ٣", "don't won’t it's x'abc",
    "<pad></s><2de>", "<0x41>", "!" * 40, "é e\u0301 ﬁ ǅ", "ภาษาไทย 日本語カタカナ", "\ufeffbom", "ßẞ",
]  # fmt: skip


@pytest.mark.parametrize("kind", sampled(["bpe", "unigram", "en-de"], ["bpe", "unigram"]))
def test_text_is_cut_as_python_cuts_it(chromium, tmp_path, kind):
    """On real text: the handbook's in both languages, and what is unusual."""
    from glassformer.deploy.export.page import tokenizer_data

    for name, text in page_files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "empty.html").write_text("<!doctype html><title>text</title>", encoding="utf-8")
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "docs" / "zh" / "06-masks.md"]
    texts = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()][-300:]
    shipped = box.folder("en-de")
    ours = Tokenizer.load(shipped).toward("de") if kind == "en-de" else tokenizer(kind, texts, 1000)
    texts += UNUSUAL
    with serve(tmp_path) as files:
        page = chromium.new_page()
        page.goto(files.address + "/empty.html")
        found = page.evaluate(CUT, [tokenizer_data(ours), texts])
        page.close()
    ids = ours.encode_source(texts)
    for text, wanted, (got, again, pieces, unmet) in zip(texts, ids, found, strict=True):
        assert got == wanted, text
        assert again == ours.decode_target(ours.encode_target([text]))[0], text
        assert pieces == ours.source_pieces(wanted)
        assert unmet == ours.unfamiliar([text]), text


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of a handbook that has it to try."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    import hooks

    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "chapter.html").write_text(f"<!doctype html><meta charset=utf-8>{hooks.to_try('zh')}")
    return tmp_path / "zh" / "chapter.html"


def test_without_a_server_the_handbook_says_what_to_do(chromium, chapter):
    page = chromium.new_page()
    page.goto(chapter.as_uri())
    assert page.locator("iframe").count() == 0
    assert "http.server" in page.locator(".try-it").inner_text()
    page.close()


@pytest.mark.long
def test_the_handbook_shows_it_in_place(chromium, chapter, site, small, tmp_path):
    (tmp_path / "page").symlink_to(site.folder)
    with serve(tmp_path) as files:
        page = chromium.new_page()
        page.goto(f"{files.address}/zh/chapter.html")
        inside = page.frame_locator("iframe")
        inside.locator("[data-testid=output]:not(:empty)").wait_for(timeout=60_000)
        assert inside.locator("[data-testid=output]").text_content() == small(SENTENCE)
        assert inside.locator("html").get_attribute("lang").startswith("zh")
        page.close()
