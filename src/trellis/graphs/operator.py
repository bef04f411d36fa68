"""Operators: what a user writes to find something in the events of a partition, with a graph at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from trellis.errors import UsageError
from trellis.graphs.calls import OwnCalls
from trellis.graphs.engine import Result
from trellis.graphs.events import Event
from trellis.graphs.graph import Change, Graph, GraphStore
from trellis.graphs.program import VertexProgram
from trellis.graphs.splitter import Partition

Rows = Iterable[Mapping[str, Any]] | None
OWN = ("graph", "store", "partition", "calls")


class Operator:
    """An operator over the events of a partition; derive from it and write `on_event`.

    Each partition has an operator of its own. `on_event`, `on_time` and `on_close` give results: dictionaries with the
    columns of `output`, by `yield` or in a list.

    Attributes
    ----------
    output
        The columns of results with their types: Arrow types, or their names, such as `"int64"` and `"string"`.
    directed
        Whether edges of the graph lead one way only.
    time_runs_on
        Whether calls that were asked for beyond the last event of the input are made when it ends.
    graph
        The graph of the partition: read it at will, change it with `manipulate_graph`.
    store
        What the splitter has written for all, up to and with the event at hand; to be read.
    partition
        The partition.
    """

    output: ClassVar[Mapping[str, Any]] = {}
    directed: ClassVar[bool] = False
    time_runs_on: ClassVar[bool] = False
    graph: Graph
    store: GraphStore
    partition: Partition
    calls: OwnCalls

    def on_event(self, event: Event) -> Rows:
        """Take the next event of the partition, and give what it leads to."""
        raise NotImplementedError(f"{type(self).__name__} does not say what to do with an event: write `on_event`")

    def on_time(self, time: Any, key: Any) -> Rows:
        """Take a call that was asked for with `call_at`, or that the splitter wants `every` so often; give results."""
        raise NotImplementedError(f"{type(self).__name__} does not say what to do at a time: write `on_time`")

    def call_at(self, time: Any, key: Any = None) -> None:
        """Ask to be called at a time, by `on_time(time, key)`.

        The call comes before the events of that time and after all earlier ones, and only if the input gets so far: its
        last event is at that time or later (or the class says `time_runs_on`). To ask twice for the same is to ask
        once. A partition that closes takes its calls with it.

        Parameters
        ----------
        time
            Later than the event or the call at hand; a number, as `event.time` is.
        key
            A text, a number or None, to know by what the call is for.

        Raises
        ------
        UsageError
            If the time is not later than now.
        """
        self.calls.add(time, key)

    def on_close(self) -> Rows:
        """Give the results that the end of the partition leads to; partitions of keys have no end."""
        return None

    def manipulate_graph(
        self,
        *,
        add_vertices: Iterable[Any] = (),
        add_edges: Iterable[tuple[Any, ...]] = (),
        remove_vertices: Iterable[Any] = (),
        remove_edges: Iterable[tuple[Any, Any]] = (),
        missing: str = "error",
    ) -> None:
        """Change the graph: first all removals, then all additions; see `trellis.graphs.Change`.

        Parameters
        ----------
        add_vertices
            Vertices, or pairs of a vertex and its data.
        add_edges
            Edges as pairs, or triples with data; ends that are not there are added.
        remove_vertices
            Vertices, which go with their edges.
        remove_edges
            Edges as pairs.
        missing
            `error`, or `ignore` to pass over what is to be removed and is not there.
        """
        self.graph.change(Change(add_vertices, add_edges, remove_vertices, remove_edges), missing)

    def execute(
        self,
        program: VertexProgram,
        within: Iterable[Any] | None = None,
        weight: Callable[[Any], float] | None = None,
    ) -> Result:
        """Run a vertex program over the graph, or over some of its vertices and the edges between them.

        Parameters
        ----------
        program
            The program.
        within
            The vertices.
        weight
            Gives the weight of an edge from its data.
        """
        return self.graph.execute(program, within, weight)

    def state(self) -> Any:
        """Return the state that a stream stores between batches, besides the graph; by default the attributes."""
        return {name: value for name, value in vars(self).items() if name not in OWN}

    def restore(self, state: Any) -> None:
        """Go on from what `state` returned; called on a fresh operator."""
        vars(self).update(state)


def output_schema(operator: Operator) -> pa.Schema:
    """Return the columns of an operator's results.

    Raises
    ------
    UsageError
        If there are none, or a type is unknown.
    """
    return schema_of(operator.output, type(operator).__name__)


def schema_of(output: Mapping[str, Any], who: str) -> pa.Schema:
    """Return columns given by names and types."""
    if not output:
        raise UsageError(f"{who} does not say what it gives", 'Write `output = {"name": "string", ...}`.')
    return pa.schema([(name, _type(name, given, who)) for name, given in output.items()])


def _type(name: str, given: Any, who: str) -> pa.DataType:
    if isinstance(given, pa.DataType):
        return given
    try:
        return pa.type_for_alias(str(given))
    except ValueError:
        raise UsageError(
            f"the column `{name}` of {who} has no type `{given}`",
            "Give an Arrow type or its name: int64, float64, string, bool, timestamp[us], ...",
        ) from None
