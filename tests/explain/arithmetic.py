"""The operations of a manifest, carried out again in numpy from nothing but the manifest and its two blobs."""

import functools
import math

import numpy as np


class Arithmetic:
    def __init__(self, trace):
        self.manifest = trace.manifest()
        blob, weights = trace.blob(), trace.weights_blob()
        self.rows = {row["name"]: row for row in self.manifest["tensors"]}
        self.values = {row["name"]: read(blob, row) for row in self.manifest["tensors"]}
        self.weights = {row["name"]: read(weights, row).astype(float) for row in self.manifest["weights"]}

    def again(self, name):
        """The value that the operation of `name` gives."""
        row = self.rows[name]
        kind = "norm" if row["op"]["kind"].endswith("_norm") else row["op"]["kind"]
        return getattr(self, kind)(row["op"], tuple(row["shape"]))

    def x(self, name):
        return self.values[name].astype(float)

    def lookup(self, op, shape):
        ids = self.manifest[op["ids"]]["ids"] if isinstance(op["ids"], str) else op["ids"]
        return self.weights[op["weight"]][ids]

    def pixels(self, op, shape):
        """What was given; a test of its own holds it to the image."""
        return self.x("encoder.embedding.pixels")

    def prepend(self, op, shape):
        return np.concatenate((self.weights[op["weight"]][None], self.x(op["input"])))

    def first(self, op, shape):
        return self.x(op["input"])[:1]

    def scale(self, op, shape):
        return self.x(op["input"]) * op["by"]

    def positions(self, op, shape):
        places = np.maximum(np.arange(shape[0]) - op.get("shift", 0), 0)
        if op["weight"] is not None:
            return self.weights[op["weight"]][places]
        assert op["scheme"] == "sinusoidal"
        table = np.empty(shape)
        for j in range(shape[1]):
            angle = places / 10000 ** ((j - j % 2) / shape[1])
            table[:, j] = np.cos(angle) if j % 2 else np.sin(angle)
        return table

    def add(self, op, shape):
        return sum(self.x(name) for name in op["inputs"])

    def linear(self, op, shape):
        low, high = op["rows"]
        found = self.x(op["input"]) @ self.weights[op["weight"]][low:high].T
        if op["bias"] is not None:
            found = found + self.weights[op["bias"]][low:high]
        if op["heads"] is not None:
            found = found.reshape(len(found), op["heads"], -1).transpose(1, 0, 2)
        return found

    def rotation(self, op, shape):
        angle = np.arange(shape[0])[:, None] * op["base"] ** (-2 * np.arange(shape[1]) / op["d_head"])
        angle = angle * np.array(op["pace"] or 1)
        return {"cos": np.cos, "sin": np.sin}[op["part"]](angle)

    def rotate(self, op, shape):
        plain, cos, sin = self.x(op["input"]), self.x(op["cos"]), self.x(op["sin"])
        a, b = plain[..., 0::2], plain[..., 1::2]
        return np.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(shape)

    def products(self, op, shape):
        q, k = self.x(op["q"]), self.x(op["k"])
        return np.stack([q[h] @ k[h * len(k) // len(q)].T for h in range(len(q))])

    def mask(self, op, shape):
        found = self.x(op["input"])
        if op["bias"] is not None:
            found = found + self.x(op["bias"])
        return np.where(self.x(op["mask"]) == 1, found, -np.inf)

    def softmax(self, op, shape):
        found = self.x(op["input"]) / op["temperature"]
        top = found.max(-1, keepdims=True)
        weight = np.exp(found - np.where(np.isinf(top), 0, top))
        return weight / np.maximum(weight.sum(-1, keepdims=True), np.isinf(top))

    def context(self, op, shape):
        pattern, v = self.x(op["pattern"]), self.x(op["v"])
        return np.stack([pattern[h] @ v[h * len(v) // len(pattern)] for h in range(len(pattern))])

    def merge(self, op, shape):
        return self.x(op["input"]).transpose(1, 0, 2).reshape(shape)

    def norm(self, op, shape):
        """By the expression that came with it, for every kind of norm."""
        symbols = {"x": self.x(op["input"]), "g": self.weights[op["weight"]], "ε": op["eps"]}
        symbols["b"] = None if op["bias"] is None else self.weights[op["bias"]]
        for name, (reduction, inner) in op["row"].items():
            symbols[name] = getattr(np, reduction)(evaluated(inner, symbols), -1, keepdims=True)
        return evaluated(op["expression"], symbols)

    def activation(self, op, shape):
        up = self.x(op["input"])
        act = evaluated(op["expression"], {"u": up[:, : shape[1]], "π": math.pi})
        return act * up[:, shape[1] :] if op["gated"] else act

    def same(self, op, shape):
        assert self.rows[op["input"]]["shape"] == list(shape)
        return self.x(op["input"])

    def visible(self, op, shape):
        queries, keys = np.arange(shape[0])[:, None], np.arange(shape[1])
        seen = keys <= queries if op["causal"] else np.ones(shape, bool)
        if op["padding"] is not None:
            real = self.manifest[op["padding"]]["real"]
            seen = seen & np.array([*real, *[True] * (shape[1] - len(real))])
        return seen.astype(float)

    def alibi(self, op, shape):
        distance = abs(np.arange(shape[2]) - np.arange(shape[1])[:, None])
        return -np.array(op["slopes"])[:, None, None] * distance

    def relative(self, op, shape):
        table = self.weights[op["weight"]]
        found = np.empty(shape)
        for t in range(shape[1]):
            for s in range(shape[2]):
                found[:, t, s] = table[bucket(s - t, len(table), op["furthest"], op["both_ways"])]
        return found


FUNCTIONS = {"√": np.sqrt, "max": np.maximum, "erf": np.vectorize(math.erf), "^": np.power, "/": np.divide}


def evaluated(expression, symbols):
    if not isinstance(expression, list | tuple):
        return symbols[expression] if isinstance(expression, str) else expression
    name, *parts = expression
    values = [evaluated(part, symbols) for part in parts]
    if name in "+*":
        return functools.reduce({"+": np.add, "*": np.multiply}[name], values)
    if name == "-":
        return -values[0] if len(values) == 1 else values[0] - values[1]
    return (FUNCTIONS.get(name) or getattr(np, name))(*values)


def bucket(offset, buckets, furthest, both_ways):
    first = 0
    if both_ways:
        buckets //= 2
        first, distance = (buckets if offset > 0 else 0), abs(offset)
    else:
        distance = max(-offset, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    grown = math.log(distance / exact) / math.log(furthest / exact)
    return first + min(exact + int(grown * (buckets - exact)), buckets - 1)


def read(blob, row):
    found = np.frombuffer(blob, "<f4", count=row["bytes"] // 4, offset=row["offset"])
    return found.reshape(row["shape"])


def check(trace, bar=1e-5):
    """Every operation gives its value again; how many of which kind there were."""
    sums = Arithmetic(trace)
    kinds = {}
    for name, row in sums.rows.items():
        kind = row["op"]["kind"]
        kinds[kind] = kinds.get(kind, 0) + 1
        linked = [*row["inputs"]]
        assert all(other in sums.rows for other in linked), (name, linked)
        if kind == "replaced":
            continue
        found, kept = sums.again(name), sums.x(name)
        assert found.shape == kept.shape, name
        hidden = np.isinf(kept)
        assert (hidden == np.isinf(found)).all(), name
        apart = np.abs(np.where(hidden, 0, found) - np.where(hidden, 0, kept))
        assert (apart <= bar * np.maximum(1, np.abs(np.where(hidden, 0, kept)))).all(), (name, apart.max())
    return kinds
