"""HTML of a query and of its automaton, for notebooks."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from trellis.language import syntax as s
from trellis.language.printer import KEYWORDS

STEP, RADIUS, MIDDLE = 150, 17, 90  # pixels between states, of a state, and down to their line

_PIECES = re.compile(r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|[^\W\d][\w-]*|\d[\d.]*|.", re.DOTALL)


def highlighted(text: str) -> str:
    """Return a query as HTML: keywords are bold, texts green and numbers blue."""
    return "".join(map(_marked, _PIECES.findall(text)))


def _marked(piece: str) -> str:
    shown = escape(piece)
    if piece.upper() in KEYWORDS:
        return f"<b>{shown}</b>"
    if piece[0] == "'":
        return f'<span style="color:#0a7f4f">{shown}</span>'
    return f'<span style="color:#2463b5">{shown}</span>' if piece[0].isdigit() else shown


def parameters_of(query: s.QuerySyntax) -> set[str]:
    """Return the names of the parameters that a query waits for."""
    return {node.name for node in s.walk(query) if isinstance(node, s.Parameter)}


def automaton_svg(automaton: dict[str, Any]) -> str:
    """Return the automaton as a drawing: states in a row, an arrow for each variable that goes on."""
    states, ends = automaton["states"], {a["state"] for a in automaton["accepting"]}
    parts = [
        '<defs><marker id="trellis-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0,0L10,5L0,10z" fill="currentColor"/></marker></defs>'
    ]
    together: dict[tuple[int, int], list[str]] = {}
    for step in automaton["transitions"]:
        guard = f" (no {', no '.join(step['absent'])})" if step["absent"] else ""
        together.setdefault((step["from"], step["to"]), []).append(step["variable"] + guard)
    parts += [_arrow(begin, end, ", ".join(names)) for (begin, end), names in together.items()]
    for state in range(states):
        x = _x(state)
        parts.append(f'<circle cx="{x}" cy="{MIDDLE}" r="{RADIUS}" fill="none" stroke="currentColor"/>')
        if state in ends:
            parts.append(f'<circle cx="{x}" cy="{MIDDLE}" r="{RADIUS - 4}" fill="none" stroke="currentColor"/>')
        parts.append(f'<text x="{x}" y="{MIDDLE + 4}" text-anchor="middle">{state}</text>')
    width, height = _x(max(0, states - 1)) + 60, MIDDLE + 60
    style = "font:12px sans-serif;fill:currentColor;max-width:100%"
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" style="{style}">{"".join(parts)}</svg>'
    )


def _x(state: int) -> int:
    return 50 + STEP * state


def _arrow(begin: int, end: int, label: str) -> str:
    """Return an arrow: straight to the next state, a loop to the same one, and an arc to one farther away."""
    a, b = _x(begin), _x(end)
    if begin == end:
        top = MIDDLE - RADIUS
        path, x, y = f"M{a - 8},{top + 2}C{a - 32},{top - 42} {a + 32},{top - 42} {a + 8},{top + 2}", a, top - 36
    elif end == begin + 1:
        path, x, y = f"M{a + RADIUS},{MIDDLE}L{b - RADIUS},{MIDDLE}", (a + b) // 2, MIDDLE - 6
    else:
        bend = MIDDLE + (18 + 14 * min(3, abs(end - begin))) * (1 if end > begin else -1)
        path = f"M{a},{MIDDLE + RADIUS}Q{(a + b) // 2},{bend + 20} {b},{MIDDLE + RADIUS}"
        x, y = (a + b) // 2, bend + 14
    line = f'<path d="{path}" fill="none" stroke="currentColor" marker-end="url(#trellis-tip)"/>'
    return f'{line}<text x="{x}" y="{y}" text-anchor="middle">{escape(label)}</text>'
