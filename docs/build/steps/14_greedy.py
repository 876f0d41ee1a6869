"""Write: the likeliest piece at each place, until the end is said."""

import torch


# --- Writing ---
@torch.no_grad()
def greedy(model, src, limit=48):
    """The target of each source (B, S), as lists of ids without start and end."""
    memory = model.encode(src)
    tgt = torch.full((len(src), 1), START)
    going = torch.ones(len(src), dtype=torch.bool)
    while going.any() and tgt.shape[1] <= limit:
        piece = model.decode(tgt, memory, src)[:, -1].argmax(-1)  # (B)
        tgt = torch.cat((tgt, piece.where(going, PAD)[:, None]), dim=1)
        going &= piece != END
    return [[piece for piece in row if piece not in (PAD, START, END)] for row in tgt.tolist()]
