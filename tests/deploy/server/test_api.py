"""The API of the page that looks inside: errors, ranges, limits, concurrency."""

from __future__ import annotations

import gc
import json
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from mmap import mmap
from types import FunctionType, ModuleType

import httpx
import pytest
import torch
from sockets import rest
from visitor import EXAMPLES, SENTENCE, Live

import glassformer as gf
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.app import Limits, create_app
from glassformer.deploy.server.directions import translator_directions
from glassformer.deploy.server.listen import host_names
from glassformer.deploy.server.middleware import LOCAL, host_name
from glassformer.deploy.server.requests import TraceRequest, WhatIfRequest
from glassformer.deploy.server.trace_api import RunCache, TraceApi
from glassformer.page import page_files


@pytest.fixture(scope="module")
def client(live):
    with httpx.Client(base_url=live.address, timeout=600) as found:
        yield found


def refused(answer, status, code):
    """The one form of every refusal; its reason."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "hint", "values"}
    assert error["code"] == code
    assert error["message"]
    return error


def test_model_description(client, translator):
    told = client.get("/api/model").json()
    assert told["model"]["name"] == "toy"
    assert [example["text"] for example in told["examples"]] == list(EXAMPLES)
    assert told["limits"] == {"source_tokens": 64, "beam": 8, "padding": 8, "new_tokens": 64, "continued": 24,
                              "characters": 2000, "waiting": 256}  # fmt: skip
    assert told["version"] == gf.__version__
    assert told["weights"] == gf.trace(translator, SENTENCE).manifest()["weights"]


def test_trace_equals_the_python_interface(client, translator):
    expected = gf.trace(translator, SENTENCE, beam=2, padding=1, name="toy")
    found = client.post("/api/trace", json={"text": SENTENCE, "beam": 2, "padding": 1}).json()
    assert found.pop("notes") == []
    assert found.pop("capped") == {}
    assert found == json.loads(json.dumps(expected.manifest()))
    assert client.get(f"/api/runs/{expected.run}/blob").content == expected.blob()
    assert client.get("/api/weights").content == expected.weights_blob()
    assert client.get(f"/api/runs/{expected.run}/json").json() == json.loads(json.dumps(expected.to_json()))
    page = client.get(f"/api/runs/{expected.run}/export")
    assert page.headers["content-type"].startswith("text/html")
    assert page.text == expected.to_html()


def test_target_prefix_and_changes(client, translator):
    found = client.post("/api/trace", json={"text": SENTENCE, "target": "eins zwei"}).json()
    assert found["target"]["pieces"][1:] == ["eins", "zwei"]
    prefix = found["target"]["ids"][1:]
    found = client.post("/api/trace", json={"text": SENTENCE, "prefix": prefix, "beam": 2}).json()
    assert found["output"]["ids"][:2] == prefix
    changes = [{"kind": "remove_layer", "stack": "encoder", "layer": 1}]
    told = client.post("/api/whatif", json={"text": SENTENCE, "changes": changes}).json()
    expected = gf.what_if(translator, SENTENCE, changes, name="toy").as_dict()
    assert {key: told[key] for key in expected} == json.loads(json.dumps(expected))
    for which in ("before", "after"):
        assert client.get(f"/api/runs/{told[which]['run']}/blob").status_code == 200


def test_translate(client, translator):
    found = client.post("/api/translate", json={"text": SENTENCE, "beam": 2}).json()
    best = translator.translate([SENTENCE], beam=2)[0][0]
    assert (found["text"], found["score"], found["tokens"]) == (best.text, best.score, best.tokens)


def test_ranges(client, translator):
    run = client.post("/api/trace", json={"text": SENTENCE}).json()["run"]
    address, whole = f"/api/runs/{run}/blob", gf.trace(translator, SENTENCE).blob()
    for asked, part in (("0-3", whole[:4]), ("8-", whole[8:]), ("-12", whole[-12:]), ("4-999999999", whole[4:])):
        answer = client.get(address, headers={"Range": f"bytes={asked}"})
        assert answer.status_code == 206
        assert answer.content == part
        first = whole.index(part) if len(part) > 12 else answer.headers["content-range"].split()[1].split("-")[0]
        assert answer.headers["content-range"].startswith(f"bytes {first}-")
    refused(client.get(address, headers={"Range": f"bytes={len(whole)}-"}), 416, "range")
    for odd in ("bytes=-", "bytes=3-1x", "lines=1-2", "bytes=0-1,4-5"):
        assert client.get(address, headers={"Range": odd}).content == whole


def test_values_beyond_the_limits_are_capped_with_a_note(client):
    found = client.post("/api/trace", json={"text": SENTENCE, "beam": 100, "padding": 10**30}).json()
    assert found["options"]["beam"] == 8
    assert found["options"]["padding"] == 8
    assert found["notes"] == ["beam capped at 8", "padding capped at 8"]
    assert found["capped"]["beam"] == {"asked": 100, "used": 8}
    told = client.post("/api/whatif", json={"text": SENTENCE, "beam": 9, "changes": [{"kind": "remove_scale"}]}).json()
    assert told["notes"] == ["beam capped at 8"]


def test_a_long_output_is_cut_with_a_note(translator):
    with Live(create_app(translator_directions(translator, "model"), limits=Limits(new_tokens=2))) as server:
        found = httpx.post(f"{server.address}/api/trace", json={"text": SENTENCE}).json()
    assert len(found["output"]["ids"]) == 2
    assert found["notes"] == ["new tokens capped at 2"]


def test_bad_input_is_refused_with_a_reason(client):
    post = client.post
    for empty in ("", "  ", "\n\t"):
        refused(post("/api/trace", json={"text": empty}), 422, "empty")
    error = refused(post("/api/trace", json={"text": "one " * 65}), 422, "long")
    assert error["values"] == {"tokens": 65, "limit": 64}
    refused(post("/api/translate", json={"text": "x" * 2001}), 422, "long_text")
    refused(post("/api/trace", content=b"{not json", headers={"content-type": "application/json"}), 400, "malformed")
    refused(post("/api/trace", content=b"\xff\xfe", headers={"content-type": "application/json"}), 400, "malformed")
    refused(post("/api/trace", content=b"[" * 30_000, headers={"content-type": "application/json"}), 400, "malformed")
    wrong = [
        {},
        {"text": 3},
        {"text": None},
        {"text": SENTENCE, "beam": "4"},
        {"text": SENTENCE, "beam": 0},
        {"text": SENTENCE, "beam": 1.5},
        {"text": SENTENCE, "beam": True},
        {"text": SENTENCE, "padding": -1},
        {"text": SENTENCE, "prefix": ["a"]},
        {"text": SENTENCE, "temperature": 0},
        {"text": SENTENCE, "temperature": 1e9},
        {"text": SENTENCE, "changes": {}},
        {"text": SENTENCE, "changes": [1]},
        {"text": SENTENCE, "changes": [{"kind": "remove_everything"}]},
        {"text": SENTENCE, "colour": "red"},
        [],
    ]
    for body in wrong:
        refused(post("/api/trace", json=body), 422, "invalid")
    text = b'{"text": "one", "temperature": NaN}'
    refused(post("/api/trace", content=text, headers={"content-type": "application/json"}), 422, "invalid")
    unknown = [
        {"prefix": [10**9]},
        {"prefix": [-1]},
        {"changes": [{"kind": "remove_head", "stack": "decoder", "layer": 99, "head": 0}]},
        {"changes": [{"kind": "swap_token", "position": 99, "piece": "six"}]},
        {"target": "eins " * 70},
    ]
    for more in unknown:
        refused(post("/api/trace", json={"text": SENTENCE, **more}), 422, "refused")
    refused(post("/api/whatif", json={"text": SENTENCE, "changes": []}), 422, "invalid")


def test_half_of_a_surrogate_pair_crashes_nothing(client):
    for text in (b'{"text": "\\ud800 one"}', b'{"text": "one", "\\udfff": 1}'):
        answer = client.post("/api/trace", content=text, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 422)
        answer.json()


def test_unknown_addresses_runs_and_methods(client):
    refused(client.get("/nothing"), 404, "unknown")
    refused(client.get("/api/nothing"), 404, "unknown")
    refused(client.get("/api/runs/0123456789abcdef/blob"), 404, "forgotten")
    refused(client.get("/api/runs/xyz/blob"), 422, "invalid")
    refused(client.get("/api/trace"), 405, "method")
    refused(client.delete("/api/model"), 405, "method")
    refused(client.post("/api/trace", content=b"x" * 70_000), 413, "large")


@pytest.mark.parametrize(
    "address",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/....//app.py",
        "/static/..%5c..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/main.js%00.txt",
        "/..%2f..%2f..%2fetc/passwd",
        "/api/runs/..%2f..%2fetc%2fpasswd/blob",
        "/static/",
        "/static/__init__.py",
    ],
)
def test_no_file_of_the_machine_can_be_read(live, address):
    # Sent as it stands: a client would tidy the address first.
    import http.client

    host = live.address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("GET", address)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status in (400, 404, 422), (address, answer.status)
    assert b"root:" not in content
    assert b"import" not in content


def test_foreign_hosts_and_origins_are_refused(live, translator):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:80", ""):
        refused(httpx.get(f"{live.address}/api/model", headers={"Host": host}), 403, "host")
    # What is added to a good one makes a bad one, but for a port.
    good, added = (
        ("localhost", "127.0.0.1", "[::1]"),
        (":", "[", "]", "@", ".", "/", "%", "#", "x", "evil.example", ":80:80"),
    )
    for host in [one + other + end for one in good for other in added for end in ("", "evil.example", "]:80")]:
        allowed = host.removesuffix(":") in good
        assert (host_name(host) in LOCAL) == allowed, host
    for host in (
        "[127.0.0.1]",
        "[localhost]",
        "::1",
        "evil.example@localhost",
        "[::1]evil.example",
        "localhost:evil.example",
    ):
        refused(httpx.get(f"{live.address}/api/model", headers={"Host": host}), 403, "host")
    for host in ("localhost", "localhost:1", "127.0.0.1:9", "[::1]:80", "LOCALHOST"):
        assert httpx.get(f"{live.address}/api/model", headers={"Host": host}).status_code == 200
    body = {"text": "one"}
    foreign = {"Origin": "http://evil.example"}
    refused(httpx.post(f"{live.address}/api/translate", json=body, headers=foreign), 403, "origin")
    own = {"Origin": live.address}
    assert httpx.post(f"{live.address}/api/translate", json=body, headers=own).status_code == 200


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(live, version):
    head = b"POST /translate HTTP/%s\r\nHost: localhost\r\nConnection: keep-alive\r\n" % version
    both = head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with socket.create_connection(live.socket.getsockname(), 60) as sent:
        sent.sendall(both + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = rest(sent)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_open_to_the_network_it_accepts_its_names_and_any_ip_address(translator):
    with Live(
        create_app(translator_directions(translator, "model"), hosts=host_names("box.lan"), by_address=True)
    ) as opened:
        address = f"{opened.address}/api/model"
        for host in ("box.lan", "BOX.LAN:80", "192.168.1.5:8017", "[fe80::1]:80", "localhost", socket.gethostname()):
            assert httpx.get(address, headers={"Host": host}).status_code == 200
        for host in ("evil.example", "192.168.1.5.evil.example", "1.2.3", "box.lan.evil.example", ""):
            refused(httpx.get(address, headers={"Host": host}), 403, "host")


def test_every_response_has_security_headers(client):
    for address in ("/", "/static/main.js", "/api/model", "/nothing"):
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_versioned_page_files_are_cached(client):
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    (script,) = re.findall(r'src="(static/v-\w+/main\.js)"', page.text)
    kept = client.get(f"/{script}")
    assert kept.text == page_files()["main.js"]
    assert kept.headers["cache-control"] == "max-age=31536000, immutable"
    # By no name, and by that of another edition, it is what there is now, and asked for again.
    for address in ("/static/main.js", "/static/v-0/main.js"):
        again = client.get(address)
        assert (again.text, again.headers["cache-control"]) == (kept.text, "no-cache")


def test_concurrent_traces_equal_single_ones(live, translator):
    asked = [{"text": f"one two {'six ' * n}", "beam": 2 - n % 2, "padding": n % 3} for n in range(8)]
    asked += [{"text": "one two", "temperature": 1 + n / 10} for n in range(4)]

    def ask(body):
        with httpx.Client(base_url=live.address, timeout=120) as client:
            manifest = client.post("/api/trace", json=body).json()
            return manifest, client.get(f"/api/runs/{manifest['run']}/blob").content

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, asked))
    for body, (manifest, blob) in zip(asked, found, strict=True):
        alone = gf.trace(translator, **{"sentence": body["text"], **{k: v for k, v in body.items() if k != "text"}})
        assert manifest["run"] == alone.run
        assert manifest["output"] == json.loads(json.dumps(alone.output))
        assert blob == alone.blob()


def test_too_many_waiting_requests_are_refused(translator):
    with Live(create_app(translator_directions(translator, "model"), limits=Limits(waiting=0))) as server:
        refused(httpx.post(f"{server.address}/api/trace", json={"text": "one"}), 429, "busy")


def test_the_run_cache_keeps_the_latest_used(translator):
    served = translator_directions(translator, "toy").get()
    manifests = [gf.trace(translator, text).manifest() for text in ("one", "two", "three")]
    for cache, kept in ((RunCache(max_runs=2), [True, False, True]), (RunCache(max_bytes=1), [False, False, True])):
        cache.add(manifests[0], b"values", served)
        cache.add(manifests[1], b"values", served)
        cache.get(manifests[0]["run"])
        cache.add(manifests[2], b"values", served)
        assert [cache.get(one["run"]) is not None for one in manifests] == kept
        assert len(cache) == sum(kept)


def held(root: object, apart: object) -> int:
    """Bytes of all that can be reached from an object, less what can be reached from another; of a tensor, its whole
    storage counts."""

    def reached(start: object) -> dict[int, int]:
        sizes, left = dict[int, int](), [start]
        while left:
            one = left.pop()
            if id(one) in sizes or isinstance(one, type | ModuleType | FunctionType):
                continue
            sizes[id(one)] = sys.getsizeof(one) + (len(one) if isinstance(one, mmap) else 0)
            if isinstance(one, torch.Tensor):
                storage = one.untyped_storage()
                sizes[storage.data_ptr()] = storage.nbytes()
            left += gc.get_referents(one)
        return sizes

    shared = reached(apart)
    return sum(size for one, size in reached(root).items() if one not in shared)


def test_the_run_cache_counts_all_that_it_holds(translator):
    directions = translator_directions(translator, "toy")
    api = TraceApi(directions, Limits(), handbook=False, translates=False)
    for text in ("one two three", "four five six " * 12):
        run = api.trace(TraceRequest(text=text, beam=8, padding=8), RequestState())["run"]
        api.what_if(WhatIfRequest(text=text, changes=[{"kind": "remove_scale"}]), RequestState())
        assert api.run(run).to_json()
        assert api.run(run).to_html()
        assert api.runs.size == pytest.approx(held(api, directions), rel=0.01)
    before = held(api, directions)
    api.trace_as_object = gf.trace(translator, "one two three")
    assert held(api, directions) - before > len(api.trace_as_object.blob())


def test_two_hosts_are_no_request(live):
    with socket.create_connection(live.socket.getsockname(), 60) as sent:
        sent.sendall(b"GET /languages HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert rest(sent).startswith(b"HTTP/1.1 400")
