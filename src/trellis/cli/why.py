"""`trellis why`: why certain events, or a whole partition, have no result."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict, dataclass
from typing import Any

from trellis.cli import options as o
from trellis.cli.console import out, progress
from trellis.cli.queries import read_query
from trellis.cli.running import RunRequest, running
from trellis.errors import UsageError


@dataclass(frozen=True)
class WhyOptions:
    """The options about the events in question."""

    ids: str | None = o.option(None, "The ids of the events that one would expect to be a result.", "ID,ID")
    partition: list[str] | None = o.option(
        None, "A partition: how far its best match got; may be repeated.", "NAME=VALUE"
    )


@o.takes_options
def why(
    query: o.QueryText,
    events: o.EventOptions,
    meaning: o.QueryOptions,
    why: WhyOptions,
    show: o.ShowOptions,
) -> None:
    """Say why events are not a result: the condition that failed, on which values, and what was needed."""
    from trellis.api.why_not import why_not

    where = o.EngineOptions(engine=o.EngineChoice.LOCAL)
    request = RunRequest(read_query(query), events, where, meaning.params, meaning.report_mode)
    wanted = o.pairs("--partition", why.partition) or None
    with progress(show.shows_progress) as step, running(request, step) as trends:
        step("looking for the reason")
        reasons = why_not(trends, None if why.ids is None else _ids(trends, why.ids), wanted)
    if show.json:
        checks = [asdict(check) for check in reasons]
        out().print(json_text.dumps({"heading": reasons.heading, "checks": checks}, ensure_ascii=False, default=str))
    else:
        out().print(str(reasons))


def _ids(trends: Any, given: str) -> list[Any]:
    """Return ids in the type that the events have them in."""
    parts = [part.strip() for part in given.split(",") if part.strip()]
    schema = trends.plan.bound.schema
    name = schema.event_id
    if name is not None and not schema.tables[0].columns[name].numeric:
        return parts
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UsageError(f"--ids {given} are not numbers, as the ids of the events are") from None
