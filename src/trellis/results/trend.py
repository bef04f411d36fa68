"""One result as an object: its row, its events with all their columns, and which variable took which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from trellis.errors import UsageError
from trellis.language.bound import BoundQuery
from trellis.language.once import once
from trellis.plan.plan import Plan
from trellis.properties import cached_property
from trellis.providers import provided
from trellis.results.display import array_text, html_facts, html_page, html_table, python_values, value_text
from trellis.results.named import lead_rows
from trellis.results.rows import RowMaker, exploded_schema, id_arrow_type, lead_schema, taking
from trellis.results.table import ResultTable
from trellis.results.taken import present
from trellis.results.why import Candidate, Reasons, having_checks, partition_check

if TYPE_CHECKING:
    import pandas
    import polars

IDS = "__id"  # the column of ids beside the columns of events


@once
def events_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of the events of one result: as `explode` gives them, and the ids behind."""
    return exploded_schema(bound).append(pa.field(IDS, id_arrow_type(bound)))


def with_ids(maker: RowMaker, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row for each event of plain rows with positions: see `events_schema`."""
    places = rows.column("events").flatten()
    ids = present(maker.events.ids.take(places), id_arrow_type(maker.bound))
    return maker.exploded(rows).append_column(IDS, ids)


class TrendSource(Protocol):
    """Results, as one of them asks for its events: see `trellis.results.results.Results`."""

    plan: Plan

    def group_of(self, row: Mapping[str, Any]) -> int:
        """Return the place in the order of groups of a window and partition."""

    def picked_events(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        """Return the events of the results with given ranks of groups."""


class Trend:
    """One result of a query; `trends[k]`, `for trend in trends` and `trends[a:b]` give such.

    Attributes
    ----------
    row
        The row of the result, by column.
    rank
        Its rank in its window and partition; None where it does not fit 64 bits and is not known otherwise.
    """

    def __init__(self, results: TrendSource, row: pa.Table, rank: int | None) -> None:
        self._results, self._row, self.rank = results, row, rank

    @cached_property
    def row(self) -> dict[str, Any]:
        """The row of the result, by column."""
        return {name: python_values(self._row[name])[0] for name in self._row.column_names}

    @property
    def length(self) -> int:
        """The number of events."""
        return int(self.row["length"])

    @property
    def start_time(self) -> Any:
        """The time of the first event."""
        return self.row["start_time"]

    @property
    def end_time(self) -> Any:
        """The time of the last event."""
        return self.row["end_time"]

    @property
    def window(self) -> tuple[Any, Any] | None:
        """Start and end of the window; None where the query has no windows."""
        return (self.row["window_start"], self.row["window_end"]) if "window_start" in self._lead else None

    @property
    def partition(self) -> dict[str, Any]:
        """The values of the partition's attributes by name."""
        return {name: self.row[name] for name, _ in self._results.plan.bound.partition}

    @property
    def _lead(self) -> list[str]:
        return [field.name for field in lead_schema(self._results.plan.bound)]

    @cached_property
    def _exploded(self) -> pa.Table:
        if self.rank is None:
            raise UsageError(
                "the rank of this trend does not fit 64 bits, so that its events cannot be looked up",
                "Take it by its position, as trends[k], or by its rank, with trends.trend(rank).",
            )
        lead = self._row.select(self._lead)
        group = self._results.group_of(lead_rows(lead)[0] if self._lead else {})
        return self._results.picked_events({group: [self.rank]}).sort_by("place")

    @property
    def ids(self) -> list[Any]:
        """The ids of the events, in the order of time."""
        return python_values(self._exploded[IDS])

    @property
    def variables(self) -> list[str]:
        """The variable that took each event."""
        names = taking(self._results.plan.bound)
        return names * self.length if len(names) == 1 else python_values(self._exploded["variable"])

    @property
    def bindings(self) -> dict[str, list[Any]]:
        """The ids of the events of each variable; an empty list for one that took none."""
        found: dict[str, list[Any]] = {name: [] for name in taking(self._results.plan.bound)}
        for name, event in zip(self.variables, self.ids, strict=True):
            found[name].append(event)
        return found

    def events(self) -> ResultTable:
        """Return the events in the order of time: place from 1, variable, and all their columns."""
        table = self._exploded
        schema = self._results.plan.bound.schema
        assert schema is not None
        columns = {"place": table["place"], "variable": pa.array(self.variables, pa.string())}
        if schema.event_id is None:
            columns["event"] = table[IDS]
        for name in table.column_names:
            if name not in ("rank", IDS) and not name.startswith("window_"):
                columns.setdefault(name, table[name])
        rows = pa.table(columns)
        return ResultTable(lambda: rows)

    def plot(self, kind: str = "timeline", **options: Any) -> Any:
        """Return a picture of this trend, a figure of plotly's: a `timeline`, or a `graph` between two attributes."""
        return provided("pictures").plot_results(self._results, kind, trends=self, **options)

    def explain(self) -> Reasons:
        """Return why this is a result: each condition with the values that met it."""
        bound = self._results.plan.bound
        table = self._exploded
        checks = partition_check(bound, {name: python_values(table[name]) for name, _ in bound.partition})
        iterations = python_values(table["iteration"]) if bound.groups else None
        candidate = Candidate(bound, table, self.ids, self.variables, iterations)
        checks += candidate.checks() + having_checks(bound, self.length) + candidate.filters()
        return Reasons(f"a trend of {value_text(self.length)} events: {array_text(self.ids)}", checks)

    def to_arrow(self) -> pa.Table:
        """Return the events as an Arrow table."""
        return self.events().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the events as a pandas frame."""
        return self.events().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the events as a polars frame."""
        return self.events().to_polars()

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through the events, each a dictionary of its columns."""
        return iter(self.to_arrow().to_pylist())

    def __eq__(self, other: object) -> bool:
        return self._row.equals(other._row) if isinstance(other, Trend) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def _facts(self) -> dict[str, str]:
        facts = {name: value_text(value) for name, value in self.partition.items()}
        if self.window is not None:
            facts["window"] = f"{value_text(self.window[0])} to {value_text(self.window[1])}"
        facts["rank"] = "beyond 64 bits" if self.rank is None else value_text(self.rank)
        facts["events"] = value_text(self.length)
        facts["time"] = f"{value_text(self.start_time)} to {value_text(self.end_time)}"
        return facts

    def __repr__(self) -> str:
        shown = self.row.get("events")
        ids = f": {array_text(shown)}" if isinstance(shown, list) else ""
        return f"<trend, {', '.join(f'{name} {value}' for name, value in self._facts.items())}{ids}>"

    def _repr_html_(self) -> str:
        return html_page(html_facts(self._facts), html_table(self.to_arrow(), 50))


class TrendList(Sequence[Trend]):
    """Some results one after another, as `trends[5:8]` gives them: a sequence of trends that shows as a table."""

    def __init__(self, results: TrendSource, rows: pa.Table, ranks: Sequence[int | None]) -> None:
        self._results, self._rows, self._ranks = results, rows, ranks

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            rows = range(len(self))[place]
            return TrendList(self._results, self._rows.take(pa.array(rows)), [self._ranks[i] for i in rows])
        row = range(len(self))[place]
        return Trend(self._results, self._rows.slice(row, 1), self._ranks[row])

    def __len__(self) -> int:
        return self._rows.num_rows

    @property
    def table(self) -> ResultTable:
        """The rows of these results."""
        return ResultTable(lambda: self._rows)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._rows

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame."""
        return self.table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars frame."""
        return self.table.to_polars()

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def trends_of(results: TrendSource, batch: pa.RecordBatch) -> Iterator[Trend]:
    """Yield the results whose rows are in a batch."""
    table = pa.Table.from_batches([batch])
    for row, rank in enumerate(batch.column("rank").to_pylist()):
        yield Trend(results, table.slice(row, 1), rank)


def group_key(row: Mapping[str, Any]) -> str:
    """Return a text that tells a window and partition apart from others, of what `lead_rows` says of it."""
    return repr(list(row.values()))
