"""The images of a published model that is trained on: its labels and its shades, as training asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from glassformer.common.files import read_json
from glassformer.data.labelled import Labels, Pictures
from glassformer.data.vocabulary import Shades
from glassformer.weights.pretrained.start_text import change, is_published

SETTINGS, SIGHT = "config.json", "preprocessor_config.json"
WITH_HEAD = "ViTForImageClassification"


def shades(folder: Path, channels: int) -> Shades | None:
    """How a folder says that pixels become what its model reads; None where they are read as they are."""
    told = read_json(folder / SIGHT) or {}
    if not told.get("do_normalize", bool(told)):
        return None
    mean, spread = (told.get(name) or [0.5] * channels for name in ("image_mean", "image_std"))
    return Shades(tuple(map(float, mean)), tuple(map(float, spread)))


def named_labels(folder: Path) -> tuple[str, ...]:
    """The names that a published model's settings give its labels."""
    named = (read_json(folder / SETTINGS) or {}).get("id2label")
    return (
        tuple(str(named[number]) for number in sorted(named, key=lambda number: (len(number), number)))
        if isinstance(named, dict)
        else ()
    )


class StartPictures(Pictures):
    """Images as a published model reads them; its head has a bias, whatever a recipe says."""

    def __init__(self, folder: Path, labels: Labels) -> None:
        super().__init__(labels)
        assert labels.image is not None
        self.numbering = shades(folder, labels.image[0])

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        return super().settings(asked) | {"output_bias": True}


def keep(start: Path, folder: Path, labels: Labels) -> None:
    """Copy a published model's settings to the folder of a run, where these are the names of its labels."""
    if not is_published(start) or is_published(folder):
        return
    if (start / SIGHT).is_file():
        (folder / SIGHT).write_bytes((start / SIGHT).read_bytes())
    names = {} if labels.names == named_labels(start) else dict(enumerate(labels.names))
    told: dict[str, Any] = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    partial = folder / f".{SETTINGS}"
    partial.write_bytes((start / SETTINGS).read_bytes())
    change(partial, {"architectures": [WITH_HEAD]} | (told if names else {}))
    partial.rename(folder / SETTINGS)
