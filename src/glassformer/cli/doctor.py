"""`glassformer doctor`: is everything here that a run needs, and what will the run be like?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from glassformer.cli.options import Device

if TYPE_CHECKING:
    from glassformer.train import Recipe


def doctor(
    recipe: Annotated[str, Argument(help="A recipe to look over: its corpus, its size, its time.")] = "",
    change: Annotated[
        list[str] | None, Option("--set", help="Change a key of the recipe, as for train.", metavar="KEY=VALUE")
    ] = None,
    parity: Annotated[bool, Option("--parity", help="Compare every family with transformers.")] = False,
    device: Device = "auto",
) -> None:
    """Look over this machine, and a recipe before it runs; with --parity, compare the model with transformers."""
    if parity:
        from glassformer.weights.parity import main

        sys.exit(main())
    show_machine()
    if recipe:
        from glassformer.train import read_recipe

        show_recipe(read_recipe(recipe, tuple(change or ())), device)


def line(name: str, text: str) -> None:
    print(f"{name:14} {text}")


def show_machine() -> None:
    import platform
    import shutil
    from importlib.metadata import PackageNotFoundError, version

    import torch

    from glassformer.decode.kernels import load_kernels
    from glassformer.pipelines.box import MODELS, is_there

    line("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    line("torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        line("cuda", f"{torch.cuda.get_device_name()}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free")
    else:
        line("cuda", "none; training and decoding use the CPU")
    amx = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()
    capability = torch.backends.cpu.get_cpu_capability()
    line("cpu", f"{capability}; bf16 matrix units: {'yes, precision auto = bf16' if amx else 'no, auto = fp32'}")
    own = load_kernels()
    kernels_text = (
        f"none of our own: {own}" if isinstance(own, str) else f"our own, {own.level}: {', '.join(sorted(own.kinds))}"
    )
    line("kernels", kernels_text)
    line("box", ", ".join(f"{name} (both ways)" if is_there(name) else f"no {name}" for name in MODELS))
    line("disk", f"{shutil.disk_usage('.').free / 2**30:.0f} GiB free here")
    packages = []
    extras = ("matplotlib", "tensorboard", "datasets", "ray", "transformers", "ctranslate2")
    for package in ("num2words", "Babel", *extras):
        try:
            packages.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            packages.append(f"no {package}")
    line("packages", ", ".join(packages))


def show_recipe(recipe: Recipe, device: str) -> None:
    from glassformer.common.report import Report
    from glassformer.data.survey import survey
    from glassformer.train.forecast import forecast

    recipe.check_files()
    report = Report()
    print()
    splits = {"train": recipe.data.train, "valid": recipe.data.valid, "test": recipe.data.test}
    surveys = {}
    what = "texts" if recipe.objective.monolingual else "pairs"
    for name, corpora in splits.items():
        if not corpora:
            line(name, "none")
            continue
        found = surveys[name] = survey(corpora, report.counting(f"reading {name}, {what}"))
        report.clear()
        line(
            name,
            f"{found.pairs:,} {what}, {found.mean_length:.0f} characters a sentence, longest {found.longest:,} "
            f"({what[:-1]} {found.longest_at:,}); {found.empty:,} empty, {found.outliers:,} of very unequal length, "
            f"{found.repeated:,} repeated",
        )
    for name in ("valid", "test"):
        if name in surveys:
            both = surveys["train"].shared(surveys[name])
            flatter = ": its scores will flatter" if both else ""
            line("overlap", f"of the sources of {name}, {both:,} in train too{flatter}")
    expected = forecast(recipe, device, report)
    report.clear()
    some = expected.learning < expected.parameters
    learns = f", {expected.learning:,} of which learn ({expected.learning / expected.parameters:.2%})" if some else ""
    line("model", f"{expected.parameters:,} parameters{learns}, vocabulary {expected.vocabulary:,}")
    line(
        "memory",
        f"{size(expected.state_bytes)} for weights and optimizer, "
        f"{size(expected.peak_bytes)} in all at the widest batch",
    )
    line(
        "time",
        f"about {duration(expected.seconds_per_epoch)} an epoch of {expected.steps_per_epoch:,} steps, "
        f"{duration(expected.total_seconds)} for {recipe.train.steps:,} steps "
        f"({expected.tokens_per_second:,.0f} target tokens/s, {expected.precision}, {expected.padding:.0%} padding)",
    )


def size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
