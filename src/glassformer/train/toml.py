"""Writing TOML, which Python only reads."""

from __future__ import annotations

import json
from typing import Any


def to_toml(values: dict[str, Any]) -> str:
    """Sections of plain values as TOML, enough for what a recipe holds."""

    def literal(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's too
        if isinstance(value, list):
            return f"[{', '.join(map(literal, value))}]"
        return repr(value)

    lines: list[str] = []
    for section, table in values.items():
        tables = {k: v for k, v in table.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
        plain = {k: v for k, v in table.items() if k not in tables}
        lines += [f"[{section}]", *(f"{key} = {literal(value)}" for key, value in plain.items()), ""]
        for key, items in tables.items():
            for item in items:
                lines += [f"[[{section}.{key}]]", *(f"{k} = {literal(v)}" for k, v in item.items()), ""]
    return "\n".join(lines)
