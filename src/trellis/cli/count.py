"""`trellis count`: how many trends a query has, and its aggregates; nothing is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trellis.cli import options as o
from trellis.cli.console import Step, out
from trellis.cli.queries import read_query
from trellis.cli.running import RunRequest, Stopwatch, running_into, total_of
from trellis.cli.show import plural, print_rows
from trellis.cli.summary import Summary, query_text, rows_as_json

if TYPE_CHECKING:
    from trellis.io.outputs import OutputTarget

ROWS = 20


@o.takes_options
def count(
    query: o.QueryText,
    events: o.EventOptions,
    meaning: o.QueryOptions,
    engine: o.EngineOptions,
    output: o.OutputOptions,
) -> None:
    """Count the results of a query for each window and partition, exactly; nothing is listed.

    With AGGREGATE the query's aggregates are printed too, and `--out` gets them in place of the counts.
    """
    run_count(RunRequest(read_query(query), events, engine, meaning.params, meaning.report_mode), output)


def run_count(request: RunRequest, output: o.OutputOptions) -> None:
    """Run the request of `trellis count`."""
    clock = Stopwatch()
    with running_into(request, output) as (trends, target, step):
        summary, counted, aggregated = _counted(trends, output, target, step, clock)
    if output.json:
        rows = {"counts": rows_as_json(counted)}
        summary.print_json(**rows, **({} if aggregated is None else {"aggregates": rows_as_json(aggregated)}))
    elif output.quiet:
        out().print(str(summary.results))
    else:
        _print(request, summary, counted, aggregated, output.wide)


def _counted(
    trends: Any, output: o.OutputOptions, target: OutputTarget | None, step: Step, clock: Stopwatch
) -> tuple[Summary, Any, Any]:
    step("counting the results")
    counted, aggregated = trends.counts().to_arrow(), None
    if trends.plan.bound.aggregates:
        step("aggregating")
        aggregated = trends.aggregates().to_arrow()
    if target is not None:
        from trellis.io.results import write_parts

        rows = counted if aggregated is None else aggregated
        step("writing")
        write_parts([rows.to_batches()], rows.schema, target, output.format, raw_csv=output.raw_csv)
    step("summing up")
    summary = Summary(query_text(trends), trends.statistics, total_of(counted), clock.seconds, output.out)
    return summary, counted, aggregated


def _print(request: RunRequest, summary: Summary, counted: Any, aggregated: Any, wide: bool) -> None:
    console = out()
    console.print(f"{summary.query}\nover {request.events.described}, engine {request.where.engine}", style="bold")
    if len(counted.column_names) > 2:  # a query with neither windows nor partition has only the total
        _print_some(counted, "with results", wide)
    if aggregated is not None:
        _print_some(aggregated, "of aggregates", wide)
    summary.print_facts()


def _print_some(rows: Any, what: str, wide: bool) -> None:
    console = out()
    if rows.num_rows:
        print_rows(console, rows.slice(0, ROWS), wide)
    if rows.num_rows > ROWS:
        console.print(f"and {plural(rows.num_rows - ROWS, 'more row', 'more rows')} {what}\n")
