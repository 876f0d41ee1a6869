"""`gf.trace`: the values are the model's own, told by name, and looking changes nothing."""

import gc
import io
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import WORDS, tiny, translator

import glassformer as gf
from glassformer.common.errors import GlassformerError, InputError
from glassformer.explain.weights import fingerprint

SOURCE = [5, 9, 4, 17, 3]
TEXT = "one two seven ten"


@pytest.fixture(scope="module")
def t():
    return translator()


@pytest.fixture(scope="module")
def tr(t):
    return gf.trace(t, TEXT, padding=2)


def test_the_output_is_that_of_the_fast_path(t):
    for text in (TEXT, "nine", "three three"):
        for beam in (1, 3):
            (best,) = t.translate([text], beam=beam)[0]
            found = gf.trace(t, text, beam=beam)
            assert found.output["text"] == best.text
            assert found.output["pieces"] == best.tokens
            assert found.output["score"] == pytest.approx(best.score, abs=1e-5)
            if found.output["finished"]:
                assert found.steps[-1]["total"] / len(found.steps) == pytest.approx(best.score, abs=1e-5)


def test_traced_logits_are_the_models(t, tr):
    """The traced pass and the fast one agree; padding changes nothing."""
    with torch.no_grad():
        src = torch.tensor([t.tokenizer.encode_source([TEXT])[0]])
        logits = t.model(src, torch.tensor([tr.manifest()["target"]["ids"]]))[0]
    assert torch.allclose(tr["logits"], logits, atol=1e-5)


def test_the_manifest_keeps_the_contract(t, tr):
    m = json.loads(json.dumps(tr.manifest(), allow_nan=False))
    assert m["format"] == "glassformer-trace/1"
    assert len(m["run"]) == 16
    assert m["model"]["kind"] == "encoder-decoder"
    assert (m["model"]["encoder_layers"], m["model"]["heads"], m["model"]["d_head"]) == (2, 4, 4)
    assert m["model"]["parameters"] == sum(p.numel() for p in t.model.parameters())
    assert m["options"] | {"max_new_tokens": 0} == {
        "beam": 1, "length_penalty": 1.0, "max_new_tokens": 0, "padding": 2, "temperature": 1.0, "prefix": [],
    }  # fmt: skip
    assert m["source"]["real"] == [True] * 4 + [False] * 2
    assert m["source"]["pieces"] == [*TEXT.split(), "<pad>", "<pad>"]
    assert m["target"]["pieces"][0] == "<s>"
    assert len(m["steps"]) == len(m["target"]["ids"])
    assert m["masks"] == ["masks.encoder", "masks.decoder", "masks.cross"]
    names = [row["name"] for row in m["tensors"]]
    for part in ["q", "k", "v", "products", "scores", "masked", "pattern", "context", "merged", "output"]:
        assert f"decoder.blocks.1.cross_attention.{part}" in names
    blob = tr.blob()
    assert max(row["offset"] + row["bytes"] for row in m["tensors"]) == len(blob)
    assert max(row["offset"] + row["bytes"] for row in m["weights"]) == len(tr.weights_blob())
    for row in m["tensors"]:
        value = np.frombuffer(blob, "<f4", count=row["bytes"] // 4, offset=row["offset"]).reshape(row["shape"])
        assert (value == tr[row["name"]].numpy()).all()
        assert len(row["axes"]) == len(row["shape"])
        finite = value[np.isfinite(value)]
        assert (row["low"], row["high"]) == (finite.min(), finite.max())
    offsets = {row["name"]: row["offset"] for row in m["tensors"]}
    assert offsets["memory"] == offsets["encoder.norm"]


def test_minus_infinity_survives(tr, tmp_path):
    tr.save(tmp_path / "x.json")
    m = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert m["blob"] == "x.bin"
    row = next(r for r in m["tensors"] if r["name"] == "encoder.blocks.0.self_attention.masked")
    blob = (tmp_path / "x.bin").read_bytes()
    value = np.frombuffer(blob, "<f4", count=row["bytes"] // 4, offset=row["offset"]).reshape(row["shape"])
    assert np.isneginf(value[:, :, 4:]).all()
    assert np.isfinite(value[:, :, :4]).all()
    inline = next(r for r in tr.to_json("*.masked")["tensors"] if r["name"] == row["name"])
    assert inline["values"][0][0][4] == "-inf"
    json.dumps(tr.to_json(), allow_nan=False)


def test_saving_replaces_an_older_trace_and_nothing_else(tr, tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"weights")
    with pytest.raises(InputError, match=r"pytorch_model.bin is there, and not as the values of a trace"):
        tr.save(tmp_path / "pytorch_model.json")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("pytorch_model.bin", b"weights")]
    for _ in range(2):
        tr.save(tmp_path / "x.json")
    assert (tmp_path / "x.bin").read_bytes() == tr.blob()


def test_masks(tr):
    assert list(tr.masks) == ["masks.encoder", "masks.decoder", "masks.cross"]
    T = len(tr.steps)
    assert torch.equal(tr["masks.decoder"], torch.ones(T, T).tril())
    assert torch.equal(tr["masks.cross"], torch.tensor([[1.0] * 4 + [0.0] * 2]).expand(T, -1))
    assert tr["encoder.blocks.0.self_attention.pattern"][:, :, 4:].abs().max() == 0


def test_names_slices_and_near_misses(tr):
    assert len(tr.names("*.pattern")) == 6
    pattern = tr["decoder.blocks.0.cross_attention.pattern"]
    assert torch.equal(tr["decoder.blocks.0.cross_attention.pattern", 1, :, 2], pattern[1, :, 2])
    with pytest.raises(InputError, match=r"did you mean `decoder\.blocks\.0\.cross_attention\.pattern`\?"):
        tr["decoder.blocks.0.cross_atention.patern"]
    with pytest.raises(InputError, match=r"did you mean `encoder\.blocks\.0\.self_attention\.pattern`\?"):
        tr.select("*.patern")
    with pytest.raises(InputError, match=r"the names end in .*`pattern`"):
        tr.select("zzz")
    with pytest.raises(InputError, match="numbered 0 to 1"):
        tr.select("*", layer=2)
    with pytest.raises(InputError, match="layer 0 has no value named `memory`"):
        tr.select("memory", layer=0)


def test_steps_tell_the_output(tr):
    shares = tr["probabilities"]
    total = 0.0
    for i, step in enumerate(tr.steps):
        best = shares[i].topk(10)
        assert [row["id"] for row in step["top"]] == best.indices.tolist()
        assert [row["probability"] for row in step["top"]] == pytest.approx(best.values.tolist(), abs=1e-6)
        assert step["chosen"] == step["top"][0]["id"]
        total += step["chosen_log_probability"]
        assert step["total"] == pytest.approx(total)


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("prefix", [None, ["NINE"]])
def test_the_tree_holds_the_search(t, beam, prefix):
    found = gf.trace(t, TEXT, beam=beam, prefix=prefix, length_penalty=0.7, max_new_tokens=8)
    nodes = found.beam["nodes"]
    winners = [n for n in nodes if n["winner"]]
    assert [n["token"] for n in winners[1:]] == found.written.chosen
    # A sum near zero is mostly rounding: the tree and the steps tell the same one.
    assert [n["total"] for n in winners[1:]] == [step["total"] for step in found.steps]
    assert winners[-1]["score"] == found.output["score"]
    if prefix:
        assert winners[1]["piece"] == "NINE"
    for n in nodes[1:]:
        parent = nodes[n["parent"]]
        assert parent["step"] == n["step"] - 1
        assert parent["state"] == "kept"
        assert n["total"] == pytest.approx(parent["total"] + n["log_probability"])
        assert n["score"] == pytest.approx(n["total"] / (n["step"] + 1) ** 0.7)
    for step in range(max(n["step"] for n in nodes) + 1):
        row = [n for n in nodes if n["step"] == step]
        assert sum(n["state"] == "kept" for n in row) <= beam
    assert {n["state"] for n in nodes} >= {"kept", "pruned"}


@pytest.mark.parametrize("beam", [1, 3])
def test_an_end_that_the_length_limit_has_forced_costs_nothing(beam):
    model = tiny(force_end=True)
    found = gf.trace(model, SOURCE, beam=beam, max_new_tokens=5)
    ((best,),) = gf.generate(model, torch.tensor([SOURCE]), beam=beam, max_new_tokens=5)
    assert found.output["score"] == pytest.approx(best.score, abs=1e-6)
    assert found.output["finished"] is best.finished is False
    assert [step["forced"] for step in found.steps] == [False] * 4 + [True]
    assert found.steps[-1]["chosen_log_probability"] == 0


def test_the_tree_ranks_what_the_model_says(t):
    """Each node's log-probability is the model's for that token after that path, asked afresh."""
    found = gf.trace(t, TEXT, beam=3, max_new_tokens=6)
    nodes = found.beam["nodes"]
    for n in nodes[1:]:
        path, at = [], n
        while at["parent"] is not None:
            at = nodes[at["parent"]]
            path.insert(0, at["token"])
        with torch.no_grad():
            logits = t.model(torch.tensor([found.source]), torch.tensor([path]))[0, -1]
        assert n["log_probability"] == pytest.approx(float(logits.log_softmax(-1)[n["token"]]), abs=1e-4)


def test_the_cache_holds_what_it_says_and_changes_nothing(t, tr):
    assert tr.cache["max_difference"] < 1e-5
    config = t.model.config
    D, F, V, S = config.d_model, config.d_ff, config.vocab_size, 6
    for i, step in enumerate(tr.cache["steps"]):
        assert (step["self"], step["cross"]) == ([i + 1] * 2, [S] * 2)
        layer = 4 * D * D + 2 * D * (i + 1) + 2 * D * D + 2 * D * S + 2 * D * F
        assert step["with"] == 2 * (layer + (2 * S * D * D if i == 0 else 0)) + D * V
        assert step["without"] >= step["with"]
    assert tr.cache["steps"][-1]["without"] > 2 * tr.cache["steps"][-1]["with"]


def test_a_given_target(t):
    found = gf.trace(t, TEXT, target="FIVE SIX")
    assert found.output["pieces"] == ["FIVE", "SIX"]
    assert found.manifest()["target"]["pieces"] == ["<s>", "FIVE", "SIX"]
    scores = gf.decode.score(t.model, torch.tensor([found.source]), [found.output["ids"]])
    assert found.output["score"] == pytest.approx(scores[0], abs=1e-5)
    assert gf.trace(t, TEXT, target=found.output["ids"]).run == found.run


def test_the_run_id_knows_what_it_is_of(t, tr):
    assert gf.trace(t, TEXT, padding=2).run == tr.run
    others = [
        gf.trace(t, TEXT), gf.trace(t, "one", padding=2), gf.trace(t, TEXT, padding=2, temperature=0.5),
        gf.trace(t, TEXT, padding=2, target="ONE"), gf.trace(t, TEXT, padding=2, changes=[{"kind": "remove_scale"}]),
    ]  # fmt: skip
    assert len({tr.run, *(other.run for other in others)}) == 6


def test_the_fingerprint_follows_the_weights_and_keeps_no_model_alive():
    model = tiny()
    before = fingerprint(model)
    assert fingerprint(model) == before == fingerprint(tiny())
    with torch.no_grad():
        model.head.weight[3, 3] += 1
    assert fingerprint(model) != before
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_looking_leaves_no_mark():
    """No hook on the shared model, no change of mode, of weights or of gradients."""
    model = tiny(dropout=0.5).train()
    weights = [p.clone() for p in model.parameters()]
    one, two = (gf.trace(model, SOURCE, max_new_tokens=5) for _ in range(2))
    assert torch.equal(one["logits"], two["logits"])
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
    assert not one["logits"].requires_grad
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.long
def test_eight_threads_trace_one_model_while_others_use_it(t):
    texts = [" ".join(WORDS[i : i + 2 + i % 3]) for i in range(8)]
    changes = [[], [{"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 1}]]
    jobs = [(text, 1 + i % 3, changes[i % 2]) for i, text in enumerate(texts)]
    alone = [gf.trace(t, text, beam=beam, changes=change) for text, beam, change in jobs]
    plain = [t(text) for text in texts]
    stop, said = threading.Event(), []

    def keep_translating():
        while not stop.is_set():
            said.append([t(text) for text in texts] == plain)

    other = threading.Thread(target=keep_translating)
    other.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda job: gf.trace(t, job[0], beam=job[1], changes=job[2]), jobs))
    finally:
        stop.set()
        other.join()
    assert said
    assert all(said)
    for one, two in zip(alone, found, strict=True):
        assert one.run == two.run
        assert one.blob() == two.blob()
        assert one.beam == two.beam


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_decoder_alone(padding, positions):
    model = tiny(gf.DecoderOnly, positions=positions)
    found = gf.trace(model, SOURCE, padding=padding, max_new_tokens=6, beam=2)
    (best,) = gf.generate(model, torch.tensor([SOURCE]), max_new_tokens=6, beam=2)[0]
    assert found.output["ids"] == best.ids
    m = found.manifest()
    assert m["target"]["ids"][: padding + 5] == m["source"]["ids"]
    assert m["steps"][0]["reads"] == "3"
    assert m["cache"]["max_difference"] < 1e-5
    assert m["cache"]["steps"][0]["self"] == [padding + 5] * 2
    with torch.no_grad():
        expected = model(torch.tensor([m["target"]["ids"][padding:]]))[0]
    assert torch.allclose(found["logits"][padding:], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("sentence", "options", "told"),
    [
        ("text", {}, "ids"),
        ([1, 99], {}, "id 99"),
        ([], {}, "nothing to trace"),
        (torch.ones(2, 3, dtype=torch.long), {}, "one sentence"),
        (torch.ones(1, 3), {}, "whole numbers"),
        (SOURCE, {"padding": -1}, "padding=-1"),
        (SOURCE, {"beam": 0}, "beam=0"),
        (SOURCE, {"temperature": 0.0}, "temperature"),
        (SOURCE, {"prefix": [77]}, "id 77"),
        (SOURCE, {"prefix": [7], "target": [7]}, "prefix"),
        (SOURCE, {"target": "text"}, "target is text, .* reads ids"),
        (SOURCE, {"changes": {"kind": "remove_scale"}}, "list"),
    ],
)
def test_mistakes_of_a_model(sentence, options, told):
    with pytest.raises(GlassformerError, match=told):
        gf.trace(tiny(), sentence, **options)


@pytest.mark.parametrize(("sentence", "told"), [("  ", "empty"), ([1, 2], "reads text"), ("one " * 60, "at most 40")])
def test_mistakes_of_a_translator(t, sentence, told):
    with pytest.raises(GlassformerError, match=told):
        gf.trace(t, sentence)


def test_an_option_that_is_not_there_is_told_with_the_nearest_that_is():
    for call in (gf.trace, lambda *given, **options: gf.what_if(*given, [{"kind": "remove_scale"}], **options)):
        with pytest.raises(GlassformerError, match="unknown option `pading`; did you mean `padding`"):
            call(tiny(), SOURCE, pading=1)


def test_what_cannot_be_traced():
    with pytest.raises(InputError, match="type Linear; it must be Translator or"):
        gf.trace(torch.nn.Linear(2, 2), [1])


@pytest.mark.parametrize(("lang", "told"), [("en", "probability"), ("zh", "概率")])
def test_shown_in_the_terminal(tr, lang, told):
    for width in (80, 200):
        console = Console(width=width, force_terminal=True, color_system=None, record=True, file=io.StringIO())
        tr.show(lang=lang, console=console)
        text = console.export_text()
        assert told in text
        assert all(name in text for name in tr.names())
        assert tr.output["text"] in text


def test_a_pattern_in_full(tr, capsys):
    tr.show("*.cross_attention.pattern", layer=1, head=2)
    out = capsys.readouterr().out
    assert "decoder.blocks.1.cross_attention.pattern" in out
    assert "blocks.0" not in out
    row = tr["decoder.blocks.1.cross_attention.pattern", 2, 0]
    assert all(f"{x:.2f}" in out for x in row.tolist())
    with pytest.raises(InputError, match="numbered 0 to 3"):
        tr.show("*.pattern", head=4)
    with pytest.raises(InputError, match="lang"):
        tr.show(lang="fr")


def test_a_broken_model_can_be_looked_at():
    """Numbers that are none are shown as such: where they begin is what one wants to see."""
    model = tiny()
    with torch.no_grad():
        model.decoder.blocks[1].feed_forward.up.weight[0, 0] = float("nan")
    found = gf.trace(model, SOURCE, max_new_tokens=4)
    text = json.dumps(found.manifest(), allow_nan=False)
    assert found["decoder.blocks.1.cross_attention.output"].isfinite().all()
    assert found["decoder.blocks.1.feed_forward.up"].isnan().any()
    assert json.loads(text)["steps"] == []  # it can choose nothing
    assert found.to_json("*.up")["tensors"][-1]["values"][0][0] == "nan"
    found.show()
    found.show("*.feed_forward.up")
