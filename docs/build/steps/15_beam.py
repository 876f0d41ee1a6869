"""Write with second thoughts: several beginnings are kept, the best whole wins."""

import torch


# --- Writing ---
@torch.no_grad()
def beam(model, src, beams=4, limit=48):
    """The target of one source (1, S) with the best mean log-probability that is found, as a list of ids."""
    memory = model.encode(src)
    running, done = [(0.0, [START])], []
    for length in range(1, limit + 1):
        tgt = torch.tensor([ids for _, ids in running])  # (K, T)
        logits = model.decode(tgt, memory.expand(len(tgt), -1, -1), src.expand(len(tgt), -1))[:, -1]  # (K, V)
        totals = torch.tensor([total for total, _ in running])[:, None] + logits.log_softmax(-1)
        best = totals.flatten().topk(2 * beams)  # enough, even if half of them end here
        grown = [
            (total, [*running[place // logits.shape[1]][1], place % logits.shape[1]])
            for total, place in zip(best.values.tolist(), best.indices.tolist())
        ]
        done += [(total / length, ids) for total, ids in grown[:beams] if ids[-1] == END or length == limit]
        running = [(total, ids) for total, ids in grown if ids[-1] != END][:beams]
        if done and max(done)[0] >= running[0][0] / limit:  # totals only fall: none of these can win any more
            break
    return [piece for piece in max(done)[1] if piece not in (START, END)]
