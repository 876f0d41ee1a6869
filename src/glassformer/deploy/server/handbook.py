"""The handbook beside the page: the site that `make docs` has built, where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

SITE = Path("site")
# The site's own pages hold scripts and styles, one a model that runs there in a frame; nothing comes from elsewhere.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class Handbook(StaticFiles):
    def file_response(self, *given: Any, **named: Any) -> Response:
        response = super().file_response(*given, **named)
        response.headers["content-security-policy"] = POLICY
        return response


def is_handbook(folder: Path) -> bool:
    """Whether it holds both languages, and chapters: any folder may be called `site`."""
    return all((folder / language / "04-attention.html").is_file() for language in ("en", "zh"))
