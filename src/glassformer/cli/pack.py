"""`glassformer pack`: a trained model in a quarter of its room."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from typer import Argument, Option

from glassformer.cli.export import readable
from glassformer.cli.options import Offline, Revision, find_model


def pack(
    model: Annotated[str, Argument(help="A folder that glassformer train has made, or its name on the hub.")],
    out: Annotated[Path, Option(help="The folder to write, which must not be there yet.")],
    weights: Annotated[str, Option(help="int8; int6, smaller still; or float32, as they are.")] = "int8",
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Write a trained model a second time, its weights in int8 with a scale for each row.

    With --weights int6 the file is smaller still; read, they are in int8 again.

    With --weights float32, a model of an older glassformer gets its checksum.

    What it says changes a little, so its scores are left out: measure them anew with glassformer evaluate. Where the
    processor has our kernels, --precision auto runs the weights as they are stored.
    """
    from glassformer.weights import bundle

    folder = Path(find_model(model, revision, offline))
    bundle.pack(folder, out, cast(bundle.Weights, weights))
    print(f"{out}: {size(out)}, of {size(folder)}")


def size(folder: Path) -> str:
    """The room that a model takes, without what else is left of the run that made it."""
    from glassformer.weights.bundle import VOCABULARY

    names = ("config.json", "model.safetensors", *VOCABULARY, *(f"{name}.xz" for name in VOCABULARY))
    return readable(sum((folder / name).stat().st_size for name in names if (folder / name).is_file()))
