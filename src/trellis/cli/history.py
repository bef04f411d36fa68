"""The output of `trellis archive`: the facts of an archive, where a pattern happened, and a small timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trellis.cli.console import out
from trellis.cli.show import plural, print_rows

if TYPE_CHECKING:
    from trellis.archive import Archive

WIDTH = 64  # characters of a timeline
SHADES = " ░▒▓█"


def print_info(archive: Archive, json: bool) -> None:
    """Print what an archive is."""
    about = archive.info()
    if json:
        print_json(about)
        return
    console = out()
    for name, value in about.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
        console.print(f"{name.replace('_', ' '):24}{shown}")


def print_answer(archive: Archive, answer: str, rows: Any, limit: int, json: bool) -> None:
    """Print whether, and in which intervals, something may have happened."""
    if json:
        print_json({"answer": answer} | ({} if rows is None else {"rows": rows.slice(0, limit).to_pylist()}))
        return
    console = out()
    console.print(f"it happened: {answer}")
    if rows is None or not rows.num_rows:
        return
    about = archive.info()
    console.print(timeline(rows, about["dropped"], len(archive)))
    console.print(f" {about['since']}".ljust(WIDTH // 2) + f"{about['until']}".rjust(WIDTH // 2 + 1))
    print_rows(console, rows.slice(0, limit))
    visited = (rows.schema.metadata or {}).get(b"visited")
    if visited is not None:
        console.print(f"by the tree: {int(visited):,} nodes and leaves looked at, of {about['leaves']:,} leaves")
    if rows.num_rows > limit:
        console.print(f"the first {limit} of {plural(rows.num_rows, 'interval')}")


def timeline(rows: Any, first: int, events: int) -> str:
    """Return a line that shows where in the history intervals begin: the more, the darker."""
    import numpy as np

    places = (rows["first_position"].to_numpy() - first) * WIDTH // max(1, events)
    counts = np.bincount(places, minlength=WIDTH)[:WIDTH]
    most = max(1, int(counts.max()))
    line = "".join(SHADES[-(-int(c) * (len(SHADES) - 1) // most)] for c in counts)
    return f"|{line}|"


def print_exact(exact: Any, limit: int, json: bool) -> None:
    """Print an exact answer, and what of the history it took."""
    rows, total = exact.trends.first(limit), exact.trends.count()
    if json:
        about = {"results": str(total), "needed": exact.needed, "read": exact.read, "events": exact.events}
        print_json(about | {"rows": rows.to_pylist()})
        return
    console = out()
    events = max(1, exact.events)
    console.print(
        f"{plural(total, 'result')}; {exact.needed:,} of {exact.events:,} events were needed "
        f"({exact.needed / events:.1%}), {exact.read:,} read ({exact.read / events:.1%})"
    )
    if rows.num_rows:
        print_rows(console, rows)


def print_json(about: dict[str, Any]) -> None:
    """Print one object."""
    import json

    out().print(json.dumps(about, default=str))
