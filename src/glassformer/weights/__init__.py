"""A model as a folder: bundles, low-rank adapters, int8, names on a hub, and other projects' formats."""
