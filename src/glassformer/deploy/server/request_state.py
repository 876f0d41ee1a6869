"""Of one request: whose it is, and whether anybody still waits for the answer."""

from __future__ import annotations

from collections.abc import Callable


class Ticket:
    def __init__(self, client: str = "", check: Callable[[], None] | None = None) -> None:
        self.client, self._check = client, check
        self.given_up = False

    def check(self) -> None:
        """Raise what the request ends with, if nobody waits any more."""
        if self._check is not None:
            self._check()

    @property
    def wanted(self) -> bool:
        if not self.given_up:
            try:
                self.check()
            except Exception:  # whatever it is, it is told where it is waited for
                self.given_up = True
        return not self.given_up
