"""The colours of figures: those of a light page, and what takes their place on a dark one."""

from __future__ import annotations

PAPER, INK, SOFT, RULE = "#fffefc", "#1d1b18", "#6b655c", "#e4dfd5"
COLOURS = ("#2862a8", "#c4412a", "#0b7f71", "#7547be", "#a86e00", "#ad3262")
# What takes the place of each colour on a dark page.
DARK = dict(zip((PAPER, INK, SOFT, RULE), ("#1b1a17", "#f0ece4", "#a89f92", "#33302a"), strict=True)) | dict(
    zip(COLOURS, ("#79b0f2", "#ff7d5e", "#4bc7b0", "#b898f3", "#e2ae49", "#f085ad"), strict=True)
)
