"""The column "ours" of docs/papers.md, made of the results that `make papers` writes; scripts/figures.py calls it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.report import amount  # noqa: E402

PAGE = "docs/papers.md"
FILE = ROOT / "benchmarks" / "papers.json"
ROW = re.compile(r"^\| (?P<figure>[^|]+) \| (?P<command>[^|]*) \| (?P<theirs>[^|]*) \| (?P<ours>[^|]*) \| ", re.M)
CLAIM = re.compile(r"(Seen|Not seen) here: (.*?)\.(?=\s|$)")
NOT_RUN = "–"
TABLES = {
    "8(a), 8(b): by condensation degree and variables": r"^Query 2 .*Figure 8\(b\)",
    "8(c): Query 3, window of 90 s": "^What each part gives",
    "8(c), searched for": "unreduced",
    "1: events per second, query 1 and 2": "^Both queries",
    "5 a, b: delay of a line": "each line by itself",
    "5 c: largest clique by workers": "by number of workers",
    "the queries as operators, in the text": "^The queries as operators",
    "second level of parallelism, in the text": "^Threads over blocks",
    "5.1, 5.2, figures 5.1 to 5.3: a question of 2 to 8 names, BPI 2020 and 2017": r"^Table 5\.[12]",
    "5.3, 5.4: building over 0.5 to 5.5 M words": r"^Tables 5\.3",
    "5.5, 5.6: SEQ, OR, AND, NOT by policy": r"^Table 5\.[56]",
    "exact answers, beyond the thesis": "^Exact answers",
    "the tree walked": "tree walked",
}
"""Of figures whose number is not in the title of their table: how that title reads."""


def written(page: str) -> str:
    """Return the page with what the results say in the column "ours"."""
    results = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {"benchmarks": []}

    def cell(found: re.Match[str]) -> str:
        command = re.search(r"`trellis bench (\w+)`", found["command"])
        if command is None or found["ours"].strip() == "ours":
            return found[0]
        ours = "; ".join(_said(results, command[1], found["figure"])) or NOT_RUN
        return f"| {found['figure']} | {found['command']} | {found['theirs']} | {ours} | "

    text = ROW.sub(cell, page)
    block = re.compile(r"(<!-- figures: papers -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    return block.sub(lambda m: f"{m[1]}\n{_about(results)}\n\n{m[2]}", text)


def _about(results: dict[str, Any]) -> str:
    """Return the sentence that says where, when and in which form."""
    if not results["benchmarks"]:
        return "`make papers` has not been run."
    quick = sorted(part["name"] for part in results["benchmarks"] if part["quick"])
    dates = sorted(part["date"] for part in results["benchmarks"])
    when = dates[-1] if dates[0][:10] == dates[-1][:10] else f"from {dates[0]} to {dates[-1]}"
    said = f"Ours: measured {when}, the last at commit `{results['commit']}`, on {results['machine']}."
    if results["loaded"]:
        said += (
            f" The machine had other work (load {results['load']}); ratios are of processor time where that is known."
        )
    if quick:
        said += f" In the quick form, whose sizes are too small to judge a claim: {', '.join(quick)}."
    return said


def _said(results: dict[str, Any], benchmark: str, figure: str) -> Iterator[str]:
    """Yield what was found of a figure: whether its claim was seen, or else ratios to peers."""
    wanted = TABLES.get(figure)
    numbers = re.findall(r"\d+(?:\([a-d]\))?", figure.partition(":")[0])
    for part in results["benchmarks"]:
        if part["name"] != benchmark:
            continue
        for table in part["tables"]:
            title = table["title"]
            named = re.search(r"Figures? (\d+)((?:\([a-d]\))?)", title)
            own = {named[1], named[1] + named[2]} if named else set()
            if (wanted is not None and re.search(wanted, title)) or (wanted is None and own & set(numbers)):
                yield from _found(table, named[0] if named and len(numbers) > 1 else "", part["quick"])


def _found(table: dict[str, Any], name: str, quick: bool) -> Iterator[str]:
    claims = [claim for note in table["notes"] for claim in CLAIM.findall(note)]
    lead = f"{name}: " if name else ""
    for held, here in claims:
        yield f"{lead}{here}" if quick else f"{lead}{held.lower()}: {here}"  # small sizes decide no claim
    ratios: dict[str, list[float]] = {}
    for row in table["rows"]:
        for peer in row["peers"]:
            if not peer["limit"] and "ratio" in peer:
                ratios.setdefault(peer["name"].partition(":")[0], []).append(peer.get("cpu_ratio") or peer["ratio"])
    for peer, found in ratios.items() if not claims else ():
        low, high = (amount(value, "times").removesuffix(" times") for value in (min(found), max(found)))
        yield f"{lead}{low if low == high else f'{low} to {high}'} × {peer}"
    if not claims and not ratios:
        for row in table["rows"][:3]:
            took = f", {amount(row['timing']['wall'], 's')}" if row["timing"] else ""
            yield f"{row['work'].replace('|', '/')}{took}"
