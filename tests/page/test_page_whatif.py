"""What if, in the browser: every kind of change, narrow and wide beams, two sentences. Whatever is printed is what ran.

The judge reads the changed model by hand: for each token it asks what was likely after those before it, with no cache
and no look at later ones, as the output is written.
"""

from __future__ import annotations

import json
import math
import re

import pytest
import torch
from sampled import sampled
from visitor import EXAMPLES, agrees, printed, unit

import glassformer as gf
from glassformer.explain.interventions import CHANGE_KINDS, apply_changes, check_changes
from glassformer.explain.subject import Subject
from glassformer.model import Cache
from glassformer.model.transformer import share_weights

PADDING = 1
HEAD = {"kind": "remove_head", "layer": 0, "head": 1}
CHANGES = {  # one for each sentence
    "a head": (HEAD | {"stack": "decoder", "attention": "cross"}, HEAD | {"stack": "encoder", "attention": "self"}),
    "a layer": (
        {"kind": "remove_layer", "stack": "decoder", "layer": 0},
        {"kind": "remove_layer", "stack": "encoder", "layer": 1},
    ),
    "the causal mask": [{"kind": "remove_mask", "mask": "causal"}] * 2,
    "the padding mask": [{"kind": "remove_mask", "mask": "padding"}] * 2,
    "cross-attention": ({"kind": "remove_cross", "layer": None}, {"kind": "remove_cross", "layer": 1}),
    "positions": ({"kind": "remove_positions", "stack": None}, {"kind": "remove_positions", "stack": "decoder"}),
    "the scale": [{"kind": "remove_scale"}] * 2,
    "a token": [{"kind": "swap_token", "position": 1, "piece": "three"}] * 2,
    "a beginning": [{"kind": "prefix", "pieces": ["fünf"]}] * 2,
    "a temperature": ({"kind": "temperature", "value": 2.5}, {"kind": "temperature", "value": 0.4}),
}

READ = """() => {
    const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
    const text = (one) => one.textContent;
    const cells = (row) => [...row.querySelectorAll('td')].map(text);
    return {
        output: text(document.querySelector('[data-testid=output]')),
        score: text(document.querySelector('.said-facts span span')),
        step: all('[data-testid=step-of]', text)[0],
        top: all('[data-testid=top] .bar-row', (row) => [text(row.querySelector('.bar-label')),
            text(row.querySelector('.bar-more')), row.classList.contains('chosen'),
            text(row.querySelector('.bar-figure'))]),
        steps: all('.two .numbers tbody tr', cells),
        rules: all('[data-testid=score-rule] .equation', text),
        winners: all('.node[data-winner=yes] .node-score', text).filter(Boolean),
        chances: all('.flow .chance', text),
        cacheLabel: all('.figure-box:has([data-testid=max-difference]) .label', text)[0],
        cacheApart: all('[data-testid=max-difference]', text)[0],
        cacheSays: all('.view-head .lede', text)[0],
        differences: all('[data-testid=differences] tbody tr', cells),
        bars: all('[data-testid=differences] tbody tr', (row) => row.querySelectorAll('rect').length),
        sums: all('[data-testid=differences] tfoot td', text),
        before: all('[data-testid=output-before]', text)[0],
        after: all('[data-testid=output-after]', text)[0],
        marked: document.querySelectorAll('.side.changed, .verdict.changed').length,
        lastStep: document.querySelectorAll('[data-testid=last-step]').length,
        figures: document.querySelector('main').innerText,
    };
}"""


def test_every_kind_of_change_is_tried():
    assert {change["kind"] for changes in CHANGES.values() for change in changes} == set(CHANGE_KINDS)


class Judge:
    """A model with a change carried out, asked anew for every token."""

    def __init__(self, translator, changes, run):
        self.model = share_weights(translator.model).eval()
        apply_changes(self.model, check_changes(changes, Subject(translator)))
        self.src, self.mask = torch.tensor([run.source]), torch.tensor([run.real])
        self.heat = run.options.temperature
        with torch.no_grad():
            self.memory = self.model.encode(self.src, self.mask)

    @torch.no_grad()
    def logits(self, chosen):
        start = [self.model.config.start_id]
        rows = [
            self.model.decode(torch.tensor([start + chosen[:n]]), self.memory, self.mask)[0, -1]
            for n in range(len(chosen))
        ]
        return torch.stack(rows)

    def log_probabilities(self, chosen):
        found = (self.logits(chosen).double() / self.heat).log_softmax(-1)
        return [float(row[token]) for row, token in zip(found, chosen, strict=True)]

    @torch.no_grad()
    def a_cache_is_equal(self, chosen):
        cache, rows = Cache(len(self.model.decoder.blocks), len(chosen)), []
        for token in [self.model.config.start_id, *chosen][:-1]:
            rows.append(self.model.decode(torch.tensor([[token]]), self.memory, self.mask, cache)[0, -1])
        return bool(torch.allclose(torch.stack(rows), self.logits(chosen), atol=1e-3))


def near(text, value):
    """`value` as printed, but for the last digit, where two ways of adding up may round apart."""
    return agrees(text, value) or abs(printed(text) - value) <= unit(text) + 1e-5 * abs(value)


def check_rule(rule, total, length):
    """A score's equation: what is printed gives what is printed, and it is the score."""
    left, right = re.fullmatch(r"(.*) = (.*)", rule).groups()
    shown, power = re.fullmatch(r"(.*) / (\d+)\^1", left).groups()
    assert int(power) == length
    assert agrees(right, printed(shown) / length), rule
    assert near(right, total / length), (rule, total)


def check_decode(seen, own, step, greedy, free):
    """The step in the middle of the page; `own`: the log-probability of each token by the judge."""
    assert seen["step"] == f"step {step + 1} of {len(own)}"
    assert [row[0] for row in seen["steps"]] == [str(i + 1) for i in range(len(own))]
    for i, (_, _, own_text, total_text) in enumerate(seen["steps"]):
        assert near(own_text, own[i]), (seen["steps"], own)
        assert near(total_text, sum(own[: i + 1])), (seen["steps"], own)
    (piece, text, _, figure), *others = [row for row in seen["top"] if row[2]]
    assert not others
    assert [piece, text] == seen["steps"][step][1:3]
    chance = math.exp(own[step])
    assert figure == (">99.9 %" if 0.9995 < chance < 1 else "<0.1 %" if chance < 0.0005 else f"{100 * chance:.1f} %")
    if greedy and free:
        assert seen["top"][0][2], "a greedy choice is the likeliest"
    for rule in seen["rules"]:  # of the table, and of the node that is told
        check_rule(rule, sum(own[: step + 1]), step + 1)
    for i, text in enumerate(seen["winners"]):
        assert near(text, sum(own[: i + 1]) / (i + 1)), (seen["winners"], own)


def check_whatif(seen, expected, first, then):
    before, after = expected.before.output["text"], expected.after.output["text"]
    assert (seen["before"], seen["after"]) == (before or "—", after or "—")
    assert bool(seen["marked"]) == (before != after)  # what is unchanged is not marked as a change
    for (piece, *texts, _), bars, row, one, other in zip(
        seen["differences"], seen["bars"], expected.difference.forced, first, then, strict=True
    ):
        assert piece == row["piece"]
        assert near(texts[0], one)
        assert near(texts[1], other)
        assert near(texts[2].lstrip("+"), other - one)
        assert bars == (texts[2] != "0")
        assert (texts[0] == texts[1]) or texts[2] != "0"
    sums = [text.lstrip("+") for text in seen["sums"][:3]]
    assert all(map(near, sums, (sum(first), sum(then), sum(then) - sum(first))))


def check_digits(text):
    """No number has more digits than single precision holds; counts, whose thousands stand apart, are whole."""
    for number in re.findall(r"(?<![\w.\u202f])\d+\.\d+(?![\w.])", text):
        assert len(number.replace(".", "").lstrip("0")) <= 9, number


# Of either turn, one sentence is read greedily and the other by a beam.
GRID = [(name, beams) for name in CHANGES for beams in ((4, 1), (1, 4))]
FEW = [("the causal mask", (4, 1)), ("a beginning", (1, 4))]


@pytest.mark.parametrize("asked", sampled(GRID, FEW), ids=str)
def test_whatever_a_what_if_prints_is_what_ran(visit, translator, asked):
    page, (name, beams) = visit(), asked
    for sentence, change, beam in zip(EXAMPLES, CHANGES[name], beams, strict=True):
        expected = gf.what_if(translator, sentence, [change], beam=beam, padding=PADDING)
        after, chosen = expected.after, expected.after.written.chosen
        judge = Judge(translator, [change], after)
        own = judge.log_probabilities(chosen)
        state = {"text": sentence, "beam": beam, "padding": PADDING, "changes": json.dumps([change])}
        looks = [
            ("decode", len(chosen) // 2),
            ("decode", len(chosen) - 1),
            ("cache", 0),
            ("flow", 0),
            ("whatif", 0),
        ]
        read = {}
        for view, step in looks:
            page.go(view=view, step=step, **state)
            if view == "flow":  # its picture is drawn once its width is known
                page.page.wait_for_selector(".flow-picture")
            seen = read[view] = page.page.evaluate(READ)
            assert seen["output"] == after.output["text"]
            assert near(seen["score"], sum(own) / len(own)), (seen["score"], own)
            check_digits(seen["figures"])
            if view == "decode":
                check_decode(seen, own, step, beam == 1, step >= len(after.options.prefix))
        first = Judge(translator, [], expected.before)
        written = expected.before.written.chosen
        check_whatif(read["whatif"], expected, first.log_probabilities(written), judge.log_probabilities(written))
        causal = change.get("mask") == "causal"
        equal = judge.a_cache_is_equal(chosen)
        assert equal == (not causal or len(chosen) == 1)
        assert read["cache"]["cacheLabel"] == ("Equal" if equal else "Not equal") + " to the full pass"
        assert (printed(read["cache"]["cacheApart"]) < 1e-3) == equal
        assert ("written by reading all of it anew" in read["cache"]["cacheSays"]) == causal
        assert bool(read["flow"]["lastStep"]) == causal
        assert [float(text.strip("<> %")) for text in read["flow"]["chances"]] == pytest.approx(
            [min(99.9, max(0.1, 100 * math.exp(x))) if x else 100 for x in own], abs=0.051
        )
