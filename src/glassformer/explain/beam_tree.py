"""The tree of hypotheses that search has grown: what it kept, what it finished and what it let go."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from glassformer.decode import Search
from glassformer.explain.subject import Subject
from glassformer.explain.writing import Written, chosen_log_probabilities

RULE = "sum of log-probabilities / length ** length_penalty"
RUNNERS_UP = 3  # drawn beside each choice where the search was greedy


class Tree:
    """Nodes in the order in which they were grown."""

    def __init__(self, subject: Subject, written: Written, search: Search) -> None:
        self.subject, self.search = subject, search
        self.nodes: list[dict[str, Any]] = []
        self.grow(None, -1, written.prompt[-1], 0.0, "kept")

    def grow(self, parent: int | None, step: int, token: int, total: float, state: str) -> int:
        before = 0.0 if parent is None else self.nodes[parent]["total"]
        score = total / (step + 1) ** self.search.length_penalty if step >= 0 else 0.0
        node = {
            "id": len(self.nodes),
            "parent": parent,
            "step": step,
            "token": token,
            "piece": self.subject.pieces([token], source=False)[0],
            "log_probability": total - before,
            "total": total,
            "score": score,
            "state": state,
            "winner": False,
        }
        self.nodes.append(node)
        return len(self.nodes) - 1

    def crown(self, chosen: list[int]) -> None:
        """Mark the path of the best hypothesis."""
        at: int | None = 0
        self.nodes[0]["winner"] = True
        for token in chosen:
            at = next((n["id"] for n in self.nodes if n["parent"] == at and n["token"] == token), None)
            if at is None:
                return
            self.nodes[at]["winner"] = True


def beam_tree(subject: Subject, written: Written, log_probs: Tensor, search: Search) -> dict[str, Any] | None:
    """`log_probs`: the log-probabilities (steps, V) along the output, as its steps show them."""
    if not written.prompt:
        return None
    tree = Tree(subject, written, search)
    if written.selections:
        searched(tree, written, log_probs)
    else:
        chain(tree, written, log_probs)
    tree.crown(written.chosen)
    return {"size": search.beam, "length_penalty": search.length_penalty, "rule": RULE, "nodes": tree.nodes}


def searched(tree: Tree, written: Written, log_probs: Tensor) -> None:
    """The candidates of every step; those that a prefix has ruled out are none.

    Search adds up in single precision. Along the output and beside it the sums are those of `log_probs`, so that no
    number is told in two ways.
    """
    slots = {0: 0}  # the node that each slot of the beam stands at
    output, own = 0, chosen_log_probabilities(log_probs, written)  # the node that the output has come to
    for selection in written.selections:
        rows = [x[0].tolist() for x in (selection.parent, selection.token, selection.total)]
        ended, kept = selection.finished[0].tolist(), selection.kept[0].tolist()
        grown: dict[int, int] = {}
        step, following = selection.step, -1
        for parent, token, total, finished, slot in zip(*rows, ended, kept, strict=True):
            if not math.isfinite(total) or parent not in slots:
                continue
            state = "finished" if finished else "kept" if slot >= 0 else "pruned"
            chosen = slots[parent] == output and token == written.chosen[step]
            if slots[parent] == output:
                total = tree.nodes[output]["total"] + (own[step] if chosen else float(log_probs[step, token]))
            node = tree.grow(slots[parent], step, token, total, state)
            following = node if chosen else following
            if slot >= 0 and not finished:
                grown[slot] = node
        slots = grown
        output = following if step + 1 < len(own) else -1


def chain(tree: Tree, written: Written, log_probs: Tensor) -> None:
    """The output alone, and beside each of its tokens the likeliest it was preferred to."""
    at, total = 0, 0.0
    last = len(written.chosen) - 1
    for step, (token, own) in enumerate(zip(written.chosen, chosen_log_probabilities(log_probs, written), strict=True)):
        row = log_probs[step]
        others = [id for id in row.topk(min(RUNNERS_UP + 1, len(row))).indices.tolist() if id != token][:RUNNERS_UP]
        ends = written.finished and step == last
        following = tree.grow(at, step, token, total + own, "finished" if ends else "kept")
        for id in others:
            tree.grow(at, step, id, total + float(row[id]), "pruned")
        at, total = following, total + own
