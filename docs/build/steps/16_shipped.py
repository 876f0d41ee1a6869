"""Put the weights of a trained model into this file, and translate."""

import json
import sys
from dataclasses import fields

from safetensors.torch import load_file

from glassformer.data import Tokenizer


# --- The shipped model's weights ---
def load(folder):
    """The model that `make demo` trained, in the classes of this file, and its tokenizer."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        settings = json.load(file)
    built = {"norm": "pre", "norm_type": "layer", "activation": "relu", "positions": "sinusoidal", "tied": True}
    assert built.items() <= settings.items(), f"{folder} is another kind of model; this file is one of {built}"
    model = Transformer(Config(**{field.name: settings[field.name] for field in fields(Config)}))
    weights = {}
    for name, tensor in load_file(f"{folder}/model.safetensors").items():
        if ".projection." in name:  # the matrices of q, k and v are stored as one
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3)):
                weights[name.replace("projection", part)] = rows
        elif not name.endswith("positions.table"):  # our waves are computed
            weights[name] = tensor
    weights["decoder.embedding.tokens.weight"] = weights["encoder.embedding.tokens.weight"]  # one table, two names
    model.load_state_dict(weights)
    return model, Tokenizer.load(folder)


def translate(model, tokenizer, texts):
    return tokenizer.decode_target(greedy(model, table(tokenizer.encode_source(texts))))


if __name__ == "__main__":
    print(*translate(*load(sys.argv[1]), sys.argv[2:]), sep="\n")
