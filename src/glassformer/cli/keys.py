"""`glassformer keys`: who may use a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

keys = typer.Typer(help="Keys for `glassformer serve --keys FILE`.", no_args_is_help=True, rich_markup_mode=None)
File = Annotated[Path, Argument(help="The file of keys.")]
Name = Annotated[str, Argument(help="Whose key it is.")]


@keys.command("add")
def add(
    file: File,
    name: Name,
    per_minute: Annotated[int, Option(min=0, help="Requests a minute at most; 0: as many as they like.")] = 0,
) -> None:
    """Make a key, print it once, and keep its hash in the file."""
    from glassformer.deploy.server.keys import add_key

    print(add_key(file, name, per_minute))


@keys.command("remove")
def remove(file: File, name: Name) -> None:
    """Take a key out of the file; a server that runs notices."""
    from glassformer.deploy.server.keys import remove_key

    remove_key(file, name)


@keys.command("list")
def show(file: File) -> None:
    """Whose keys the file has, and their limits."""
    from glassformer.deploy.server.keys import read_keys

    for one in read_keys(file):
        print(f"{one.name}\t{one.per_minute or 'no limit'}")
