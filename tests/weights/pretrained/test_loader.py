"""A folder is loaded whole or refused by name."""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError, WeightsError, one_of
from glassformer.weights.parity import BAR, cases, hugging_face, our_logits, peer_logits, random_batch, random_model
from glassformer.weights.pretrained.loader import FAMILIES, family_state_dict, read_config


def save(family, folder, **options):
    case = next(case for case in cases() if case.family == family)
    peer = random_model(case)
    peer.save_pretrained(folder, **options)
    return peer


def edit(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def reconfigure(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def difference(peer, folder):
    model = gf.load_model(folder)
    batch = random_batch(60, 0)
    with torch.no_grad():
        return (our_logits(model, batch) - peer_logits(peer, batch)).abs().max()


SETTINGS = {  # one that gives some tensor its shape
    "marian": "decoder_ffn_dim",
    "bart": "vocab_size",
    "mbart": "max_position_embeddings",
    "m2m_100": "encoder_ffn_dim",
    "pegasus": "vocab_size",
    "t5": "d_ff",
    "bert": "vocab_size",
    "roberta": "vocab_size",
    "xlm-roberta": "intermediate_size",
    "distilbert": "hidden_dim",
    "vit": "intermediate_size",
    "gpt2": "n_positions",
    "llama": "vocab_size",
    "mistral": "vocab_size",
    "qwen2": "hidden_size",
}
ENCODERS, DECODERS = ("bert", "roberta", "xlm-roberta", "distilbert", "vit"), ("gpt2", "llama", "mistral", "qwen2")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_loads_and_tensors_that_do_not_fit_are_named(family, tmp_path):
    save(family, tmp_path)
    model = gf.load_model(str(tmp_path))
    kinds = {gf.EncoderOnly: ENCODERS, gf.DecoderOnly: DECODERS}
    assert type(model) is next((kind for kind, some in kinds.items() if family in some), gf.EncoderDecoder)
    assert not model.training
    whole = load_file(tmp_path / "model.safetensors")
    save_file(whole | {"extra.weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match=r"no place for: `extra\.weight`"):
        gf.load_model(tmp_path)
    for name in sorted(whole)[:: max(1, len(whole) // 6)]:
        save_file({n: t for n, t in whole.items() if n != name}, tmp_path / "model.safetensors")
        with pytest.raises(WeightsError) as error:
            gf.load_model(tmp_path)
        assert name.split(".", 1)[-1] in str(error.value)
    save_file(whole, tmp_path / "model.safetensors")
    reconfigure(tmp_path, **{SETTINGS[family]: 120})
    with pytest.raises(WeightsError, match=r"the shape \(.*120.*does config.json belong"):
        gf.load_model(tmp_path)


def test_shards(tmp_path):
    peer = save("marian", tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert difference(peer, tmp_path) <= BAR
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(WeightsError, match=f"{shard.name} is missing"):
        gf.load_model(tmp_path)


@pytest.mark.parametrize("name", ["rwkv", "bartpho"])  # the second is no slip for `bart`
def test_an_unknown_type_lists_what_is_supported(name, tmp_path):
    save("gpt2", tmp_path)
    reconfigure(tmp_path, model_type=name)
    with pytest.raises(WeightsError, match=f"'{name}' is not supported; supported are {one_of(FAMILIES)}$"):
        gf.load_model(tmp_path)


def test_the_older_names_of_rotary_settings(tmp_path):
    peer = save("llama", tmp_path)
    rope = json.loads((tmp_path / "config.json").read_text())["rope_parameters"]
    theta = rope.pop("rope_theta")
    reconfigure(tmp_path, rope_parameters=None, rope_scaling=rope, rope_theta=theta)
    assert difference(peer, tmp_path) <= BAR
    reconfigure(tmp_path, rope_theta=theta / 100)
    assert difference(peer, tmp_path) > 100 * BAR


def test_a_window_as_long_as_any_text_is_none(tmp_path):
    peer = save("mistral", tmp_path)
    for window in (None, 64):
        reconfigure(tmp_path, sliding_window=window)
        assert difference(peer, tmp_path) <= BAR


@pytest.mark.parametrize("family", ["marian", "bart", "mbart", "m2m_100", "pegasus", "t5", "gpt2"])
def test_a_folder_saved_without_a_head_has_the_tied_one(family, tmp_path):
    """What a head adds to the embedding is a bias at most, and one that was never trained is zero."""
    whole = save(family, tmp_path / "whole")
    whole.base_model.save_pretrained(tmp_path / "bare")
    if hasattr(whole, "final_logits_bias"):
        whole.final_logits_bias.zero_()
    names = list(load_file(tmp_path / "bare" / "model.safetensors"))
    assert not any(name.startswith(("model.", "transformer.", "lm_head", "final_logits_bias")) for name in names)
    assert difference(whole, tmp_path / "bare") <= BAR


@pytest.mark.parametrize(("family", "peer_class"), [("bert", "BertModel"), ("vit", "ViTModel")])
def test_an_encoder_without_a_head_gives_hidden_states_and_no_logits(family, peer_class, tmp_path):
    case = next(case for case in cases() if case.family == family)
    peer = getattr(hugging_face(), peer_class)(type(random_model(case).config)(**case.settings)).eval()
    peer.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"set aside: `pooler"):
        model = gf.load_model(tmp_path)
    batch = random_batch(60, 0)
    read = (batch.images,) if family == "vit" else (batch.ids, batch.mask)
    with torch.no_grad():
        difference = (model.encoder(*read) - peer(*read).last_hidden_state).abs()
        assert (difference if family == "vit" else difference[batch.mask]).max() <= BAR
        with pytest.raises(InputError, match=r"holds no output head" + r".*BertForMaskedLM" * (family == "bert")):
            model(*read)


def test_what_is_no_image_is_refused(tmp_path):
    save("vit", tmp_path)
    model = gf.load_model(tmp_path)
    image = torch.zeros(1, 3, 16, 16)
    for wrong in (image[:, :, :, :8], image[:, :1], image.long(), torch.ones(2, 5)):
        with pytest.raises(InputError, match=r"images of shape \(batch, 3, 16, 16\)"):
            model(wrong)
    with pytest.raises(InputError, match=r"reads images of shape \(3, 16, 16\)"):
        gf.trace(model, [5, 6])
    for kind in (gf.EncoderDecoder, gf.DecoderOnly):
        with pytest.raises(ConfigError, match="patch_size=4: images are read by an EncoderOnly alone"):
            kind(model.config)
    for wrong in ({"patch_size": 5}, {"tied": True}):
        with pytest.raises(ConfigError, match=r"must divide image_size=16, and a head .*tied=False"):
            replace(model.config, **wrong)


def test_an_untied_head_that_is_missing_is_not_replaced_by_the_embedding(tmp_path):
    for family in ("t5", "gpt2"):
        peer = save(family, tmp_path / family)
        peer.base_model.save_pretrained(tmp_path / f"{family} bare")
        for name in (family, f"{family} bare"):
            reconfigure(tmp_path / name, tie_word_embeddings=False)
    for name in ("t5", "t5 bare", "gpt2 bare"):  # T5's files do not tell which of the two they are
        model, batch = gf.load_model(tmp_path / name), random_batch(60, 0)
        with pytest.raises(InputError, match="holds no output head"):
            our_logits(model, batch)
    with pytest.raises(WeightsError, match=r"lack `lm_head\.weight`, though config\.json says it is not tied"):
        gf.load_model(tmp_path / "gpt2")


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type.*'relative_key'.*'absolute'"),
        ("vit", {"image_size": [16, 32]}, r"image_size.*\[16, 32\].*\[16, 16\] only"),
        ("roberta", {"hidden_act": "relu"}, "hidden_act.*'relu'.*'gelu' only"),
        ("roberta", {"pad_token_id": None}, "lacks `pad_token_id`.*positions"),
        ("bart", {"normalize_before": True}, "normalize_before.*True"),
        ("mbart", {"normalize_before": False}, "normalize_before.*False"),
        ("pegasus", {"static_position_embeddings": False}, "static_position_embeddings.*False"),
        ("m2m_100", {"pad_token_id": None}, "lacks `pad_token_id`.*positions"),
        ("gpt2", {"activation_function": "tanh"}, "activation_function.*'tanh'.*`relu`"),
        ("t5", {"d_model": None}, "lacks `d_model`"),
        ("llama", {"attention_bias": True}, "attention_bias.*True.*False only"),
        ("llama", {"rope_parameters": {"rope_type": "yarn"}}, "rotary positions to 'yarn'; supported are `default`"),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "lacks `factor`"),
        ("mistral", {"sliding_window": 32}, "sliding_window` to 32, less than its 64 positions.*not supported"),
        ("qwen2", {"sliding_window": 32, "use_sliding_window": True}, "sliding_window` to 32, less than its 64"),
        ("mistral", {"model_type": "mixtral", "num_local_experts": 8}, "'mixtral' is not supported, being a mixture"),
    ],
)
def test_a_variant_that_is_not_covered_is_refused(family, changes, words, tmp_path):
    save(family, tmp_path)
    reconfigure(tmp_path, **changes)
    with pytest.raises(WeightsError, match=words):
        gf.load_model(tmp_path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(WeightsError, match="is not a folder"):
        gf.load_model(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"config\.json is missing"):
        gf.load_model(tmp_path)
    (tmp_path / "config.json").mkdir()  # unreadable to everyone, root too
    with pytest.raises(WeightsError, match=r"config.json cannot be read: Is a directory$"):
        gf.load_model(tmp_path)
    (tmp_path / "config.json").rmdir()
    save("gpt2", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"holds no weights: model\.safetensors"):
        gf.load_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00 not safetensors")
    with pytest.raises(WeightsError, match="cannot be read as safetensors"):
        gf.load_model(tmp_path)
    (tmp_path / "config.json").write_text("{not json")
    with pytest.raises(WeightsError, match="not valid JSON"):
        gf.load_model(tmp_path)


def test_plain_pickled_tensors_load_and_anything_more_is_refused_unrun(tmp_path):
    peer = save("gpt2", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    assert difference(peer, tmp_path) <= BAR

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    for write in (
        lambda f: torch.save({"weight": Bomb()}, f),
        lambda f: f.write_bytes(pickle.dumps(Bomb(), protocol=2)),
    ):
        write(tmp_path / "pytorch_model.bin")
        with pytest.raises(WeightsError, match=r"is not unpickled.*save_pretrained"):
            gf.load_model(tmp_path)
        assert not (tmp_path / "ran").exists()


def test_repeated_tensors_must_agree(tmp_path):
    peer = save("bart", tmp_path)
    edit(tmp_path, lambda t: t.update({"model.encoder.embed_tokens.weight": t["model.shared.weight"].clone()}))
    assert difference(peer, tmp_path) <= BAR
    edit(tmp_path, lambda t: t.update({"model.encoder.embed_tokens.weight": t["model.shared.weight"] + 1}))
    with pytest.raises(WeightsError, match="should be one tensor but differ"):
        gf.load_model(tmp_path)


@pytest.mark.parametrize("family", ["marian", "pegasus", "m2m_100"])
def test_an_older_file_with_its_sinusoid(family, tmp_path):
    peer = save(family, tmp_path)
    (name, table), *_ = peer.model.encoder.embed_positions.state_dict(keep_vars=True).items() or [
        ("weights", peer.model.encoder.embed_positions.weights)
    ]
    tables = {f"model.{side}.embed_positions.{name}": table.detach().clone() for side in ("encoder", "decoder")}
    edit(tmp_path, lambda tensors: tensors.update(tables))
    assert difference(peer, tmp_path) <= BAR


def test_bert_of_the_old_spelling_with_another_head(tmp_path):
    peer = save("bert", tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    gamma = ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")
    old = {n.replace(*gamma[0]).replace(*gamma[1]): t for n, t in whole.items()}
    old |= {"bert.pooler.dense.weight": torch.zeros(4, 4), "cls.seq_relationship.bias": torch.zeros(2)}
    old["bert.embeddings.position_ids"] = torch.arange(4)
    save_file(old, tmp_path / "model.safetensors")
    with pytest.warns(UserWarning, match=r"set aside: `cls\.seq_relationship\.bias`, `pooler\.dense\.weight`"):
        assert difference(peer, tmp_path) <= 1


def test_bert_segments(tmp_path):
    peer = save("bert", tmp_path)
    model, batch = gf.load_model(tmp_path), random_batch(60, 0)
    segments = (torch.arange(11) > 4).long().expand(3, -1)
    with torch.no_grad():
        theirs = peer(input_ids=batch.ids, attention_mask=batch.mask.long(), token_type_ids=segments).logits
        assert (model(batch.ids, batch.mask, segments) - theirs)[batch.mask].abs().max() <= BAR
        assert (model(batch.ids, batch.mask) - theirs)[batch.mask].abs().max() > 100 * BAR


@pytest.mark.parametrize("family", ["gpt2", "t5", "llama", "bart"])
def test_half_precision_files_load_as_float32(family, tmp_path):
    """And are folded in it: what is multiplied is not rounded to half a float again."""
    peer = save(family, tmp_path)
    edit(tmp_path, lambda t: t.update({n: v.half() for n, v in t.items()}))
    model = gf.load_model(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    batch = random_batch(60, 0)
    with torch.no_grad():
        for value in peer.state_dict(keep_vars=True).values():  # the angles of rotary positions are not among them
            value.copy_(value.half())
        assert (our_logits(model, batch) - peer_logits(peer, batch)).abs().max() <= BAR
    back = family_state_dict(model, read_config(tmp_path))
    assert all(torch.equal(back[n], t.float()) for n, t in load_file(tmp_path / "model.safetensors").items())
