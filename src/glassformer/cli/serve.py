"""`glassformer serve`: a model behind a page on this machine."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from typer import Argument, Option

from glassformer.cli.options import Device, Offline, Revision, To, find_model
from glassformer.common.errors import ConfigError, check_choice

DEMO = Path("runs/demo")


def serve(
    models: Annotated[
        list[str] | None,
        Argument(
            metavar="[MODEL]...",
            help="Folders that glassformer train has made, Marian folders, en-de and others of the box, or names of "
            "the hub; all of the box's if none. A model that does not translate (GPT-2, BERT, ViT) is shown alone.",
        ),
    ] = None,
    to: To = None,
    source: Annotated[
        str | None, Option("--from", help="Of a model that reads several, or of the box: language of the texts.")
    ] = None,
    port: Annotated[int | None, Option(min=0, max=65535, help="Port; a free one from 8017 on if none.")] = None,
    host: Annotated[str, Option(help="Address to listen at; 0.0.0.0 lets all machines in.")] = "127.0.0.1",
    open_browser: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    device: Device = "cpu",
    only: Annotated[
        Literal["api", "page"] | None,
        Option(help="api: translations for other programs, and no page; page: the reverse. Default: both."),
    ] = None,
    precision: Annotated[
        str, Option(help="Of translations: auto, fp32, bf16 or int8 (CPU). The page's are fp32.")
    ] = "auto",
    workers: Annotated[
        int | None,
        Option(min=1, max=64, help="Batches that are translated at once; if none, one for each core, or GPU."),
    ] = None,
    threads: Annotated[
        int | None, Option(min=1, max=1024, help="Cores for each of them; if none, those that are free.")
    ] = None,
    open_to_all: Annotated[
        bool, Option("--open-to-all", help="With --host: let whoever reaches this machine use it.")
    ] = False,
    keys: Annotated[
        Path | None, Option(help="A file that `glassformer keys` has made: programs need one of its keys.")
    ] = None,
    grace: Annotated[
        float, Option(min=0, max=3600, help="Seconds to finish what has been begun, when told to stop.")
    ] = 0,
    cors: Annotated[
        list[str] | None,
        Option(help="A site whose pages may ask for translations, such as https://example.org; * for all."),
    ] = None,
    timeout: Annotated[
        float, Option(min=0, max=86400, help="Seconds for one translation; 0: as long as it takes.")
    ] = 600,
    log: Annotated[bool, Option("--log", help="Write a line of JSON for every request to stderr.")] = False,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """A page to translate with, and one that looks inside a model: every number of every layer, the search, the cache,
    and what-if; and translations for other programs, by the interface of LibreTranslate: POST /translate, /detect, GET
    /languages."""
    wait_briefly()
    first = None if models else of_the_box(to, source)
    if not models and first is None:
        if not (DEMO / "model.safetensors").exists():
            raise ConfigError(
                "no model is named and there is no demo yet; run `glassformer demo` first, then "
                f"`glassformer serve {DEMO}`"
            )
        models = [str(DEMO)]
    try:
        from glassformer.deploy.server.directions import box_directions, load_directions
        from glassformer.deploy.server.listen import ServeOptions
        from glassformer.deploy.server.listen import serve as run
        from glassformer.deploy.server.queue import default_workers
        from glassformer.pipelines import kind_and_config
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "anyio", "pydantic", "starlette"):
            raise
        raise ConfigError(f"{error.name} is not installed; run: pip install 'glassformer[web]'") from None
    from glassformer.common.device import pick_device
    from glassformer.decode.precision import Precision

    check_choice("--precision", precision, get_args(Precision))
    does = {"api": "translate", "page": "are shown"}.get(only or "", "are shown and translate")
    if models:
        if len(models) == 1:
            does = does.replace("are", "is").replace("translate", "translates")
        named = ", ".join(models[:-1]) + " and " * (len(models) > 1) + models[-1]
        folders = [Path(find_model(model, revision, offline)) for model in models]
        if any(map(kind_and_config, folders)):  # models that do not translate
            if len(folders) > 1 or only == "api" or to or source:
                odd = next(folder for folder in folders if kind_and_config(folder))
                raise ConfigError(f"{odd} does not translate: serve it alone, without --to, --from and --only api")
            only, does = "page", "is shown"
        title, load = f"{named} {does}", partial(load_directions, folders, device, to, source=source)
    else:
        title, load = f"the translators in the box {does}", partial(box_directions, device, str(first))
    page = None if only == "api" else load
    translators = None if only == "page" else partial(load, precision=cast(Precision, precision))
    at_once = workers or default_workers(pick_device(device))
    options = ServeOptions(
        host, port, open_browser, at_once, threads, open_to_all, keys, grace, log, tuple(cors or ()), timeout
    )
    try:
        run(title, page, translators, options, partial(print, flush=True))
    except KeyboardInterrupt:  # all is closed by now; to take PyTorch down in order takes longer than the grace may
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)


def wait_briefly() -> None:
    """Let the threads of a product wait awake for the next one, but not longer, unless the user has said how long: it
    is sixty times as long usually, and where other programs want the cores, nothing gets done meanwhile. OpenMP reads
    it once, as PyTorch is imported."""
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ):
        os.environ["GOMP_SPINCOUNT"] = "5000"


def of_the_box(to: str | None, source: str | None) -> Path | None:
    """The name of the translator in the box that goes from one language to the other; none where the box is empty."""
    from glassformer.pipelines import box
    from glassformer.pipelines.language.language import language_code

    if not (to or source):
        return next((Path(model) for model in box.MODELS if box.is_there(model)), None)
    start = None if source is None else language_code(source, box.LANGUAGES)
    end = None if to is None else language_code(to, box.LANGUAGES)
    start = start or (box.PIVOT if end != box.PIVOT else box.LANGUAGES[1])
    end = end or (box.PIVOT if start != box.PIVOT else box.LANGUAGES[1])
    if f"{start}-{end}" not in box.directions():
        known = ", ".join(box.directions())
        raise ConfigError(f"no one model goes from `{start}` to `{end}`; there are {known}")
    box.folder(box.directions()[f"{start}-{end}"].model)  # told at once where it is missing
    return Path(f"{start}-{end}")
