"""To ONNX: the same tokens as our own search, a small driver that knows only the files, faults that are seen."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.deploy.export.formats import CheckFailed
from glassformer.deploy.export.inputs import choose_sample, load_for_export

# Found, not loaded, which takes a second: every process of the tests reads this file, and one of them runs it.
MISSING = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} not installed")

CONFIG = gf.ModelConfig(
    vocab_size=40, d_model=16, heads=4, kv_heads=2, d_ff=24, layers=1, positions="relative", relative_buckets=8,
    relative_distance=12, norm_type="rms", activation="silu", gated=True, max_length=64, force_end=True, seed=3,
)  # fmt: skip


def wide_awake(model):
    """Random weights large enough for targets of every length."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model.eval()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = wide_awake(gf.EncoderDecoder(CONFIG))
    made = gf.export(model, "onnx", tmp_path_factory.mktemp("onnx") / "out", sentences=30, quantization="int8")
    return model, made


def test_both_searches_write_the_same_tokens(exported):
    _, made = exported
    for way in ("greedy", "beam 4"):
        figures = made.report["figures"][way]
        assert figures["sentences"] == 30 == figures["equal"] + figures["tied"]
        assert figures["tied"] <= 1
        assert figures["tokens"] > 100


def test_it_is_the_int8_model_and_takes_less_room(exported):
    import onnx

    from glassformer.deploy.export.onnx import int8_model

    model, made = exported
    names = {name for name in made.report["files"] if name.startswith("onnx/")}
    assert names == {"onnx/encoder_model_int8.onnx", "onnx/decoder_model_merged_int8.onnx"}
    decoder = onnx.load(made.folder / "onnx" / "decoder_model_merged_int8.onnx")
    kinds = {weight.name: weight.data_type for weight in decoder.graph.initializer}
    whole = "model.decoder.blocks.0.feed_forward.up.weight"
    assert kinds[f"{whole}/values"] == onnx.TensorProto.INT8
    assert whole not in kinds
    assert not torch.equal(int8_model(model).head.weight, model.head.weight)


def test_the_driver_needs_nothing_of_ours_and_answers_as_generate_does(exported, tmp_path):
    from glassformer.deploy.export.onnx import int8_model

    model, made = exported
    source = [5, 9, 11, 30]
    command = [sys.executable, "-c", BARE, str(made.folder / "run.py"), "--beam", "4", "--ids", *map(str, source)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ((ours,),) = gf.generate(int8_model(model), torch.tensor([source]), beam=4, max_new_tokens=52)
    assert list(map(int, done.stdout.split())) == ours.ids


BARE = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"glassformer", "torch", "transformers", "onnx"}, loaded
"""


def test_names_are_those_that_other_programs_look_for(exported):
    import onnx

    _, made = exported
    decoder = onnx.load(made.folder / "onnx" / "decoder_model_merged_int8.onnx").graph
    kinds = [f"{side}.{part}" for side in ("decoder", "encoder") for part in ("key", "value")]
    assert {value.name for value in decoder.input} == {
        "input_ids", "encoder_attention_mask", "encoder_hidden_states", "use_cache_branch",
        *(f"past_key_values.0.{kind}" for kind in kinds),
    }  # fmt: skip
    assert {value.name for value in decoder.output} == {"logits", *(f"present.0.{kind}" for kind in kinds)}
    config = json.loads((made.folder / "config.json").read_text())
    assert (config["decoder_start_token_id"], config["eos_token_id"], config["pad_token_id"]) == (1, 2, 0)


def faults(weight):
    """What a seeded fault makes of a matrix of whole numbers, and of its scales."""
    from onnx import numpy_helper

    values = numpy_helper.to_array(weight).copy()
    if weight.name.endswith("cross_attention.output.weight/values"):
        return "a transposed matrix", np.ascontiguousarray(values.T)
    if weight.name.endswith("feed_forward.down.weight/scales"):
        return "a missing scale", np.ones_like(values)
    if weight.name.endswith("decoder.distance.table"):
        return "a position off by one", np.roll(values, 1, axis=0)
    return None


@pytest.mark.parametrize("fault", ["a transposed matrix", "a missing scale", "a position off by one"])
def test_a_fault_in_the_file_is_seen(exported, tmp_path, fault):
    import onnx

    from glassformer.deploy.export.onnx import FORMAT

    model, made = exported
    for file in made.folder.rglob("*"):
        if file.is_file():
            place = tmp_path / file.relative_to(made.folder)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(file.read_bytes())
    path = tmp_path / "onnx" / "decoder_model_merged_int8.onnx"
    decoder = onnx.load(path)
    for weight in decoder.graph.initializer:
        found = faults(weight)
        if found is not None and found[0] == fault:
            weight.CopyFrom(onnx.numpy_helper.from_array(found[1], weight.name))
            break
    else:
        pytest.fail("the file holds no such weight")
    onnx.save(decoder, path)
    loaded = replace(load_for_export(model), stored="int8")
    with pytest.raises(CheckFailed, match="does not do what the model does"):
        FORMAT.check(loaded, tmp_path, choose_sample(loaded, count=20), lambda _: None)
