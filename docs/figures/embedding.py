"""How alike the demo's vectors are for pieces that do the same job, and for pieces that do not."""

import torch
from torch.nn import functional as F

from glassformer import Translator
from glassformer.labs.figures import Figure, Panel, Text

GROUPS = (
    ("1", "2", "3", "4", "5", "6"),
    ("▁ein", "▁zwei", "▁drei", "▁sechs", "▁sieben", "▁neun"),
    ("undzwanzig", "undvierzig", "undfünfzig", "undsechzig", "undsiebzig", "undachtzig"),
    ("hundertein", "hundertzwei", "hundertdrei", "hundertsechs", "hundertsieben", "hundertneun"),
)


def draw(t: Translator) -> Figure:
    pieces = t.tokenizer.source_pieces(range(t.model.config.vocab_size))
    names = [name for group in GROUPS for name in group]
    rows = F.normalize(t.model.encoder.embedding.tokens.weight.detach()[[pieces.index(name) for name in names]])
    alike = (rows @ rows.T).fill_diagonal_(torch.nan)  # that a vector is like itself says nothing
    return Figure(
        [
            Panel(
                Text("How alike the vectors of pieces are", "片段的向量有多相似"),
                Text("piece", "片段"),
                Text("piece", "片段"),
                ticks=names,
                rows=names,
                heat=alike.tolist(),
            )
        ],
        Text("Cosine of the angle between learnt embeddings.", "学到的嵌入向量之间夹角的余弦。"),
    )
