"""A live server of a small model, and a browser that visits it."""

from live_page import bundle, kept, live, shipped, translator, visit  # noqa: F401 - fixtures are asked for by name
