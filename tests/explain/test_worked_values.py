"""The worked example's numbers against a slow, obvious recomputation: plain Python, loops, no tensors."""

import math

import pytest
import torch

from glassformer.common.errors import InputError
from glassformer.explain.worked import WordTokenizer, build_model, worked_example
from glassformer.explain.worked.weights import ATTENTION, EMBEDDING, FEED_FORWARD, PAIRS, WORDS
from glassformer.pipelines.translator import Translator

SRC = [["twenty", "one", "<end>"], ["twenty", "<end>", "<pad>"]]
TGT = [["<start>", "ein", "und", "zwanzig"], ["<start>", "zwanzig", "<pad>", "<pad>"]]
LABELS = [["ein", "und", "zwanzig", "<end>"], ["zwanzig", "<end>", "<pad>", "<pad>"]]


@pytest.fixture(scope="module")
def example():
    return worked_example()


def times(a, b):
    return [[sum(row[k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))] for row in a]


def plus(a, b):
    return [[x + y for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def softmax(row):
    powers = [0.0 if x == -math.inf else math.exp(x) for x in row]
    return [power / sum(powers) for power in powers]


def norm(rows):
    out = []
    for row in rows:
        mean = sum(row) / len(row)
        variance = sum((x - mean) ** 2 for x in row) / len(row)
        out.append([(x - mean) / math.sqrt(variance + 1e-5) for x in row])
    return out


class Paper:
    """One sentence worked through on paper; `values` holds each result under the name the model has for it."""

    def __init__(self, src, tgt):
        self.values = {}
        real = [word != "<pad>" for word in src]
        seen_by_all = [real] * len(src)
        x = self.embed("encoder.embedding", src)
        at = "encoder.blocks.0"
        x = self.residual(f"{at}.self_attention_residual", x, self.attend(f"{at}.self_attention", x, x, seen_by_all))
        x = self.residual(f"{at}.feed_forward_residual", x, self.feed_forward(f"{at}.feed_forward", x))
        memory = self.values["memory"] = x
        y = self.embed("decoder.embedding", tgt)
        at = "decoder.blocks.0"
        past = [[key <= query for key in range(len(tgt))] for query in range(len(tgt))]
        y = self.residual(f"{at}.self_attention_residual", y, self.attend(f"{at}.self_attention", y, y, past))
        crossed = self.attend(f"{at}.cross_attention", y, memory, [real] * len(tgt))
        y = self.residual(f"{at}.cross_attention_residual", y, crossed)
        y = self.residual(f"{at}.feed_forward_residual", y, self.feed_forward(f"{at}.feed_forward", y))
        self.values["logits"] = [
            [sum(a * b for a, b in zip(row, word, strict=True)) for word in EMBEDDING] for row in y
        ]
        self.values["probabilities"] = [softmax(row) for row in self.values["logits"]]

    def embed(self, at, words):
        rows = [EMBEDDING[WORDS.index(word)] for word in words]
        places = [[math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in range(len(words))]
        self.values[f"{at}.tokens"], self.values[f"{at}.positions"] = rows, places
        self.values[f"{at}.scaled"] = [[2 * value for value in row] for row in rows]
        self.values[at] = plus(self.values[f"{at}.scaled"], places)
        return self.values[at]

    def attend(self, at, x, memory, visible):
        w = ATTENTION[at]
        whole = {"q": times(x, w["W_Q"]), "k": times(memory, w["W_K"]), "v": times(memory, w["W_V"])}
        heads = {name: [] for name in ("q", "k", "v", "products", "scores", "masked", "pattern", "context")}
        for head in (0, 1):
            q, k, v = ([row[2 * head : 2 * head + 2] for row in whole[name]] for name in "qkv")
            products = [[a[0] * b[0] + a[1] * b[1] for b in k] for a in q]
            scores = [[value / math.sqrt(2) for value in row] for row in products]
            masked = [
                [value if visible[i][j] else -math.inf for j, value in enumerate(row)] for i, row in enumerate(scores)
            ]
            pattern = [softmax(row) for row in masked]
            found = (q, k, v, products, scores, masked, pattern, times(pattern, v))
            for name, value in zip(heads, found, strict=True):
                heads[name].append(value)
        self.values |= {f"{at}.{name}": value for name, value in heads.items()}
        merged = [left + right for left, right in zip(*heads["context"], strict=True)]
        self.values[f"{at}.merged"], self.values[f"{at}.output"] = merged, times(merged, w["W_O"])
        return self.values[f"{at}.output"]

    def residual(self, at, x, added):
        self.values[f"{at}.sum"] = plus(x, added)
        self.values[f"{at}.norm"] = norm(plus(x, added))
        return self.values[f"{at}.norm"]

    def feed_forward(self, at, x):
        up = times(x, FEED_FORWARD[at]["up"])
        hidden = [[max(0.0, value) for value in row] for row in up]
        self.values |= {f"{at}.up": up, f"{at}.hidden": hidden, f"{at}.down": times(hidden, FEED_FORWARD[at]["down"])}
        return self.values[f"{at}.down"]


def test_every_value_equals_its_recomputation(example):
    for sentence, trace in enumerate(example.traces):
        paper = Paper(SRC[sentence], TGT[sentence]).values
        assert set(paper) == {
            name for name, value in trace.values.items() if value.op["kind"] not in ("same", "visible")
        } | {"memory"}
        for name, rows in paper.items():
            for value in (trace[name], example.values[name].value[sentence]):
                torch.testing.assert_close(value, torch.tensor(rows), atol=1e-5, rtol=0, msg=lambda m, n=name: n + m)


def test_the_recomputation_would_notice_a_wrong_number(example):
    broken = Paper(SRC[0], ["<start>", "ein", "zwanzig", "und"]).values["logits"]
    assert (example.traces[0]["logits"] - torch.tensor(broken)).abs().max() > 0.1


def test_loss_is_the_mean_over_real_labels(example):
    papers = [Paper(src, tgt) for src, tgt in zip(SRC, TGT, strict=True)]
    shares = [
        paper.values["probabilities"][t][WORDS.index(word)]
        for paper, labels in zip(papers, LABELS, strict=True)
        for t, word in enumerate(labels)
        if word != "<pad>"
    ]
    loss = example.values["loss"].value.item()
    assert loss == pytest.approx(-sum(map(math.log, shares)) / len(shares), abs=1e-5)


def test_it_is_the_real_model(example):
    """Both sentences as one batch on the fused path, without a single hook, give the logits that the traces show."""
    src, tgt, mask = (example.values[name].value for name in ("src", "tgt", "src_mask"))
    logits = build_model()(src, tgt, mask)
    torch.testing.assert_close(logits, example.values["logits"].value, atol=1e-5, rtol=0)


def test_given_and_weights(example):
    for name, words in (("src", SRC), ("tgt", TGT), ("labels", LABELS)):
        assert [[WORDS[id] for id in row] for row in example.values[name].value.tolist()] == words
    assert example.values["src_mask"].value.tolist() == [[True, True, True], [True, True, False]]
    model = build_model()
    weights = [value for value in example.values.values() if value.op["kind"] == "weight"]
    assert {value.name for value in weights} == {name for name, _ in model.named_parameters()}
    for value in weights:
        assert torch.equal(value.value, model.get_parameter(value.name))
        assert set(value.value.flatten().tolist()) <= {-1.0, -0.5, 0.0, 0.5, 1.0}


def test_patterns_are_shares_and_hidden_cells_exactly_zero(example):
    for value in example.values.select("*.pattern"):
        torch.testing.assert_close(value.value.sum(-1), torch.ones(value.value.shape[:-1]))
        hidden = example.values[value.op["input"]].value.isinf()
        assert hidden.any()
        assert (value.value[hidden] == 0).all()
        assert (value.value[~hidden] > 0).all()


def test_the_story_is_true(example):
    """What the texts claim: head 0 crosses, and every word comes out right."""
    pattern = example.values["decoder.blocks.0.cross_attention.pattern"].value
    best = [[SRC[s][j] for j in pattern[s, 0].argmax(-1).tolist()] for s in (0, 1)]
    assert best[0] == ["one", "one", "twenty", "<end>"]
    assert best[1][:2] == ["twenty", "<end>"]
    said = [[WORDS[i] for i in row] for row in example.values["logits"].value.argmax(-1).tolist()]
    assert said[0] == LABELS[0]
    assert said[1][:2] == LABELS[1][:2]


def test_left_alone_the_model_writes_both_translations():
    translator = Translator(build_model(), WordTokenizer())
    assert [translator(source) for source, _ in PAIRS] == [target for _, target in PAIRS]


def test_values_describe_themselves(example):
    done = set()
    for value in example.values.values():
        assert len(value.axes) == value.value.dim()
        assert value.formula
        assert set(value.inputs) <= done, f"{value.name} comes before what it is made from"
        done.add(value.name)


def test_unknown_names_are_met_with_near_ones(example):
    with pytest.raises(InputError, match=r"`\*.patern`.*`encoder.blocks.0.self_attention.pattern`"):
        example.values.select("*.patern")
    with pytest.raises(InputError, match=r"the names end in .*`pattern`"):
        example.values.select("zzz")
    with pytest.raises(InputError, match=r"no value is named `no.such.value`"):
        example.values["no.such.value"]
