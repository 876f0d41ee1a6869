"""Any request is answered, or refused with a reason."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from visitor import SENTENCE

from glassformer.deploy.server.requests import TYPES
from glassformer.explain.interventions import CHANGE_KINDS

FUZZ = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}
TIMES = pytest.mark.parametrize("times", [6, pytest.param(20, marks=pytest.mark.long)])


@pytest.fixture(scope="module")
def client(live):
    with httpx.Client(base_url=live.address, timeout=30) as found:
        yield found


def post(client, address, **body):
    """As Python writes it, for a lone surrogate, NaN and numbers of any size are part of what is sent."""
    body = json.dumps({"text": SENTENCE, **body})
    return client.post(address, content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    "change",
    [
        {"kind": ["x"]},
        {"kind": {}},
        {"kind": None},
        {"kind": "\ud800" * 50},
        {"kind": "x" * 60_000},
        {"kind": "temperature", "value": 1e-300},
        {"kind": "temperature", "value": 10**400},
        {"kind": "temperature", "value": float("nan")},
        {"kind": "temperature", "value": float("inf")},
        {"kind": "temperature", "value": True},
        {"kind": "remove_layer", "stack": "encoder", "layer": 10**400},
        {"kind": "remove_layer", "stack": ["encoder"], "layer": 0},
        {"kind": "remove_head", "stack": "encoder", "layer": 0, "head": 0, "attention": []},
        {"kind": "swap_token", "position": 0, "piece": 5},
        {"kind": "swap_token", "position": 0, "piece": "\udfff"},
        {"kind": "swap_token", "position": 0, "id": 2**63},
        {"kind": "prefix", "ids": [10**400]},
        {"kind": "prefix", "pieces": [[]]},
        {"kind": "prefix", "ids": [4] * 10_000},
        json.loads("[" * 400 + "]" * 400),
    ],
    ids=lambda change: repr(change)[:50].encode("ascii", "replace").decode(),
)
def test_a_malformed_change_is_refused_with_a_reason(client, change):
    for address in ("/api/trace", "/api/whatif"):
        answer = post(client, address, changes=[change])
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["message"].startswith(("changes.0", "the prefix", "`")), answer.text
        assert len(answer.content) < 2000


@pytest.mark.parametrize("temperature", [1e-300, 5e-324, 10**400, -1, float("nan")])
def test_a_temperature_out_of_bounds_is_refused(client, temperature):
    assert post(client, "/api/trace", temperature=temperature).status_code == 422
    assert post(client, "/api/trace", temperature=0.001).status_code == 200


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
LIKELY = {
    "stack": st.sampled_from(["encoder", "decoder"]),
    "attention": st.sampled_from(["self", "cross"]),
    "mask": st.sampled_from(["causal", "padding"]),
    "piece": st.sampled_from(["one", "six", "</s>", "<pad>", "<unk>"]),
    "pieces": st.lists(st.sampled_from(["eins", "zwei", "</s>", "<s>"]), max_size=3),
    "ids": st.lists(st.integers(0, 9), max_size=3) | st.lists(st.just(4), min_size=60, max_size=70),
    "value": st.floats(1e-4, 1e4),
}


@st.composite
def near_changes(draw):
    """A change with the right fields, most of them with likely values."""
    kind = draw(st.sampled_from(sorted(CHANGE_KINDS)))
    fields = {name: draw(LIKELY.get(name, st.integers(-1, 4)) | ANYTHING) for name in CHANGE_KINDS[kind].fields}
    kept = draw(st.sets(st.sampled_from(sorted(fields)), min_size=max(0, len(fields) - 2))) if fields else ()
    return {"kind": kind} | {name: fields[name] for name in kept}


@pytest.mark.parametrize("address", ["/api/trace", "/api/whatif"])
@TIMES
def test_any_json_in_changes_is_answered(client, address, times):
    @settings(max_examples=2 * times, **FUZZ)
    @given(st.lists(near_changes() | ANYTHING, min_size=1, max_size=3), st.sampled_from([1, 1, 3]))
    def fuzz(changes, beam):
        answer = post(client, address, changes=changes, beam=beam)
        assert answer.status_code in (200, 422), (changes, answer.text)
        answer.json()

    fuzz()


def test_the_interface_describes_every_kind_of_change(client):
    described = client.get("/openapi.json").json()["components"]["schemas"]
    for kind, (fields, *_) in CHANGE_KINDS.items():
        assert set(described[kind]["properties"]) == {"kind", *fields}
        assert set(described[kind]["required"]) == {
            "kind",
            *(name for name, optional in fields.items() if not optional),
        }
    assert set(TYPES) == {name for kind in CHANGE_KINDS.values() for name in kind.fields}


OPERATIONS = (
    ("GET", "/api/model"),
    ("GET", "/api/weights"),
    ("POST", "/api/trace"),
    ("POST", "/api/whatif"),
    ("POST", "/api/translate"),
    ("GET", "/api/schematics"),
    ("POST", "/translate"),
    ("POST", "/translate_file"),
    ("GET", "/download_file/{name}"),
    ("POST", "/detect"),
    ("GET", "/languages"),
    ("GET", "/frontend/settings"),
    ("GET", "/health"),
    ("POST", "/v2/translate"),
    ("GET", "/v2/languages"),
    ("GET", "/v2/usage"),
    ("POST", "/api/words"),
    ("POST", "/api/alternatives"),
    ("GET", "/api/runs/{run}/blob"),
    ("GET", "/api/runs/{run}/json"),
    ("GET", "/api/runs/{run}/export"),
    ("GET", "/api/labs"),
    ("POST", "/api/labs/{name}"),  # names that are made up are no labs, so none is run
)


@pytest.fixture(scope="module")
def interface(live):
    import schemathesis

    return schemathesis.openapi.from_url(f"{live.address}/openapi.json")


def test_every_operation_is_described(interface):
    described = {(one.ok().method.upper(), one.ok().path) for one in interface.get_all_operations()}
    assert described == set(OPERATIONS)


@pytest.mark.parametrize("fitting", [True, False], ids=["fitting", "unfitting"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@TIMES
def test_any_request_is_answered(interface, method, path, fitting, times):
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error

    operation = interface[path][method]
    if not fitting and not (operation.body or "{" in path):
        return  # there is nothing in it that could be wrong

    mode = GenerationMode.POSITIVE if fitting else GenerationMode.NEGATIVE

    @settings(max_examples=times, **FUZZ)
    @given(case=operation.as_strategy(generation_mode=mode))
    def fuzz(case):
        case.call_and_validate(checks=[not_a_server_error])

    fuzz()
