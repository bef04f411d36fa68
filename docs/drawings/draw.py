"""Draws the pictures of the docs: `python docs/drawings/draw.py` writes them beside this file.

Those of docs/attribute-index.md are computed here from the six prices, plainly; a test compares them with the
index itself. That of docs/how-a-query-runs.md shows the rooms of the house; a test checks that they are there.
"""

from __future__ import annotations

from pathlib import Path

NAMES, PRICES, RATIO = "abcdef", (10.0, 12.0, 20.0, 16.0, 31.0, 24.0), 1.5
EVENTS = range(len(PRICES))

INK, SOFT, LINE, EDGE, START, END = "#1d2733", "#5b6673", "#c9d1d9", "#0b6e4f", "#d8efe4", "#fbe6c8"
ROW, LEFT, STEP, TOP = 54, 250, 100, 64


# --- The example ------------------------------------------------------------------------------------------------

CUTS = sorted({RATIO * price for price in PRICES})
VERTEX = [sum(cut < price for cut in CUTS) for price in PRICES]  # the vertex that holds an event
FIRST = [1 + CUTS.index(RATIO * price) for price in PRICES]  # the first vertex of an event's to-edges
AFTER = [[y for y in EVENTS if y > x and PRICES[y] > RATIO * PRICES[x]] for x in EVENTS]
WAYS = [0] * len(PRICES)
for _x in reversed(EVENTS):
    WAYS[_x] = sum(WAYS[y] for y in AFTER[_x]) or 1
STARTS = [y for y in EVENTS if not any(y in after for after in AFTER)]
ENDS = [x for x in EVENTS if not AFTER[x]]
DIRECT = {(x, y) for x in EVENTS for y in AFTER[x] if not any(y in AFTER[z] for z in AFTER[x])}


def interval(vertex: int) -> str:
    """Say which values a vertex stands for."""
    low, high = ([None, *CUTS][vertex], [*CUTS, None][vertex])
    return f"up to {high:g}" if low is None else f"over {low:g}" if high is None else f"over {low:g} to {high:g}"


# --- Pieces -----------------------------------------------------------------------------------------------------


def text(
    x: float, y: float, words: str, size: int = 14, colour: str = INK, anchor: str = "middle", more: str = ""
) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{more}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, width: float = 1.5, more: str = "") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}"{more}/>'


def box(x: float, y: float, width: float, height: float, fill: str = "#ffffff", more: str = "") -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{INK}"{more}/>'
    )


def event(x: float, y: float, i: int) -> str:
    fill = START if i in STARTS else END if i in ENDS else "#ffffff"
    ring = f'<circle cx="{x:g}" cy="{y:g}" r="17" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>'
    return ring + text(x, y + 5, NAMES[i], 15, more=' font-weight="bold"')


def picture(width: int, height: int, title: str, *parts: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="Helvetica, Arial, sans-serif" role="img"><title>{title}</title>'
    )
    tips = "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>'
        for name, colour in (("direct", EDGE), ("detour", SOFT))
    )
    background = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, f"<defs>{tips}</defs>", background, *parts, "</svg>", ""])


# --- The pictures -----------------------------------------------------------------------------------------------


def at(i: int) -> tuple[float, float]:
    """Return where an event stands: time runs to the right, values upwards."""
    return LEFT + STEP * i, TOP + ROW * (len(CUTS) - VERTEX[i]) + ROW / 2


def index() -> str:
    """Draw vertices, events, from-edges and range to-edges, with the number of trends that begin at each event."""
    bottom, right = TOP + ROW * (len(CUTS) + 1), LEFT + STEP * len(PRICES) - 10
    parts = [
        text(105, 34, "attribute vertices", 15, more=' font-weight="bold"'),
        text(LEFT + 2.5 * STEP, 34, "events, by time and value", 15, more=' font-weight="bold"'),
    ]
    for vertex in range(len(CUTS) + 1):
        y = TOP + ROW * (len(CUTS) - vertex)
        parts.append(box(20, y + 6, 170, ROW - 12))
        parts.append(text(40, y + ROW / 2 + 5, str(vertex), 15, more=' font-weight="bold"'))
        parts.append(text(58, y + ROW / 2 + 5, interval(vertex), 14, SOFT, "start"))
        held = [i for i in EVENTS if VERTEX[i] == vertex]
        if held:
            parts.append(line(190, y + ROW / 2, at(held[-1])[0], y + ROW / 2))
    for i in EVENTS:
        x, y = at(i)
        top, low = TOP + 8, TOP + ROW * (len(CUTS) + 1 - FIRST[i]) - 8
        parts.append(line(x + 34, low, x + 34, top, EDGE, 5, ' stroke-linecap="round" opacity="0.55"'))
        parts.append(line(x + 17, y, x + 33, min(y, low) if y > low else y, EDGE, 1.5))
        parts.append(event(x, y, i))
        parts.append(text(x - 22, y - 9, f"{PRICES[i]:g}", 14, SOFT, "end"))
        parts.append(text(x, bottom + 46, str(WAYS[i]), 16, EDGE, more=' font-weight="bold"'))
        parts.append(text(x, bottom + 22, f"time {i + 1}", 13, SOFT))
    parts.append(text(190, bottom + 46, "trends from here on", 14, EDGE, "end"))
    parts.append(line(LEFT - 60, bottom + 2, right, bottom + 2, LINE))
    parts += _key(bottom + 86)
    return picture(860, int(bottom + 110), "The attribute index of six trades", *parts)


def _key(y: float) -> list[str]:
    """Draw what the signs mean."""
    return [
        line(24, y - 5, 62, y - 5), text(70, y, "from-edges", 13, SOFT, "start"),
        line(170, y - 12, 170, y + 4, EDGE, 5, ' stroke-linecap="round" opacity="0.55"'),
        text(182, y, "to-edges: a range of vertices", 13, SOFT, "start"),
        f'<circle cx="404" cy="{y - 4:g}" r="8" fill="{START}" stroke="{INK}"/>',
        text(418, y, "nothing can come before", 13, SOFT, "start"),
        f'<circle cx="604" cy="{y - 4:g}" r="8" fill="{END}" stroke="{INK}"/>',
        text(618, y, "nothing can follow", 13, SOFT, "start"),
    ]  # fmt: skip


def ranks(rank: int = 5) -> str:
    """Draw every trend as a column of its events, in rank order, and the one with a rank."""
    unit, left, top, height = 100, 130, 64, 48
    total = sum(WAYS[i] for i in STARTS)
    parts, deepest = [], 0

    def put(i: int, begin: int, depth: int) -> None:
        nonlocal deepest
        deepest = max(deepest, depth)
        chosen = begin <= rank < begin + WAYS[i]
        x, y = left + unit * begin, top + height * depth
        parts.append(box(x, y, unit * WAYS[i], height, START if chosen else "#ffffff"))
        parts.append(text(x + unit * WAYS[i] / 2, y + 30, f"{NAMES[i]}: {WAYS[i]}", 15))
        put_all(AFTER[i], begin, depth + 1)

    def put_all(following: list[int], begin: int, depth: int) -> None:
        for i in following:
            put(i, begin, depth)
            begin += WAYS[i]

    put_all(STARTS, 0, 0)
    parts.append(text(left - 14, 44, "rank", 14, SOFT, "end"))
    for place in range(total):
        colour, weight = (EDGE, ' font-weight="bold"') if place == rank else (SOFT, "")
        parts.append(text(left + unit * (place + 0.5), 44, str(place), 15, colour, more=weight))
    for depth, label in enumerate(("start", "then", "then")[: deepest + 1]):
        parts.append(text(left - 14, top + height * depth + 30, label, 14, SOFT, "end"))
    return picture(left + unit * total + 20, top + height * (deepest + 1) + 24, "Trends in rank order", *parts)


def edges() -> str:
    """Draw all edges: above those that maximal trends use, below, dashed, those with a detour."""
    step, level = 132, 194
    spots = [60 + step * i for i in EVENTS]
    parts = [_arc(spots[x], spots[y], level, (x, y) in DIRECT) for x in EVENTS for y in AFTER[x]]
    parts += [event(spots[i], level, i) for i in EVENTS]
    parts += [text(spots[i], level + 36, f"{PRICES[i]:g}", 13, SOFT) for i in EVENTS]
    y = level + 160
    parts += [
        line(40, y - 5, 90, y - 5, EDGE, 2), text(100, y, "direct: in maximal trends too", 13, SOFT, "start"),
        line(340, y - 5, 390, y - 5, SOFT, 2, ' stroke-dasharray="6 5"'),
        text(400, y, "has a detour: not in maximal trends", 13, SOFT, "start"),
    ]  # fmt: skip
    return picture(spots[-1] + 60, y + 24, "Edges with and without a detour", *parts)


def _arc(start: float, end: float, level: float, direct: bool) -> str:
    """Draw an edge as an arc, from above one event to above a later one; from below to below with a detour."""
    side = -1 if direct else 1
    rim, height = level + 19 * side, (0.3 if direct else 0.22) * (end - start)
    base = rim if direct else rim + 26  # below the price
    tip = end - 7
    top = base + side * height
    path = f"M{start + 7:g} {base:g} C{start + 30:g} {top:g} {tip - 30:g} {top:g} {tip:g} {base:g}"
    colour, name, dashes = (EDGE, "direct", "") if direct else (SOFT, "detour", ' stroke-dasharray="6 5"')
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" marker-end="url(#{name})"{dashes}/>'


# --- How a query runs -------------------------------------------------------------------------------------------

# The rooms on each floor, from the command down to the kernels; what goes down from there, and what comes up to it.
FLOORS = (
    (("cli", "api"), "the text of a query, and options", "results: a table, files, a picture"),
    (("language", "plan"), "a plan: the automaton, and the operator to run", "results"),
    (("engines/local", "engines/spark", "streams", "archive"), "events", "rows of an Arrow table"),
    (("events", "results"), "a slice: sorted columns, cut into groups", "counts, or batches of paths"),
    (("operators", "papers"), "arrays", "arrays"),
    (("kernels",), "", ""),
)


def run() -> str:
    """Draw the rooms that a query passes, from the command to the kernels, and what is handed on between them."""
    left, width, height, gap = 40, 780, 54, 56
    down, up = left + 70, left + width - 70
    parts = []
    for floor, (rooms, question, answer) in enumerate(FLOORS):
        y = 24 + floor * (height + gap)
        each = (width - 12 * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            x = left + place * (each + 12)
            parts.append(box(x, y, each, height, START if room == "plan" else "#ffffff"))
            parts.append(text(x + each / 2, y + 33, room, 16, more=' font-weight="bold"'))
        if floor + 1 == len(FLOORS):
            continue
        low, high = y + height + 6, y + height + gap - 6
        parts.append(line(down, low, down, high, EDGE, 2, ' marker-end="url(#direct)"'))
        parts.append(text(down + 14, (low + high) / 2 + 5, question, 14, EDGE, "start"))
        parts.append(line(up, high, up, low, SOFT, 2, ' marker-end="url(#detour)"'))
        parts.append(text(up - 14, (low + high) / 2 + 5, answer, 14, SOFT, "end"))
    bottom = 24 + len(FLOORS) * (height + gap) - gap
    return picture(860, bottom + 24, "From the command to the kernel and back", *parts)


PICTURES = {"index.svg": index, "ranks.svg": ranks, "edges.svg": edges}
RUN_PICTURES = {"run.svg": run}

if __name__ == "__main__":
    for name, draw in (PICTURES | RUN_PICTURES).items():
        (Path(__file__).parent / name).write_text(draw(), encoding="utf-8")
