"""`trellis explain`: what a query means and how it runs; with events, how many of what there are."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Any

from trellis.api.algorithms import algorithm_facts
from trellis.cli import options as o
from trellis.cli.console import out
from trellis.cli.console import progress as shown_progress
from trellis.cli.queries import read_query
from trellis.methods import check_methods, with_methods

if TYPE_CHECKING:
    from trellis.cli.running import RunRequest


@o.takes_options
def explain(
    query: o.QueryText,
    events: o.EventOptions,
    meaning: o.QueryOptions,
    methods: o.MethodOptions,
    engine: o.EngineOptions,
    progress: o.ShowProgress = True,
    json: o.Json = False,
) -> None:
    """Explain a query: its pattern, conditions, windows and output; with events, its operator and exact counts too."""
    parsed = read_query(query)
    if events.given:
        from trellis.cli.events import check_given
        from trellis.cli.running import RunRequest

        request = RunRequest(parsed, events, engine, meaning.params, meaning.report_mode, methods=methods.methods)
        check_given(events)
        check_methods(methods.methods, str(request.where.engine))
        data = _with_events(request, progress and not json)
    else:
        from trellis.plan.explain import explain_data

        check_methods(methods.methods, str(engine.engine or o.EngineChoice.SPARK))
        plan = with_methods(parsed.plan(None, meaning.params, meaning.report_mode), methods.methods)
        data = explain_data(plan) | algorithm_facts(plan)
    _print(data, json)


def _with_events(request: RunRequest, progress: bool) -> dict[str, Any]:
    """Return the plan for the events, and what is known of them."""
    from trellis.api.explanation import facts_of_results
    from trellis.cli.costs import listing_costs
    from trellis.cli.running import detected, engine_and_events

    request.query.plan(None, request.params, request.report_mode)  # a mistake in the query is reported first
    with shown_progress(progress) as step, engine_and_events(request, step) as (spark, data):
        step("preparing the events")
        trends = detected(request, data, spark)
        told = facts_of_results(trends)
        if "trends" not in told["events"]:
            return told
        step("trying how quick listing is")
        return told | {"listing": listing_costs(trends, trends.count())}


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
