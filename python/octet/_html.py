# SPDX-License-Identifier: Apache-2.0
"""What notebooks show."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence


def heading(text: str) -> str:
    return f"<b>{escape(text)}</b>"


def line(text: str) -> str:
    return f"<div>{escape(text)}</div>" if text else ""


def _cell(value: Any) -> str:
    if value is None:
        text = ""
    elif isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, tuple):
        text = "\u00d7".join("?" if d is None else str(d) for d in value)
    else:
        text = str(value)
    side = "left" if isinstance(value, str) else "right"
    return f'<td style="text-align: {side}">{escape(text)}</td>'


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 60) -> str:
    rows = list(rows)
    body = "".join("<tr>" + "".join(_cell(v) for v in row) + "</tr>" for row in rows[:most])
    more = line(f"and {len(rows) - most} more") if len(rows) > most else ""
    head = "".join(f"<th>{escape(n)}</th>" for n in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def values_text(values: Iterable[Any]) -> str:
    def dims(shape: Any) -> str:
        return "?" if shape is None else "x".join("?" if d is None else str(d) for d in shape)

    return ", ".join(f"{v.name} {dims(v.shape)}" for v in values)
