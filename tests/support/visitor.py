"""What the tests of the page share: a server, a page in a browser, and how a printed number is read."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import uvicorn

from glassformer.deploy.server.listen import Connection, listen
from glassformer.page import page_files

SENTENCE = "one two three four"
EXAMPLES = (SENTENCE, "six five")
VIEWS = re.findall(r'"(\w+)"', re.search(r"const VIEWS = \[(.*?)\]", page_files()["state.js"], re.S)[1])
LOOPBACK = ("127.0.0.1", "localhost")
PATIENCE = 120_000  # milliseconds; only what will never come takes so long, even where every core is busy
SCREEN = {"width": 1280, "height": 900}


class Live:
    """A server in a thread of this process."""

    def __init__(self, app: object, **options: object) -> None:
        self.app = app
        self.socket = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", **{"http": Connection, **options})
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)

    def __enter__(self) -> Live:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()


class Visit:
    """A tab of the browser, with what a test asks of it; `beside` another it shares its context, and what that has."""

    def __init__(self, chromium, address: str, beside: Visit | None = None, **options: object) -> None:
        self.address, self.outside, self.errors, self.heard, self.used = address, [], [], [], False
        if beside is None:
            self.context = chromium.new_context(**{"viewport": SCREEN, **options})
            # Not by a route, which would turn the browser's cache off.
            self.context.on("request", self._note)
        else:
            self.context, self.outside = beside.context, beside.outside
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda line: line.type in ("error", "warning") and self.errors.append(line.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note(self, request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "file", "blob") and url.hostname not in LOOPBACK:
            self.outside.append(request.url)

    def use_again(self, address: str) -> None:
        """For another test, which is to find nothing of what the last one has done here."""
        self.address, self.used = address, True
        while self.heard:
            self.page.remove_listener(*self.heard.pop())
        self.page.bring_to_front()
        self.page.set_viewport_size(SCREEN)
        self.page.mouse.move(0, 0)  # what is pointed at is told

    def hear(self, event: str, note: Callable[[Any], object]) -> None:
        """Call `note` for what the browser tells of the page, until another test uses the tab."""
        self.page.on(event, note)
        self.heard.append((event, note))

    def open(self, hash: str = "") -> None:
        """The page as one meets it who has never been there: much of what is chosen stands in no address."""
        if self.used:
            self.errors.clear()  # of the page before
        if self._is_here():
            self.page.evaluate(
                """hash => {
                    localStorage.clear();
                    sessionStorage.clear();
                    history.replaceState(null, '', hash || location.pathname);
                    // An answer that comes yet is for nobody, and writes nothing down.
                    Storage.prototype.setItem = history.replaceState = history.pushState = () => {};
                }""",
                hash,
            )
            self.page.reload()
        else:
            self.page.goto(self.address + hash)
        self.used = False

    def _is_here(self) -> bool:
        return self.page.url.split("#")[0].rstrip("/") == self.address.rstrip("/")

    def go(self, **state: object) -> None:
        """Open the page at a state, or move there by its address; wait until it is drawn."""
        view = state.get("view", "flow")
        hash = "#" + "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        if self.used or not self._is_here():
            self.open(hash)
        else:
            # A mark that the next drawing removes tells the new picture from the old.
            self.page.evaluate(
                """hash => {
                    if (location.hash === hash) return;  // the page is there already, and would draw nothing
                    document.querySelector('#view > section')?.setAttribute('data-old', '');
                    location.hash = hash;
                }""",
                hash,
            )
        self.page.wait_for_selector(f"html:not([data-stale]) main[data-view={view}] > section:not([data-old])")
        # Ribbons and matrices are drawn when the browser has told their sizes, a frame later.
        self.page.evaluate(
            """() => new Promise((done) => {
                requestAnimationFrame(() => requestAnimationFrame(done));
                setTimeout(done, 2000);  // a tab behind another has no frames
            })"""
        )

    def stops(self) -> Iterator[int]:
        """Each stop of the tour that has begun, once it is drawn; then its end."""
        for stop in range(7):
            self.page.wait_for_selector(f".tour-dots i:nth-child({stop + 1}).on", state="attached")
            self.page.wait_for_selector(".toured")
            yield stop
            self.page.locator("[data-key=tour-next]").click()
        self.page.wait_for_selector(".tour", state="detached")

    def forgive(self, status: int) -> None:
        """Chromium writes every refusal of the server to the console: one that the test has asked for is no error."""
        refusals = [one for one in self.errors if f"status of {status}" in one]
        assert refusals, f"no answer of {status}"
        self.errors[:] = [one for one in self.errors if one not in refusals]

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def pick(self, name: str, index: tuple[int, ...], **state: object) -> dict[str, str]:
        """A cell in the Cell view: its printed terms and result."""
        at = ".".join(map(str, index))
        self.go(view="cell", tensor=name, cell=at, **state)
        shown = self.page.locator(f"[data-testid=equation][data-tensor='{name}'][data-index='{at}']")
        return shown.evaluate(
            """found => ({
                terms: [...found.querySelectorAll('.terms .figure, .terms .sign')]
                    .map((one) => one.textContent).join(''),
                result: found.querySelector('.result').textContent,
                kind: found.dataset.kind,
            })"""
        )


def printed(text: str) -> float:
    """The number that a printed one stands for."""
    return float(text.replace("\u2212", "-").replace("\u221e", "inf").replace("\u202f", "").lstrip("+"))


def unit(text: str) -> float:
    """What one more in the last printed digit would be worth."""
    mantissa, _, exponent = text.replace("\u2212", "-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)


def agrees(text: str, value: float) -> bool:
    """Whether `value`, rounded as it was for printing, is what is printed."""
    if not re.search(r"\d", text):
        return text == {float("inf"): "\u221e", float("-inf"): "\u2212\u221e"}.get(value, "NaN")
    return abs(printed(text) - value) <= 0.5000001 * unit(text) + 1e-7 * abs(value)
