"""What a trace shows inside loaded models is what Hugging Face shows: every pattern, every hidden state."""

import pytest
import torch

import glassformer as gf
from glassformer.weights.parity import cases, hugging_face, random_batch, random_model, saved, wrong_norm_order

BAR = 1e-5
CASES = {f"{case.family} {i}": case for i, case in enumerate(cases()) if case.family != "marian" or i < 3}
FIRST = {case.family: case for case in reversed(cases())}
PADDING_HAS_A_PLACE = {"m2m_100", "roberta", "xlm-roberta"}
SOURCE, TARGET = [7, 30, 11, 52, 9, 44], [8, 33, 21, 5]


def peers_view(peer, found, family):
    """Hugging Face's attentions and hidden states under our names."""
    m = found.manifest()
    peer.set_attn_implementation("eager")
    arguments = {"output_attentions": True, "output_hidden_states": True}
    if family == "vit":
        out = peer(image_for(found.subject.config), **arguments)
        return named(found, "encoder", out.hidden_states, {"self": out.attentions}, normed=False)
    if isinstance(found.subject.model, gf.DecoderOnly):
        out = peer(torch.tensor([m["target"]["ids"]]), **arguments)
        return named(found, "decoder", out.hidden_states, {"self": out.attentions})
    ids, mask = torch.tensor([m["source"]["ids"]]), torch.tensor([m["source"]["real"]]).long()
    if isinstance(found.subject.model, gf.EncoderOnly):
        out = peer(ids, attention_mask=mask, **arguments)
        return named(found, "encoder", out.hidden_states, {"self": out.attentions})
    out = peer(ids, attention_mask=mask, decoder_input_ids=torch.tensor([m["target"]["ids"]]), **arguments)
    decoder = {"self": out.decoder_attentions, "cross": out.cross_attentions}
    view = named(found, "encoder", out.encoder_hidden_states, {"self": out.encoder_attentions})
    view |= named(found, "decoder", out.decoder_hidden_states, decoder)
    scaled = getattr(peer.config, "scale_decoder_outputs", peer.config.tie_word_embeddings)
    if family == "t5" and scaled:  # our last norm carries the scale of the output
        view["decoder.norm"] = view["decoder.norm"] * peer.config.d_model**-0.5
    return view


def named(found, stack, hidden, attentions, normed=True):
    """The last hidden state is that after the last norm, where the stack has one; but with ViT."""
    view = {f"{stack}.embedding": hidden[0]}
    for i, state in enumerate(hidden[1:]):
        last = normed and f"{stack}.norm" in found and i == len(hidden) - 2
        view[f"{stack}.norm" if last else f"{stack}.blocks.{i}"] = state
    for kind, patterns in attentions.items():
        for i, pattern in enumerate(patterns):
            view[f"{stack}.blocks.{i}.{kind}_attention.pattern"] = pattern
    return {name: value[0] for name, value in view.items()}


def image_for(config):
    shape = (1, config.channels, config.image_size, config.image_size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def followed(model):
    if model.config.patch_size is not None:
        return gf.trace(model, image_for(model.config))
    if isinstance(model, gf.EncoderOnly):
        return gf.trace(model, SOURCE, padding=2)
    if isinstance(model, gf.DecoderOnly):
        return gf.trace(model, SOURCE + TARGET, target=[])
    return gf.trace(model, SOURCE, target=TARGET, padding=2)


def apart(found, expected, family):
    """By how much each value differs at most; of families that give padding a place of its own, at real tokens."""
    real = len(SOURCE) if family in PADDING_HAS_A_PLACE else None

    def rows(name, value):
        return value[..., :real, :] if name.startswith("encoder") else value

    return {name: float((rows(name, found[name]) - rows(name, v)).abs().max()) for name, v in expected.items()}


@pytest.fixture(autouse=True)
def _quiet():
    hugging_face()


def first_of_each(cases):
    """The others of a family, which have other sizes and settings, take their time."""
    met = set()
    for name, case in cases.items():
        yield pytest.param(name, marks=[pytest.mark.long] if case.family in met else [])
        met.add(case.family)


@torch.no_grad()
@pytest.mark.parametrize("name", [*first_of_each(CASES)])
def test_every_pattern_and_hidden_state(name):
    case = CASES[name]
    peer = random_model(case)
    with saved(peer, case) as folder:
        model = gf.load_model(folder)
    found = followed(model)
    expected = peers_view(peer, found, case.family)
    layers = found.manifest()["model"]["encoder_layers"], found.manifest()["model"]["decoder_layers"]
    both = all(layers)
    assert len(expected) == 2 * layers[0] + (3 if both else 2) * layers[1] + (2 if both else 1)
    assert {name: most for name, most in apart(found, expected, case.family).items() if most > BAR} == {}


@torch.no_grad()
@pytest.mark.parametrize("family", FIRST)
def test_a_model_broken_on_purpose_is_noticed(family):
    case = FIRST[family]
    peer = random_model(case)
    with saved(peer, case) as folder:
        model = gf.load_model(folder)
    wrong_norm_order(model, random_batch(model.config.vocab_size, 1))
    found = followed(model)
    assert max(apart(found, peers_view(peer, found, family), family).values()) > 100 * BAR
