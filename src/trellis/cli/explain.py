"""`trellis explain`: what a query means and how it runs; with events, how many of what there are."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Any

from trellis.api.algorithms import algorithm_facts
from trellis.cli import options as o
from trellis.cli.console import out
from trellis.cli.console import progress as shown_progress
from trellis.cli.queries import read_query
from trellis.methods import Methods, check_methods, with_methods
from trellis.plan.spec import AUTO

if TYPE_CHECKING:
    from trellis.cli.running import RunRequest


def explain(
    query: o.QueryText,
    events: o.EventPaths = None,
    tables: o.Tables = None,
    time: o.Time = None,
    type: o.TypeColumn = None,
    event_id: o.EventId = None,
    time_format: o.TimeFormat = None,
    input_format: o.InputFormat = None,
    on_bad_rows: o.OnBadRows = o.BadRows.ERROR,
    param: o.Params = None,
    report_mode: o.ReportMode = None,
    algorithm: o.Algorithm = AUTO,
    construction: o.Construction = AUTO,
    anchors: o.Anchors = None,
    memory_limit: o.MemoryLimit = None,
    optimizer: o.Optimizer = AUTO,
    engine: o.EngineName = o.EngineChoice.SPARK,
    master: o.Master = None,
    conf: o.Conf = None,
    progress: o.ShowProgress = True,
    json: o.Json = False,
) -> None:
    """Explain a query: its pattern, conditions, windows and output; with events, its operator and exact counts too."""
    parsed = read_query(query)
    given = o.EventOptions(
        tuple(events or ()), o.event_tables(tables), time, type, event_id, time_format, input_format, on_bad_rows
    )
    params = o.pairs("--param", param)
    methods = Methods(algorithm, construction, anchors, memory_limit, optimizer)
    check_methods(methods, engine)
    if given.given:
        from trellis.cli.running import RunRequest

        where = o.EngineOptions(engine, master, tuple(conf or ()))
        data = _with_events(
            RunRequest(parsed, given, where, params, report_mode, methods=methods), progress and not json
        )
    else:
        from trellis.plan.explain import explain_data

        plan = with_methods(parsed.plan(None, params, report_mode), methods)
        data = explain_data(plan) | algorithm_facts(plan)
    _print(data, json)


def _with_events(request: RunRequest, progress: bool) -> dict[str, Any]:
    """Return the plan for the events, and what is known of them."""
    from trellis.cli.costs import listing_costs
    from trellis.cli.events import check_given
    from trellis.cli.running import detected, engine_and_events
    from trellis.plan.explain import explain_data

    check_given(request.events)
    request.query.plan(None, request.params, request.report_mode)  # a mistake in the query is reported first
    with shown_progress(progress) as step, engine_and_events(request, step) as (spark, data):
        step("preparing the events")
        trends = detected(request, data, spark)
        step("counting the results")
        count = trends.count()
        known = {"read": trends.statistics["events"], **trends.statistics, "trends": str(count)}
        known.pop("events")
        step("trying how quick listing is")
        planned = explain_data(trends.plan)
        operator = planned["operator"] | trends.describe()
        measured = {"operator": operator, "events": known, "listing": listing_costs(trends, count)}
        return planned | algorithm_facts(trends.plan, trends) | measured


def _print(data: dict[str, Any], json: bool) -> None:
    from trellis.plan.explain import explain_text

    if json:
        out().print(json_text.dumps(data, ensure_ascii=False, indent=2, default=str))
        return
    known = data.get("events")
    if known is not None:
        from trellis.cli.show import all_digits

        data = data | {"events": {name: all_digits(int(value)) for name, value in known.items()}}
    out().print(explain_text(data))
