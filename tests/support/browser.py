"""Which browser the page is tested in: $CHROMIUM, else one on PATH, else Playwright's own.

Run as a script, it fetches one if there is none: from Debian's archive if it may, else by Playwright.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SHELL = "chromium-headless-shell"  # the same engine without a window: about half the work
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    f"the page's tests need a Chromium and none was found: install `{SHELL}`, `chromium` or `google-chrome`, "
    f"or set CHROMIUM to one, or run: .venv/bin/python -m playwright install {SHELL}"
)


def find_browser() -> str | None:
    """The path of a browser, or nothing."""
    named = os.environ.get("CHROMIUM")
    if named:
        if not (found := shutil.which(named)):
            sys.exit(f"CHROMIUM={named} is no program that can be run; name one, or unset it")
        return found
    for name in NAMES:
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    browsers = next(folder.parent for folder in own.parents if folder.name.startswith("chromium-"))
    shells = sorted(browsers.glob("chromium_headless_shell-*/*/*headless*shell"), reverse=True)
    return next((str(path) for path in [*shells, own] if os.access(path, os.X_OK)), None)


def fetch() -> None:
    """Install one; what goes wrong is told by the programs themselves."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", SHELL]):
            if subprocess.run(["apt-get", *words], **quiet).returncode:
                break
        if find_browser():
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", SHELL], check=False)


if __name__ == "__main__":
    if not find_browser():
        print("No Chromium here; fetching one for the tests of the page.", flush=True)
        fetch()
    if not find_browser():
        sys.exit(MISSING)
