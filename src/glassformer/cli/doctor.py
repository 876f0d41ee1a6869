"""`glassformer doctor`: is everything here that a run needs?"""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def doctor(
    parity: Annotated[
        bool, typer.Option("--parity", help="Compare every family with transformers, logit by logit.")
    ] = False,
) -> None:
    """Look over this machine; with --parity, prove the model against Hugging Face transformers."""
    if parity:
        from glassformer.pretrained.parity import main

        sys.exit(main())
    import platform

    import torch

    print(f"python   {platform.python_version()}")
    print(f"torch    {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"cuda     {torch.cuda.get_device_name() if torch.cuda.is_available() else 'none'}")
