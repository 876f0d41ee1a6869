"""Recorded steps write what the plain loop writes. Where there is no GPU, their steps run unrecorded."""

import contextlib
import threading

import pytest
import torch

import glassformer as gf
from glassformer.decode import recorded
from glassformer.decode.generation import prepare_search

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def model_and_sources(kind="encoder-decoder", **options):
    torch.manual_seed(0)
    sizes = {"vocab_size": 300, "d_model": 32, "heads": 4, "d_ff": 48, "layers": 2, "max_length": 256}
    config = gf.ModelConfig(**sizes, **options)
    model = (gf.EncoderDecoder if kind == "encoder-decoder" else gf.DecoderOnly)(config).eval().to(DEVICE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1.7
    src = torch.randint(3, 300, (7, 21), device=DEVICE)
    mask = torch.arange(21, device=DEVICE) < torch.randint(1, 22, (7, 1), device=DEVICE)
    return model, src, mask


@torch.inference_mode()
def run_recorded(recorder, model, src, mask, beam, limit):
    src, mask = recorded.pad_to_bucket(src, mask, 0)
    search = gf.Search(beam=beam)
    done = recorder.run((src.shape, beam, limit), limit, lambda: prepare_search(model, src, mask, search, limit), 7)
    return done.hypotheses()[:7]


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "relative", "learned", "grouped"])
@pytest.mark.parametrize(
    ("kind", "beam"),
    [
        ("encoder-decoder", 3),
        ("decoder-only", 1),
        pytest.param("encoder-decoder", 1, marks=pytest.mark.long),
        pytest.param("decoder-only", 3, marks=pytest.mark.long),
    ],
)
def test_recorded_steps_write_the_same(kind, beam, positions):
    grouped = {"decoder_heads": 8, "kv_heads": 4, "decoder_d_ff": 40, "head_width": 6}
    model, src, mask = model_and_sources(kind, **(grouped if positions == "grouped" else {"positions": positions}))
    recorder = recorded.Recorder(model)
    for limit in (1, 15):
        for rows in (src, src.flip(0)):  # the second is written by the first one's recording
            found = run_recorded(recorder, model, rows, mask, beam, limit)
            alone = [row[seen].unsqueeze(0) for row, seen in zip(rows, mask, strict=True)]
            expected = [gf.generate(model, row, beam=beam, max_new_tokens=limit, prefix=[[]])[0] for row in alone]
            assert [h[0].ids for h in found] == [h[0].ids for h in expected]
            assert [h[0].score for h in found] == pytest.approx([h[0].score for h in expected], abs=1e-4)
    assert len(recorder.recordings) == 2


def test_a_model_whose_weights_moved_is_recorded_anew():
    model, _, _ = model_and_sources()
    first = recorded.recorder(model)
    assert recorded.recorder(model) is first
    model.double()
    assert recorded.recorder(model) is not first


def test_recordings_are_let_go_for_want_of_memory():
    model, src, mask = model_and_sources()
    recorder = recorded.Recorder(model)

    def kept():
        for limit in (9, 5, 9, 7):
            run_recorded(recorder, model, src, mask, 2, limit)
        return [key[-1] for key in recorder.recordings]

    assert kept() == [5, 9, 7]
    sizes = {key[-1]: recording.cache.bytes for key, recording in recorder.recordings.items()}
    entries = (1 + 9 * 2, 32)  # the start and the targets of two beams, and the source
    assert sizes[9] == 8 * sum(entries) * 32 * 4 * 2 * 2  # rows, entries, width, bytes, keys and values, layers
    recorder.most = sizes[9] + sizes[7]
    assert kept() == [9, 7]
    recorder.most = 1
    assert kept() == [7]


def test_two_first_requests_share_one_recorder(monkeypatch):
    model, _, _ = model_and_sources()
    both, made = threading.Barrier(2), []

    class Slow(recorded.Recorder):
        def __init__(self, model):
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.3)  # for the other one, should it come here too
            super().__init__(model)
            made.append(self)

    monkeypatch.setattr(recorded, "Recorder", Slow)
    threads = [threading.Thread(target=recorded.recorder, args=(model,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_padding_to_a_shape_stays_within_the_position_table():
    src = torch.ones(3, 21, dtype=torch.long)
    assert recorded.pad_to_bucket(src, None, 0)[0].shape == (3, 32)
    assert recorded.pad_to_bucket(src, None, 0, 25)[0].shape == (3, 25)
    assert recorded.pad_to_bucket(src, None, 0, 21)[0].shape == (3, 21)


def test_shapes_are_few_and_roomy_enough():
    sizes = [recorded.bucket(n) for n in range(1, 1025)]
    assert all(n <= size <= 1.5 * n for n, size in enumerate(sizes, 1))
    assert len(set(sizes)) < 25
