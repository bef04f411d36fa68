"""Writes the tables and plots of the documents from the results file: .venv/bin/python scripts/figures.py [--check]

A table stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`; nothing there is typed by hand.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.report import amount  # noqa: E402
from benchmarks.results import FILE, Line, lines  # noqa: E402
from scripts import papers  # noqa: E402

PAGES = ("README.md", "docs/performance.md", "docs/spark.md")
PLOT = "docs/pictures/peers.svg"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main() -> None:
    """Write what differs; with --check only tell it, and fail."""
    found = written(json.loads(FILE.read_text(encoding="utf-8")))
    different = [name for name, text in found.items() if not _same(ROOT / name, text)]
    if "--check" in sys.argv[1:]:
        if different:
            raise SystemExit(f"not as the results file says: {', '.join(different)}; run scripts/figures.py")
        return
    for name in different:
        (ROOT / name).write_text(found[name], encoding="utf-8")
    print(f"{len(different)} of {len(found)} files written", *different)


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def written(results: dict[str, Any]) -> dict[str, str]:
    """Return the documents by name, as the results say that they should be."""
    blocks = {made.__name__: made(results) for made in (summary, machine, everything, scale)}
    pages = {
        page: BLOCK.sub(lambda m: f"{m[1]}\n{blocks[m[2]]}\n\n{m[3]}", (ROOT / page).read_text(encoding="utf-8"))
        for page in PAGES
    }
    of_papers = papers.written((ROOT / papers.PAGE).read_text(encoding="utf-8"))
    return pages | {PLOT: plot(results), papers.PAGE: of_papers}


# --- Tables -----------------------------------------------------------------------------------------------------


def chosen(results: dict[str, Any]) -> list[Line]:
    """Return the lines of the summary: of each table the last piece of work that has a peer, beside its best peer.

    So nobody chooses among the lines; they stand in the order of their ratios.
    """
    last: dict[tuple[str, str], list[Line]] = {}
    for line in lines(results):
        own = last.setdefault((line.benchmark, line.table), [])
        if own and own[0].work != line.work:
            own.clear()
        own.append(line)
    best = [min(own, key=lambda line: line.theirs["wall"]) for own in last.values()]
    return sorted(best, key=lambda line: -line.ratio)


def times(ratio: float) -> str:
    """Return a ratio to two digits: `38 ×`."""
    return f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.2g} ×"


def summary(results: dict[str, Any]) -> str:
    """Return the table of the first screen."""
    rows = ["| question | work | Trellis | the best peer | times as long |", "| --- | --- | --- | --- | --- |"]
    for line in chosen(results):
        ours, theirs = amount(line.ours["wall"], "s"), amount(line.theirs["wall"], "s")
        rows.append(f"| {line.table} | {line.work} | {ours} | {line.peer}: {theirs} | {times(line.ratio)} |")
    return "\n".join(rows)


def machine(results: dict[str, Any]) -> str:
    """Return the sentence that says where and when."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    said = (
        f"Measured {results['date']} at commit `{results['commit']}` on {results['machine']}, "
        f"Python {results['python']}, {versions}."
    )
    if results["loaded"]:
        said += f" **The machine had other work (load {results['load']}): read the ratios of processor time only.**"
    return said


def everything(results: dict[str, Any]) -> str:
    """Return all tables."""
    parts = []
    for report in results["benchmarks"]:
        parts.append(f"### `trellis bench {report['name']}`\n\n{report['about']}")
        for table in report["tables"]:
            parts.append(f"**{table['title']}**")
            if table["rows"]:
                parts.append("\n".join(_rows(table)))
            if "lines" in table:
                parts.append("\n".join(_figure(table)))
            parts += table["notes"]
    return "\n\n".join(parts)


CLUSTER = 1600  # cores of a hundred machines
BILLION = 1_000_000_000


def scale(results: dict[str, Any]) -> str:
    """Return where the time of a row goes on Spark, and the time of a billion rows on a hundred machines."""
    reports = [report for report in results["benchmarks"] if report["name"] == "scale"]
    if not reports:
        return "No results are kept: `trellis bench scale --large --results benchmarks/results.json` measures them."
    parts = []
    for table in reports[0]["tables"]:
        parts.append(f"**{table['title']}**")
        rows = number_of_rows(table["title"])
        lines = [
            "| work | time | a row on one core | Spark alone | to Python | Trellis | a billion on 1,600 cores |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for row in table["rows"]:
            spark, arrow = (peer["timing"]["cpu"] for peer in row["peers"])
            whole = row["timing"]["cpu"]
            shares = [spark, max(arrow - spark, 0), max(whole - max(arrow, spark), 0)]
            shown = " | ".join(f"{share / whole:.0%}" for share in shares)
            each, all_rows = amount(whole / rows, "s"), amount(whole / rows * BILLION / CLUSTER, "s")
            lines.append(f"| {row['work']} | {amount(row['timing']['wall'], 's')} | {each} | {shown} | {all_rows} |")
        parts += ["\n".join(lines), *table["notes"][1:]]
    if results["loaded"]:
        parts.append(f"**The machine had other work (load {reports[0]['load']}): times on the clock are too long.**")
    return "\n\n".join(parts)


def number_of_rows(title: str) -> int:
    """Return the number that a title begins with."""
    return int(title.split()[0].replace(",", ""))


def _rows(table: dict[str, Any]) -> list[str]:
    rows = ["| work | time | processor | spread | ratio | of processor |", "| --- | --- | --- | --- | --- | --- |"]
    for row in table["rows"]:
        rows.append(f"| {row['work']} | {_times(row['timing'])} | | |")
        for peer in row["peers"]:
            kind = "limit" if peer["limit"] else "peer"
            of = f"{times(peer['ratio'])} | {times(peer['cpu_ratio']) if 'cpu_ratio' in peer else ''}"
            rows.append(f"| {kind}: {peer['name']} | {_times(peer['timing'])} | {of} |")
        for target in row["targets"]:
            sign, met = "≥" if target["at_least"] else "≤", "met" if target["met"] else "NOT met"
            bound, seen = amount(target["bound"], target["unit"]), amount(target["found"], target["unit"])
            rows.append(f"| target {sign} {bound}: {met}, {seen} | | | | | |")
    return rows


def _times(timing: dict[str, Any] | None) -> str:
    if timing is None:
        return " | | "
    spread = f"{100 * timing['spread']:.0f} %" if timing["runs"] > 1 else ""
    of_cores = amount(timing["cpu"], "s") if timing["cpu"] else ""  # a server's own clock tells none
    return f"{amount(timing['wall'], 's')} | {of_cores} | {spread}"


def _figure(table: dict[str, Any]) -> list[str]:
    heads = [table["setting"], *table["lines"]]
    rows = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for i, place in enumerate(table["places"]):
        cells = [line[i] for line in table["lines"].values()]
        shown = ["gave up" if value is None else amount(value, table["unit"]) for value in cells]
        rows.append(
            f"| {place:,} | {' | '.join(shown)} |" if isinstance(place, int) else f"| {place} | {' | '.join(shown)} |"
        )
    return rows


# --- The plot ---------------------------------------------------------------------------------------------------

WIDTH, BAR, LEFT = 880, 22, 430


def plot(results: dict[str, Any]) -> str:
    """Return the summary as bars: how many times as long the best peer takes, on a logarithmic scale."""
    from math import floor, log10

    own = chosen(results)
    ratios = [line.ratio for line in own]
    low, high = floor(log10(min([0.5, *ratios]))), log10(max([10, *ratios])) + 0.35
    scale = (WIDTH - LEFT - 30) / (high - low)
    height = 60 + BAR * len(own)

    def x(value: float) -> float:
        return LEFT + (log10(value) - low) * scale

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="10" y="20" font-size="14">How many times as long as Trellis the best peer takes (logarithmic)</text>',
    ]
    for i, (line, ratio) in enumerate(zip(own, ratios, strict=True)):
        y = 34 + BAR * i
        begin, end = sorted((x(1), x(ratio)))
        colour = "#0072B2" if ratio >= 1 else "#D55E00"
        name = line.table if len(line.table) < 66 else line.table[:64].rsplit(" ", 1)[0] + " …"
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR - 6}" fill="{colour}"/>',
            f'<text x="{end + 6:.1f}" y="{y + 13}">{times(line.ratio)}</text>',
        ]
    parts.append(f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="30" y2="{height - 22}" stroke="#444444"/>')
    parts.append(f'<text x="{x(1):.1f}" y="{height - 8}" text-anchor="middle">as fast</text></svg>\n')
    return "\n".join(parts)


if __name__ == "__main__":
    main()
