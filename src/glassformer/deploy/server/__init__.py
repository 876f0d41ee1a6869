"""The web: a model behind a page on this machine."""
