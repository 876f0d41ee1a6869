"""A loop of one's own for what is awaited."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run(waited: Coroutine[Any, Any, Any]) -> Any:
    """As `asyncio.run`, in a thread: that of the tests has a loop that runs, once it has opened the browser."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, waited).result()
