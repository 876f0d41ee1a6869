"""A trace as one file: every module of the page is inside, under a name that needs no server."""

import base64
import json
import re

import numpy as np
import pytest
from tiny import translator

import glassformer as gf
from glassformer.common.errors import GlassformerError
from glassformer.explain import html_page as page_module
from glassformer.page import page_files


@pytest.fixture(scope="module")
def tr():
    return gf.trace(translator(), "one </script> two <!-- three", padding=1)


def script(page):
    return re.search(r"<script>window\.GLASSFORMER_EMBEDDED = (.*);</script>", page).group(1)


def payload(page):
    return json.loads(script(page), parse_constant=pytest.fail)


def test_the_run_is_inside(tr):
    found = payload(tr.to_html())
    assert found["manifest"] == json.loads(json.dumps(tr.manifest()))
    assert base64.b64decode(found["blob"]) == tr.blob()
    assert base64.b64decode(found["weights"]) == tr.weights_blob()
    assert np.isneginf(np.frombuffer(base64.b64decode(found["blob"]), "<f4")).any()


def test_no_text_can_end_the_script(tr):
    page = tr.to_html()
    assert "<" not in script(page)
    assert payload(page)["manifest"]["text"] == "one </script> two <!-- three"
    title = re.search("<title>(.*?)</title>", page).group(1)
    assert title == "one &lt;/script&gt; two &lt;!-- three · glassformer"


def test_every_module_is_inside_and_finds_the_others(tr):
    text = tr.to_html()
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', text).group(1))["imports"]
    assert set(modules) == {f"glassformer/{name}" for name in page_files() if name.endswith(".js")}
    for name, held in modules.items():
        source = base64.b64decode(held.partition("base64,")[2]).decode()
        asked = re.findall(r"""(?:from|import)\s*\(?\s*["']((?:\.|glassformer/)[^"']+)["']""", source)
        assert all(other in modules for other in asked), name
        assert "import.meta" not in source
    assert 'import "glassformer/main.js"' in text
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", outside)
    sheets = [sheet for name, sheet in page_files().items() if name.endswith(".css")]
    assert sheets
    assert all(sheet in text for sheet in sheets)


def test_weights_too_large_stay_outside(tr, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_WEIGHTS", 1000)
    assert payload(tr.to_html())["weights"] is None


def test_written_to_a_file(tr, tmp_path):
    assert tr.to_html(tmp_path / "x.html") == (tmp_path / "x.html").read_text(encoding="utf-8")
    for write in (tr.to_html, tr.save):
        with pytest.raises(GlassformerError, match="folder that exists"):
            write(tmp_path / "no" / "x.html")
