"""`trellis detect`: find the trends of a query, show the first, write them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trellis.cli import options as o
from trellis.cli.console import Step, out
from trellis.cli.queries import read_query
from trellis.cli.running import RunRequest, Stopwatch, listed_size, running_into
from trellis.cli.show import number, plural, print_rows
from trellis.cli.summary import Summary, query_text, rows_as_json
from trellis.limits import DEFAULT_MAX_TRENDS

if TYPE_CHECKING:
    from trellis.io.outputs import OutputTarget

ROWS, JSON_ROWS = 10, 1000  # that are shown, and that `--json` prints
LONG = 1.0  # seconds of counting, from which on the results that LIMIT leaves are listed without


@dataclass(frozen=True)
class ListingOptions:
    """The options about how many results are listed."""

    limit: int | None = o.option(None, "At most so many results; overrides LIMIT of the query.", "N", min=0)
    max_trends: int = o.option(
        DEFAULT_MAX_TRENDS,
        "The bound on listing: a query with more results is refused, with their exact number.",
        "N",
        rich_help_panel="How it runs",
        min=0,
    )


@o.takes_options
def detect(
    query: o.QueryText,
    events: o.EventOptions,
    meaning: o.QueryOptions,
    listing: ListingOptions,
    methods: o.MethodOptions,
    engine: o.EngineOptions,
    output: o.OutputOptions,
) -> None:
    """Find the trends of a query: print the first and a summary, and write them all into a directory."""
    request = RunRequest(
        read_query(query, listing.limit), events, engine, meaning.params, meaning.report_mode, listing.max_trends,
        methods.methods,
    )  # fmt: skip
    run_detect(request, output)


def run_detect(request: RunRequest, output: o.OutputOptions) -> None:
    """Run the request of `trellis detect`."""
    clock = Stopwatch()
    with running_into(request, output) as (trends, target, step):
        summary, rows = _output_and_summary(trends, output, target, step, clock)
    if output.json:
        summary.print_json(**_json_rows(rows, summary, bool(trends.plan.bound.aggregates)))
    elif not output.quiet:
        _print(request, summary, rows, bool(trends.plan.bound.aggregates), output.wide)


def _output_and_summary(
    trends: Any, output: o.OutputOptions, target: OutputTarget | None, step: Step, clock: Stopwatch
) -> tuple[Summary, Any]:
    rows, uncounted = None, _is_listed_sooner(trends)
    if uncounted:
        step("listing the results")
        size = total = sum(batch.num_rows for batch in trends.batches())
    else:
        step("counting the results")
        size = total = trends.count()
    if trends.plan.bound.aggregates:
        rows = trends.aggregates().to_arrow()
    else:
        size = size if uncounted else listed_size(trends)
        if not (output.quiet or (output.json and output.out is not None)):
            step("listing the first results")
            rows = trends.first(JSON_ROWS if output.json else ROWS).to_arrow()
    if target is not None:
        step(f"writing {plural(size, 'result')}")
        _write(trends, target, output, size, step)
    step("summing up")
    summary = Summary(query_text(trends), trends.statistics, size, clock.seconds, output.out, total, uncounted)
    return summary, rows


def _is_listed_sooner(trends: Any) -> bool:
    """Return whether the results that LIMIT leaves are listed while those that it does not are still counted."""
    bound = trends.plan.bound
    if bound.limit is None or bound.aggregates or bound.per_window or bound.limit_per:
        return False
    return bool(bound.limit <= trends.max_trends) and not trends.is_quick(LONG, sure=False)


def _write(trends: Any, target: OutputTarget, output: o.OutputOptions, size: int, step: Step) -> None:
    """Write the results; in this process it is told how far that has got."""
    if trends.engine != "local" or trends.plan.bound.aggregates:
        trends.write(target, format=str(output.format), raw_csv=output.raw_csv)  # tasks know nothing of commands
        return
    from trellis.io.results import write_parts

    def batches() -> Iterator[Any]:
        rows = 0
        for batch in trends.batches():
            yield batch
            rows += batch.num_rows
            step(f"writing {number(rows)} of {plural(size, 'result')}")

    write_parts([batches()], trends.schema, target, output.format, raw_csv=output.raw_csv)


def _json_rows(rows: Any, summary: Summary, aggregated: bool) -> dict[str, str]:
    """Return the rows for `--json`, and how many of the result are left out; with `--out` they are in the files."""
    if rows is None:
        return {}
    left_out = 0 if aggregated else summary.results - rows.num_rows
    return {"rows": rows_as_json(rows), **({"rows_left_out": f'"{left_out}"'} if left_out else {})}


def _print(request: RunRequest, summary: Summary, rows: Any, aggregated: bool, wide: bool) -> None:
    console = out()
    console.print(f"{summary.query}\nover {request.events.described}, engine {request.where.engine}", style="bold")
    if rows.num_rows:
        print_rows(console, rows.slice(0, ROWS), wide)
        shown = min(rows.num_rows, ROWS)
        whole = rows.num_rows if aggregated else summary.results
        if whole > shown:
            console.print(f"the first {shown} of {plural(whole, 'row' if aggregated else 'result')}\n")
    summary.print_facts()
