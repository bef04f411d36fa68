"""The report: one file that shows what was asked and found, and draws and explains each trend at a click."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from itertools import pairwise
from time import perf_counter
from typing import Any

import pyarrow as pa

from trellis.api.explanation import explanation_of_results
from trellis.api.notebook import automaton_svg, highlighted
from trellis.arguments import whole_number
from trellis.digits import number_text
from trellis.events.columns.types import from_arrow, plain_value
from trellis.io.claims import claimed
from trellis.language.printer import to_query_text
from trellis.report.page import page_text
from trellis.report.parts import measure_of
from trellis.results.display import ShownColumns, html_table, python_values, value_text
from trellis.results.named import lead_rows
from trellis.results.rows import lead_schema
from trellis.results.trend import IDS, group_key
from trellis.results.why import Candidate, partition_check

MOST_TRENDS = 10_000
SECONDS = 5.0  # that reasons may take; trends behind that have none in the page


def write_report(results: Any, path: str | os.PathLike[str], most: int = MOST_TRENDS, overwrite: bool = False) -> None:
    """Write a report of results into one file that works offline.

    Parameters
    ----------
    results
        The results of a query without AGGREGATE.
    path
        The file; it must not exist unless `overwrite`.
    most
        How many trends it has at most; of more, it has a sample, and says so.
    overwrite
        Replace the file.

    Raises
    ------
    UsageError
        If the file exists, or its directory does not.
    """
    with claimed(path, overwrite=overwrite, is_file=True) as output, output.replacing() as file:
        file.write_text(report_text(results, whole_number(most, "the number of trends")), encoding="utf-8")


def report_text(results: Any, most: int = MOST_TRENDS) -> str:
    """Return the report as HTML."""
    bound = results.plan.bound
    size = len(results) if results.count() < 2**62 else results.count()
    rows = results.first(most).to_arrow() if size <= most or bound.arranged else results.sample(most).to_arrow()
    told = explanation_of_results(results)
    query = to_query_text(bound.syntax)
    facts = {name: value_text(value) for name, value in results.statistics.items()}
    facts["results"] = number_text(results.count())
    shown = "" if rows.num_rows == size else f"<p>{rows.num_rows:,} of them are below, drawn by chance.</p>"
    if bound.arranged and rows.num_rows < size:
        shown = f"<p>The first {rows.num_rows:,} of them are below.</p>"
    counts = results.counts().to_arrow()
    said = "".join(f"<span>{escape(n)} <b>{escape(v)}</b></span>" for n, v in facts.items())
    parts = [
        f"<h1>{escape(' '.join(query.split()))}</h1><h2>Asked</h2><pre>{highlighted(query)}</pre><h2>Found</h2>",
        f'<p class="facts">{said}</p>{shown}',
        f'<div class="wide">{html_table(counts, 50)}</div>' if counts.num_columns > 2 else "",
        f"<h2>Plan</h2>{automaton_svg(told.data['pattern']['automaton'])}<pre>{escape(str(told))}</pre>",
    ]
    return page_text(f"Trellis: {' '.join(query.split())}", parts, _data(results, rows))


def _data(results: Any, rows: pa.Table) -> dict[str, Any]:
    """Return the data of the page: the table, the events of each trend, and why it matched."""
    columns = ShownColumns(rows).cells
    texts = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    events, ends = _events_of(results, rows)
    attributes = [n for n in events.column_names if n not in (IDS, "rank")] if events.num_rows else []
    shown = _drawn(events, attributes, results.plan.bound.schema.time, measure_of(results))
    drawn = [shown[begin:end] for begin, end in pairwise(ends)]
    begun = perf_counter()
    reasons = [
        _reasons(results, events.slice(begin, end - begin)) if perf_counter() - begun < SECONDS else None
        for begin, end in pairwise(ends)
    ]
    return {"columns": list(columns), "rows": texts, "events": drawn, "attributes": attributes, "reasons": reasons}


def _events_of(results: Any, rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Return the events of all rows, looked up at once, one row behind another, and where those of each row end."""
    lead = [field.name for field in lead_schema(results.plan.bound)]
    keys = lead_rows(rows.select(lead)) if lead else [{}] * rows.num_rows
    ranks = rows["rank"].to_pylist()
    picks: dict[int, list[int]] = {}
    for key, rank in zip(keys, ranks, strict=True):
        if rank is not None:
            picks.setdefault(results.group_of(key), []).append(rank)
    whole = results.picked_events({group: sorted(found) for group, found in sorted(picks.items())})
    places: dict[tuple[str, int], list[int]] = {}
    known = lead_rows(whole.select(lead)) if lead else [{}] * whole.num_rows
    order = python_values(whole["place"])
    for i, (key, rank) in enumerate(zip(known, whole["rank"].to_pylist(), strict=True)):
        places.setdefault((group_key(key), rank), []).append(i)
    taken, ends = [], [0]
    for key, rank in zip(keys, ranks, strict=True):
        taken += sorted(places.get((group_key(key), rank), []), key=lambda i: order[i])
        ends.append(len(taken))
    return whole.combine_chunks().take(pa.array(taken, pa.int64())), ends


def _drawn(table: pa.Table, attributes: list[str], time: str, measure: str) -> list[dict[str, Any]]:
    xs = [_number(plain_value(value)) for value in table[time]]
    ys = [_number(plain_value(value)) for value in table[measure]]
    columns = [[value_text(value) for value in python_values(table[name])] for name in attributes]
    ids = [value_text(value) for value in python_values(table[IDS])]
    return [
        {"x": x or 0.0, "y": y, "name": name, "values": list(values)}
        for x, y, name, values in zip(xs, ys, ids, zip(*columns, strict=True), strict=True)
    ]


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number - number == 0 else None


def _reasons(results: Any, table: pa.Table) -> list[str]:
    bound = results.plan.bound
    names = [v.name for v in bound.variables if not v.absent]
    variables = python_values(table["variable"]) if len(names) > 1 else names * table.num_rows
    values: Mapping[str, Any] = {name: python_values(table[name]) for name, _ in bound.partition}
    usable = table.select([f.name for f in table.schema if from_arrow(f.type).kind != "other"])
    iterations = python_values(table["iteration"]) if bound.groups else None
    candidate = Candidate(bound, usable, python_values(table[IDS]), variables, iterations)
    checks = [*partition_check(bound, values), *candidate.checks()]
    return [str(check) for check in checks] or ["every event of its type matches"]
