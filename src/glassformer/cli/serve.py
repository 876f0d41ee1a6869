"""`glassformer serve`: a model behind a page on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from glassformer.errors import ConfigError

DEMO = Path("runs/demo")


def serve(
    model: Annotated[
        Path | None,
        typer.Argument(help="A folder that glassformer train has made, or a Marian folder; the demo's if none."),
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; a free one from 8017 on if none.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 lets all machines in.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Show a model on a web page: every number of every layer, the search, the cache, and what-if."""
    if model is None:
        if not (DEMO / "model.safetensors").exists():
            raise ConfigError(
                "no model is named and there is no demo yet; run `glassformer demo` first, then "
                f"`glassformer serve {DEMO}`"
            )
        model = DEMO
    try:
        from glassformer.serve.listen import serve as run
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "anyio", "pydantic", "starlette"):
            raise
        raise ConfigError(f"{error.name} is not installed; run: pip install 'glassformer[web]'") from None
    run(model, host, port, device, open_browser, partial(print, flush=True))
