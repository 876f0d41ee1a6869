"""One `Search` owns every option of decoding: the same mistake is told the same wherever an option is given."""

import dataclasses
import pickle
import re
from typing import Any, get_type_hints

import pytest
from tiny_model import SRC, tiny
from tiny_translators import tiny_bundle

import glassformer as gf
from glassformer.common.errors import ConfigError
from glassformer.decode import stream
from glassformer.decode.search import SearchOptions
from glassformer.pipelines.translator import Translator


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return Translator.load(tiny_bundle(tmp_path_factory.mktemp("options") / "model"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"beam": 0}, "beam=0 must be at least 1; 1 is greedy search"),
    ({"beam": -(10**60)}, "beam=-100000"),
    ({"beam": 1.5}, "beam=1.5 is of type float; it must be int"),
    ({"beam": True}, "beam=True must be a whole number"),
    ({"nbest": 0}, "nbest=0 must be at least 1; 1 gives the best alone"),
    ({"beam": 2, "nbest": 3}, "nbest=3 must lie between 1 and beam=2; beam=3 is wide enough"),
    ({"length_penalty": float("nan")}, "length_penalty=nan must be a finite number"),
    ({"length_rule": "gntm"}, "length_rule='gntm' is not one of `average`, `gnmt`; did you mean `gnmt`?"),
    ({"stopping": "exactly"}, "stopping='exactly' is not one of `exact`, `huggingface`; did you mean `exact`?"),
    ({"beam": 2, "sampling": gf.Sampling()}, "sampling draws one target at a time; use beam=1, not 2"),
    ({"repetition_penalty": 0.0}, "repetition_penalty=0.0 must be above 0; 1 changes nothing"),
    ({"repetition_penalty": float("inf")}, "repetition_penalty=inf must be a finite number"),
    ({"no_repeat_ngram": -1}, "no_repeat_ngram=-1 must be at least 0; 0 allows every repetition"),
    ({"max_new_tokens": 0}, "max_new_tokens=0 must be at least 1; leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "error"), WRONG, ids=[error.split(" ")[0] for _, error in WRONG])
def test_a_wrong_option_gives_the_same_error_everywhere(translator, wrong, error):
    model, one = tiny(), SRC[:1]
    calls = [
        lambda: gf.Search(**wrong),
        lambda: gf.generate(model, SRC, **wrong),
        lambda: gf.generate(model, SRC, search=gf.Search(beam=1), **wrong),
        lambda: stream(model, one, **wrong),
        lambda: translator.translate([], **wrong),
        lambda: translator.stream("one", **wrong),
    ]
    texts = set()
    for call in calls:
        with pytest.raises(ConfigError, match=re.escape(error)) as caught:
            call()
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert len(texts.pop()) < 200


FLAGS = [(wrong, error) for wrong, error in WRONG if not {"stopping", "sampling", "max_new_tokens"} & set(wrong)]


@pytest.mark.parametrize(("wrong", "error"), FLAGS, ids=[error.split(" ")[0] for _, error in FLAGS])
def test_the_command_names_the_flag(cli, tmp_path, wrong, error):
    """Before the model is loaded: there is none."""

    def flag(name):
        return "--" + name.replace("_", "-")

    words = [word for name, value in wrong.items() for word in (flag(name), str(value))]
    code, _, err = cli("translate", tmp_path / "none", "text", *words)
    assert code == 2
    if isinstance(next(iter(wrong.values())), float | bool) and "beam" in wrong:
        assert "--beam" in err  # typer's own: it reads whole numbers only
        return
    assert err.startswith("glassformer: " + re.sub(r"\b(\w+)=", lambda name: flag(name[1]) + " ", error))


def test_the_server_names_the_field(translator):
    from fastapi.testclient import TestClient

    from glassformer.deploy.server.app import create_app
    from glassformer.deploy.server.directions import translator_directions

    client = TestClient(create_app(translator_directions(translator, "model")), base_url="http://localhost")
    for address in ("translate", "trace", "whatif"):
        more = {"changes": [{"kind": "remove_scale"}]} if address == "whatif" else {}
        answer = client.post(f"/api/{address}", json={"text": "one", "beam": 0, **more})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (422, "invalid")
        assert (error["message"], error["hint"]) == ("beam=0 must be at least 1", "1 is greedy search")


def test_an_option_that_is_not_there_is_refused(translator):
    wrong = {"repetition_penality": 1.2}
    for call in (
        lambda: gf.generate(tiny(), SRC, **wrong),
        lambda: stream(tiny(), SRC[:1], **wrong),
        lambda: translator.translate(["one"], **wrong),
    ):
        with pytest.raises(ConfigError, match="option `repetition_penality`; did you mean `repetition_penalty`"):
            call()


def test_a_stream_takes_no_beam(translator):
    for call in (lambda: stream(tiny(), SRC[:1], beam=2), lambda: translator.stream("one", beam=2)):
        with pytest.raises(ConfigError, match=r"as beam=2 would; use beam=1"):
            call()


def test_a_search_is_a_value():
    one, two = (gf.Search(beam=4, sampling=None, length_penalty=0.6) for _ in range(2))
    assert one == two != gf.Search(beam=4)
    assert len({one, two, gf.Search()}) == 2
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.beam = 2
    with pytest.raises(TypeError):
        gf.Search(4)  # a position could mean anything
    with pytest.raises(ConfigError, match="nbest=3"):
        dataclasses.replace(one, beam=2, nbest=3)


def test_every_option_can_be_given_by_name():
    assert set(get_type_hints(SearchOptions)) == {field.name for field in dataclasses.fields(gf.Search)}


def test_given_whole_by_name_or_by_the_contracts_positions_it_is_the_same_search(translator):
    model, whole = tiny(3, size=9), gf.Search(beam=3, length_penalty=0.5, nbest=2, max_new_tokens=5)
    found = gf.generate(model, SRC, search=whole)
    assert [len(best) for best in found] == [2, 2]
    assert gf.generate(model, SRC, None, 3, 0.5, 2, 5) == found
    assert gf.generate(model, SRC, src_mask=None, beam=3, length_penalty=0.5, nbest=2, max_new_tokens=5) == found
    assert gf.generate(model, SRC, search=whole, nbest=1) == [best[:1] for best in found]  # a name wins
    texts = ["the dog", "a red house"]
    assert translator.translate(texts, search=whole) == translator.translate(
        texts, beam=3, length_penalty=0.5, nbest=2, max_new_tokens=5
    )


def test_a_translation_may_be_given_a_limit(translator):
    texts = ["the dog", "a red house"]
    whole, cut = translator.translate(texts), translator.translate(texts, max_new_tokens=2)
    for one, two, text in zip(whole, cut, texts, strict=True):
        assert two[0].tokens == one[0].tokens[:2] != one[0].tokens
        assert "".join(translator.stream(text, max_new_tokens=2)) == two[0].text
    with pytest.raises(ConfigError, match="max_new_tokens=9999 is too many"):
        translator.translate(["one"], max_new_tokens=9999)
