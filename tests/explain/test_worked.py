"""The worked example: its numbers are the model's, and what is printed of it is read back and computed again."""

import io
import itertools
import math
import re

import pytest
import torch
from arithmetic import check
from rich.cells import cell_len
from rich.console import Console

from glassformer.explain.formulas import translated
from glassformer.explain.worked import WordTokenizer, arithmetic, build_model, worked_example
from glassformer.explain.worked.render import PANELS, SENTENCES, panel_of, print_story, print_values
from glassformer.explain.worked.texts import FRAME, STORY
from glassformer.explain.worked.weights import PAIRS, WORDS
from glassformer.pipelines.translator import Translator

SRC = [["twenty", "one", "<end>"], ["twenty", "<end>", "<pad>"]]
TGT = [["<start>", "ein", "und", "zwanzig"], ["<start>", "zwanzig", "<pad>", "<pad>"]]
LABELS = [["ein", "und", "zwanzig", "<end>"], ["zwanzig", "<end>", "<pad>", "<pad>"]]
LANGUAGES = ("en", "zh")
TEXTS = FRAME | STORY


@pytest.fixture(scope="module")
def example():
    return worked_example()


def page_of(example, lang, width=100, terminal=False):
    out = io.StringIO()
    print_story(example, lang, Console(file=out, width=width, force_terminal=terminal, color_system=None))
    return out.getvalue()


def printed_sums(page):
    """Every `cell = expression = result`; a line indented by six goes on with the one before."""
    whole = re.sub(r"\n {6}(?=\S)", " ", page)
    return re.findall(r"^  ([a-z._]+\[[^\]]*\]|mean|variance|loss) = (.+) = (\S+)$", whole, flags=re.MULTILINE)


def evaluate(expression):
    """The value of an expression in the notation of the page."""
    python = expression.replace("·", " * ").replace("²", " ** 2").replace("inf", "math.inf")
    python = re.sub(r"e\^(\([^)]*\)|[\d.]+)", r"math.exp(\1)", python)
    python = re.sub(r"√(\([^)]*\)|[\d.]+)", r"math.sqrt(\1)", python)
    python = re.sub(r"ln ([\d.]+)", r"math.log(\1)", python)
    python = re.sub(r"\b(sin|cos)\(", r"math.\1(", python)
    assert re.fullmatch(r"(?:math\.(?:exp|sqrt|log|sin|cos|inf)|max|[\d.+\-*/(), ])+", python), python
    return eval(python, {"math": math, "max": max})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_printed_sums_come_out_as_printed(example, lang):
    sums = printed_sums(page_of(example, lang))
    assert len(sums) >= 45
    for cell, expression, result in sums:
        if result == "-inf":
            assert evaluate(expression) == -math.inf
        else:  # half a unit of the last digit for the result, the rest for the rounded terms
            assert evaluate(expression) == pytest.approx(float(result), abs=0.0015), f"{cell} = {expression} = {result}"


def test_every_cell_of_every_value_is_what_its_sum_says(example, monkeypatch):
    """The rules themselves against the model, in more digits than are printed."""
    monkeypatch.setattr(arithmetic, "number", lambda value: "-inf" if value == -math.inf else f"{value:.9f}")
    kinds = set()
    for trace in example.traces:
        for value in trace.values.values():
            if (kind := value.op["kind"]) not in arithmetic.RULES:
                assert kind in ("lookup", "merge", "same", "visible"), f"{value.name} is computed, and not written out"
                continue
            kinds.add(kind)
            heads = value.value.shape[0] if "head" in value.axes else 1
            rows, columns = value.value.shape[-2:]
            for head, row, column in itertools.product(range(heads), range(rows), range(columns)):
                cell = arithmetic.Cell(trace, value, head, row, column)
                assert evaluate(arithmetic.RULES[kind](cell)) == pytest.approx(cell.result, abs=2e-5), str(cell)
                if kind == "layer_norm":
                    for moment in arithmetic.moments(cell)[0]:
                        _, expression, result = moment.split(" = ")
                        assert evaluate(expression) == pytest.approx(float(result), abs=2e-5)
    assert kinds == set(arithmetic.RULES)


def test_a_rule_that_reads_another_head_would_be_noticed(example):
    trace = example.traces[0]
    name = "decoder.blocks.0.cross_attention.scores"
    cell, other = (arithmetic.Cell(trace, trace.value(name), head, 2, 0) for head in (0, 1))
    assert abs(evaluate(arithmetic.RULES["scale"](other)) - cell.result) > 0.1


def test_names_shapes_and_formulas_of_all_values_are_printed(example):
    page, told = page_of(example, "zh"), set()
    for value in example.values.values():
        if panel_of(value) is not None:
            told.add(panel_of(value))
            line = next(line for line in page.splitlines() if line.split(" ")[0] == value.name)
            one = example.traces[0].values.get(value.name, value)
            assert all(f" {size}" in line for size in one.value.shape)
            assert translated(value.formula, "zh") in page
        else:
            assert value.op["kind"] in ("same", "weight")
    assert told == {key for key in STORY if not key.startswith("chapter.")}
    assert set(PANELS) <= set(example.values)
    assert set(SENTENCES) <= told


def test_masked_cells_are_marked(example):
    page = page_of(example, "en")
    assert re.search(r"^  <start> +0\.000 +-inf +-inf +-inf", page, flags=re.MULTILINE)
    assert re.search(r"^  <start> +1\.000 +·0 +·0 +·0", page, flags=re.MULTILINE)


def is_matrix(line):
    return " = " not in line and re.match(r"  (\S+ +)?(-?\d|·0|-inf)|  +\S+( \S+)* s\d", line)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_prose_fits_and_matrices_never_wrap(example, lang, width):
    full, narrow = page_of(example, lang), page_of(example, lang, width, terminal=True)
    matrices = [line for line in full.splitlines() if is_matrix(line)]
    assert len(matrices) > 150
    assert max(map(len, matrices)) <= 80
    assert set(matrices) <= set(narrow.splitlines())
    for line in narrow.splitlines():
        if not re.match(r" |\S+ +\(", line):  # names stand in full, whatever the width
            assert cell_len(line) <= width, line


def test_chinese_leaves_no_english_prose(example):
    """Beyond names, formulas, vocabulary and commands, only terms that Chinese keeps in Latin letters."""
    kept = {"Transformer", "logits", "logit", "softmax", "Post-LN", "Pre-LN", "ln", "inf", "d", "t", "p", "n"}
    kept |= set(WORDS)
    for key, words in TEXTS.items():
        chinese = re.sub(r"`[^`]*`|\{[^}]*\}", " ", words.zh.replace("s{0}", ""))
        for word in re.findall(r"<\w+>|[A-Za-z][\w-]*", chinese):
            assert word in kept or re.fullmatch(r"[A-Z](_[A-Z])?|[shy][0-9₀-₃]", word), f"{key}: {word}"
        assert re.search(r"[\u4e00-\u9fff]", words.zh), key
    english = {
        line for line in page_of(example, "en").splitlines() if re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,} ", line)
    }
    assert english
    assert not english & set(page_of(example, "zh").splitlines())


@pytest.mark.parametrize("name", ["*", "*.pattern", "loss", "decoder.embedding.positions"])
def test_single_values(example, name):
    out = io.StringIO()
    print_values(example, name, "en", Console(file=out, width=80))
    page = out.getvalue()
    for value in example.values.select(name):
        assert value.name in page
        if "head" in value.axes:
            assert all(f"s{s} h{h}" in page for s in (0, 1) for h in (0, 1))
    for cell, expression, result in printed_sums(page):
        assert result == "-inf" or evaluate(expression) == pytest.approx(float(result), abs=0.0015), cell


def test_every_operation_gives_its_value_again(example):
    for trace in example.traces:
        check(trace)


def test_loss_is_the_mean_over_real_labels(example):
    probabilities = example.values["probabilities"].value
    shares = [
        probabilities[sentence, t, WORDS.index(word)]
        for sentence, labels in enumerate(LABELS)
        for t, word in enumerate(labels)
        if word != "<pad>"
    ]
    assert len(shares) == 6
    assert example.values["loss"].value.item() == pytest.approx(-sum(map(math.log, shares)) / 6, abs=1e-5)


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
