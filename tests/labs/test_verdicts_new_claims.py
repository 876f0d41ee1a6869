"""Distance, the axis of softmax, the identity, repetition: the verdict, and another for a broken part."""

from dataclasses import replace

import pytest

from glassformer.labs import Verdict, distance, identity, repetition, softmax_axis
from glassformer.labs.residuals import remove_residuals
from glassformer.model import EncoderOnly


@pytest.mark.long
def test_distance(shipped):
    assert shipped(distance).verdict is Verdict.LIMITED


@pytest.mark.long
def test_distance_with_a_recurrence_in_the_place_of_attention():
    finding = distance.run(0, build=distance.Recurrent)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[1].passed  # its gradient does not arrive
    assert not finding.checks[3].passed  # and it does not learn


@pytest.mark.long
def test_softmax_axis(shipped):
    assert shipped(softmax_axis).verdict is Verdict.LIMITED


@pytest.mark.long
def test_softmax_axis_where_the_shipped_attention_has_the_mistake():
    finding = softmax_axis.run(0, part=softmax_axis.OverQueries)
    assert finding.verdict is Verdict.FAILS
    assert not any(finding.checks[i].passed for i in (0, 2, 4, 5))


@pytest.mark.long
def test_identity(shipped):
    assert shipped(identity).verdict is Verdict.LIMITED


@pytest.mark.long
def test_identity_with_residuals_that_add_nothing():
    finding = identity.run(0, build=lambda config: remove_residuals(EncoderOnly(config)))
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[0].passed
    assert not finding.checks[2].passed


def test_repetition(shipped):
    assert shipped(repetition).verdict is Verdict.LIMITED


def test_repetition_where_a_ban_on_ngrams_is_not_kept():
    def forgetful(model, prompts, search):
        return repetition.write(model, prompts, replace(search, no_repeat_ngram=0))

    finding = repetition.run(0, write=forgetful)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[4].passed
