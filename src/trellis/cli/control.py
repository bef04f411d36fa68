"""A control directory: the queries of a stream as files that may be added, removed and changed while it runs."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.errors import UsageError

if TYPE_CHECKING:
    from trellis.api.query import Query
    from trellis.language.schema import Schema
    from trellis.plan.plan import Plan
    from trellis.streams.query import StandingQuery

QUERY, PARAMETERS = ".tq", ".json"
TOLD = "_control.jsonl"  # in the output: what was changed when, and from which event on


class ControlledQuery:
    """A query with parameters of its own, which go before those that all have."""

    def __init__(self, query: Query, params: Mapping[str, Any]) -> None:
        self.query, self.params, self.syntax = query, params, query.syntax

    def plan(
        self, schema: Schema | None = None, params: Mapping[str, Any] | None = None, report_mode: str | None = None
    ) -> Plan:
        """Return the plan of the query for events of a schema."""
        return self.query.plan(schema, {**(params or {}), **self.params} or None, report_mode)


class ControlDirectory:
    """A directory with a file `NAME.tq` for each query, and `NAME.json` for the values of its parameters."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._taken = self._seen = self._marks()

    def _marks(self) -> tuple[tuple[str, int, int], ...]:
        """Return names, times and sizes of the files, by which a change is noticed."""
        found = []
        for path in sorted(self.directory.iterdir()):
            if path.suffix in (QUERY, PARAMETERS) and not path.name.startswith((".", "_")):
                about = path.stat()
                found.append((path.name, about.st_mtime_ns, about.st_size))
        return tuple(found)

    def has_changed(self) -> bool:
        """Return, once for each change, whether the files have changed, and did not change since the last look."""
        try:
            now = self._marks()
        except OSError:  # a file is just being replaced
            return False
        calm, self._seen = now == self._seen, now
        if not calm or now == self._taken:
            return False
        self._taken = now
        return True

    def read(self, others: Collection[str]) -> dict[str, Query]:
        """Return the queries by name.

        Raises
        ------
        TrellisError
            If a file cannot be read, or two queries have one name; `others` are names that are taken.
        """
        from trellis.api.query import Query
        from trellis.streams.stream_output import check_query_names  # late: help goes without

        found: dict[str, Any] = {}
        for path in sorted(self.directory.glob(f"*{QUERY}")):
            if path.name.startswith((".", "_")):
                continue
            params = path.with_suffix(PARAMETERS)
            try:
                values = json.loads(params.read_text(encoding="utf-8")) if params.exists() else {}
                if not isinstance(values, dict):
                    raise ValueError
                text = path.read_text(encoding="utf-8")
            except (OSError, ValueError):
                raise UsageError(
                    f"{path} or {params.name} cannot be read", "Write a query, and parameters as one JSON object."
                ) from None
            found[path.stem] = ControlledQuery(Query(text), values)
        check_query_names([*others, *found])
        if not found and not others:
            raise UsageError(f"{self.directory} has no query", f"Put one there, as NAME{QUERY}.")
        return found


def tell(queries: Sequence[StandingQuery], before: Collection[str], newest: int | None, output: Path) -> Iterator[str]:
    """Yield sentences about the queries that came and went, and write them down in the output.

    `newest` is the time, in microseconds since 1970 or the unit of the times, up to which events had been read.
    """
    came = [one for one in queries if one.key not in before]
    gone = sorted(set(before) - {one.key for one in queries})
    lines = []
    for one in came:
        schema = one.bound.schema
        moment = None if newest is None else str(newest)
        if moment is not None and schema is not None and schema.time_type.temporal:
            moment = str(dt.datetime.fromtimestamp(int(newest or 0) / 1000, dt.UTC)).replace("+00:00", "")
        lines.append({"query": one.name, "from": moment, "change": "added"})
        yield f"`{one.name}` holds for what begins after {moment or 'the first event'}"
    for key in gone:
        name = key.partition(":")[0]
        lines.append({"query": name, "from": None, "change": "stopped"})
        yield f"`{name}` is stopped; its results stay"
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    with (output / TOLD).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"time": now, **line}) + "\n" for line in lines)
