"""The same weights in an independent engine write the same tokens."""

import ctranslate2
import pytest
import torch

import glassformer as gf
from benchmarks.decode import ctranslate2_folder


@pytest.mark.parametrize("beam", [1, 4])
def test_the_same_tokens_as_ctranslate2(beam, tmp_path):
    config = gf.ModelConfig(vocab_size=60, d_model=32, heads=4, d_ff=64, layers=2, end_id=None, seed=3)
    model = gf.EncoderDecoder(config).eval()
    with torch.no_grad():
        # The engine never writes the end before the length asked for; make it unlikely here too.
        model.head.weight[:4] = -10 * model.head.weight.abs().max()
        for p in model.encoder.blocks.parameters():
            p *= 2.0
    ctranslate2_folder(model, tmp_path)
    src = torch.randint(4, 60, (20, 9), generator=torch.Generator().manual_seed(0))
    engine = ctranslate2.Translator(str(tmp_path), device="cpu", compute_type="float32")
    theirs = engine.translate_batch(
        [[f"t{i}" for i in row] for row in src.tolist()],
        beam_size=beam,
        max_decoding_length=8,
        min_decoding_length=8,
    )
    ours = gf.generate(model, src, beam=beam, max_new_tokens=8)
    assert [[f"t{i}" for i in h[0].ids] for h in ours] == [t.hypotheses[0] for t in theirs]
