"""Models by their names on the Hugging Face hub: fetched once, into the cache of the hub's own client.

Only what a model needs is fetched: its config.json, its weights as safetensors, whole or in shards, and the files of
its tokenizer. Pickled weights are never fetched. Each file is compared with the hash that the hub tells of it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from glassformer.common.errors import ConfigError
from glassformer.weights.hub.repository import fetch as fetch

SAID = "hf://"  # before a name, where it might be taken for a folder
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def locate(model: str | Path, revision: str | None = None, offline: bool = False) -> Path:
    """The folder of a model that is named: a folder of this name, or else the hub's model, fetched if it must be.

    What is neither is given back as it is, for the caller to refuse.
    """
    name = hub_name(model)
    if name is not None:
        return fetch(name, revision, offline)
    if revision is not None:
        raise ConfigError(f"revision={revision} goes with a name of the hub, such as owner/name; {model} is none")
    return Path(model)


def hub_name(model: str | Path) -> str | None:
    """What a model is called on the hub, if that is what is meant: no folder has this name, nor the owner's alone."""
    if not isinstance(model, str):
        return None
    if model.startswith(SAID):
        name = model.removeprefix(SAID).strip("/")
        if not NAME.fullmatch(name):
            raise ConfigError(f"{model} names no model of the hub; that is written {SAID}owner/name")
        return name
    if not NAME.fullmatch(model) or os.path.lexists(model) or os.path.isdir(model.partition("/")[0]):
        return None
    return model


def called(folder: str | Path) -> str:
    """The name of a model by its folder; of one in the client's cache, that on the hub without its owner."""
    folder = Path(folder).resolve()
    stored = folder.parent.parent.name
    return stored.rpartition("--")[2] if folder.parent.name == "snapshots" and "--" in stored else folder.name
