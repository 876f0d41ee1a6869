"""Small models of random weights in the shapes that Firefox Translations publishes, in Marian's own files."""

import torch
from tiny_translators import sentences

import glassformer as gf
from glassformer.deploy.export.marian import input_ranges, write_weights
from glassformer.weights.pretrained.marian_native import NEVER, POSITIONS, angles

# Narrower than the published ones, of as many layers.
SHAPES = {
    "tiny": {"d_model": 64, "heads": 8, "d_ff": 192, "layers": 6, "decoder_layers": 2},
    "base": {"d_model": 128, "heads": 8, "d_ff": 256, "layers": 6, "decoder_layers": 2},
    "base-memory": {"d_model": 96, "heads": 8, "d_ff": 192, "layers": 6, "decoder_layers": 4},
}
SMALL = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 2, "decoder_layers": 1}
UNSATURATED = 64  # up to it, no processor adds up two products past its 16 bits


def train_vocabulary(path, lines, size=90):
    """A SentencePiece model with the special pieces of the published ones: the end 0, the unknown 1."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(path.with_suffix("")), vocab_size=size, minloglevel=2,
        hard_vocab_limit=False, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1,
    )  # fmt: skip
    path.with_suffix(".model").rename(path)
    path.with_suffix(".vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


@torch.no_grad()
def random_model(size, source=None, seed=0, ending=0.5, **shape):
    """Weights are normal; a decoder's matrices are large, and its mean logits are taken off, so that it says much. It
    is fond of the `ending` by so many deviations of its logits."""
    config = gf.ModelConfig(
        vocab_size=size + 1, src_vocab_size=source, norm="post", norm_eps=1e-6, autoregression="ssru", output_bias=True,
        max_length=POSITIONS, dropout=0.0, start_id=size, pad_id=size, end_id=0, seed=seed, **shape,
    )  # fmt: skip
    model, generator = gf.EncoderDecoder(config).eval(), torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        normal = torch.randn(weight.shape, generator=generator)
        if weight.dim() > 1:
            gain = 2 if name.startswith("decoder.blocks") else 1
            weight.copy_(normal * gain * weight.shape[-1] ** -0.5)
        else:
            weight.add_(0.1 * normal)
    for stack in (model.encoder, model.decoder):
        stack.embedding.positions.table.copy_(angles(POSITIONS, config.d_model))
    model.decoder.embedding.tokens.weight[size] = 0
    src = torch.randint(2, source or size, (24, 9), generator=generator)
    tgt = torch.randint(2, size, (24, 12), generator=generator)
    tgt[:, 0] = size
    model.head.bias.zero_()
    logits = model(src, tgt)[:, :, :size].flatten(0, 1)
    model.head.bias[:size] = -logits.mean(0)
    model.head.bias[0] += ending * (logits - logits.mean(0)).std()
    model.head.bias[size] = NEVER
    return model


def write_folder(folder, weights="int8", shared=True, largest=127, seed=0, shape="tiny", suffix=".bin", **options):
    """A folder of a random model, its vocabularies trained here; the model, and those."""
    folder.mkdir(exist_ok=True)
    lines = sentences(300, 1)
    names = ("vocab.xxyy.spm",) * 2 if shared else ("srcvocab.xxyy.spm", "trgvocab.xxyy.spm")
    source = train_vocabulary(folder / names[0], lines)
    target = source if shared else train_vocabulary(folder / names[1], [line.upper() for line in lines], 80)
    sizes = SHAPES.get(shape, SMALL)
    model = random_model(len(target), None if shared else len(source), seed, **sizes, **options)
    sample = [torch.tensor([[*source.encode(line), 0]]) for line in sentences(8, 3)]
    ranges = None
    if weights == "int8":
        ranges = input_ranges(model, lambda model: [gf.generate(model, ids, max_new_tokens=16) for ids in sample])
    write_weights(folder / f"model.xxyy.intgemm.alphas{suffix}", model, ranges, largest)
    return model, source, target


def shortlist_bytes(offsets, pieces, frequent):
    """A binary shortlist."""
    import numpy as np

    header = [0xF11A48D5013417F5, 0, frequent, 1, len(offsets), len(pieces)]
    return np.array([*header, *offsets], "<u8").tobytes() + np.array(pieces, "<u4").tobytes()
