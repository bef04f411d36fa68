"""The stops of the tour beside queries: the history of a stream, and a social network as it changes."""

from __future__ import annotations

import os
from typing import Any

from rich.text import Text

from trellis.cli.console import out
from trellis.cli.show import plural

NAMES = {"events": 100_000, "seed": 7}
SOCIAL = {"events": 6_000, "seed": 7, "users": 300}
SHOWN = 3


def visit_history(number: int, folder: str) -> None:
    """Ask a history for a pattern that nobody planned."""
    from trellis.archive.archive import Archive
    from trellis.cli.history import timeline
    from trellis.io.generate import generate_table

    console = out()
    console.print(Text(f"{number}. A question of the past", style="bold"))
    console.print("   Question: where three rare names may have come close behind one another, by filters alone.\n")
    text = "PATTERN SEQ(BB, BC, BD) WITHIN 2 min"
    console.print(Text(f"      {text}\n", style="green"))
    table = generate_table("zipf", **NAMES)
    place = os.path.join(folder, "history")
    archive = Archive.build(table, place, time="ts", type="name", event_id="event_id", leaf=50)
    places: Any = archive.find(text)
    exact: Any = archive.find(text, exact=True)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(place) for name in names)
    console.print(
        f"   {plural(table.num_rows, 'event')} kept in {size / 1e6:.1f} MB with its filters; "
        f"{plural(places.num_rows, 'place')} where it may be:"
    )
    console.print(Text(f"   {timeline(places, 0, len(archive))}", style="cyan"))
    console.print(
        f"   Exactly, for which {exact.needed / exact.events:.0%} of the events are needed: "
        f"{plural(exact.trends.count(), 'sequence')}.\n"
    )


def visit_network(number: int) -> None:
    """Watch the posts of a social network."""
    from trellis.io.generate.social import lines_of, social
    from trellis.papers.debs2016 import posts

    console = out()
    console.print(Text(f"{number}. The most active posts (query 1 of the DEBS 2016 challenge)", style="bold"))
    console.print(
        "   Question: the three posts with the highest scores, whenever they change; points are lost by the day.\n"
    )
    files = social(**SOCIAL)  # type: ignore[arg-type]
    posts(b"", b"")  # what is compiled at first is not counted
    run = posts(lines_of(files["posts"]), lines_of(files["comments"]))
    lines = run.output.decode().splitlines()
    events = plural(sum(run.events.values()), "event")
    console.print(f"   {events}, {plural(run.lines, 'change')}, in {run.seconds:.1f} s. In the middle:")
    middle = len(lines) // 2
    for line in lines[middle : middle + SHOWN]:
        time, *fields = line.split(",")
        places = [f"{name} {score}" for name, score in zip(fields[1::4], fields[2::4], strict=True)]
        console.print(Text.assemble("   ", (time[:16].replace("T", " "), "dim"), ("  " + ", ".join(places), "cyan")))
    console.print()
