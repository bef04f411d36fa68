"""The handover between instances of a stream: their state when it goes on with more or fewer of them.

Spark's state cannot be rewritten while no query runs. So what instances held is read when the stream starts again,
shared among the new ones, and kept in a file of the checkpoint; each instance takes its part when it is first
called, and says so in its own state by the number of the *generation*. What is not taken yet counts as held all the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trellis.engines.spark.graphs.tasks import FIRST, routed
from trellis.events.table_bytes import packed, unpacked
from trellis.graphs.instance import divided
from trellis.graphs.job import Job
from trellis.io.durable import sync_file

GENERATION = b"trellis.generation"
WAITING, OPERATORS = "waiting", "operators"
SCHEMA = pa.schema([("instance", pa.int32()), ("variable", pa.string()), ("value", pa.binary())])


@dataclass(frozen=True)
class InstanceState:
    """The state of an instance between batches: the events that wait for it, and its operators."""

    waiting: Sequence[bytes] = ()
    operators: bytes | None = None


@dataclass(frozen=True)
class Handover:
    """The states that instances begin with, by their numbers, and the generation that begins so."""

    generation: int = 0
    states: Mapping[int, InstanceState] = field(default_factory=dict)

    def current(self, number: int, held: InstanceState) -> InstanceState:
        """Return the state of an instance: what Spark holds, or what was handed over and is not taken yet."""
        return held if self.is_taken(held) else self.states.get(number, InstanceState())

    def is_taken(self, held: InstanceState) -> bool:
        """Return whether an instance has gone on from the handover."""
        return generation_of(held.operators) == self.generation

    def write(self, folder: Path) -> None:
        """Write it, so that it outlives a crash, and remove the one before."""
        rows = list(state_rows(self.states))
        path = _path(folder, self.generation)
        pq.write_table(
            pa.table(list(map(list, zip(*rows, strict=True))) if rows else [[], [], []], schema=SCHEMA), path
        )
        sync_file(path)
        _path(folder, self.generation - 1).unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path, generation: int) -> Handover:
        """Return the one that was written last."""
        if not generation:
            return cls()
        return cls(
            generation, by_instance(zip(*pq.read_table(_path(folder, generation)).to_pydict().values(), strict=True))
        )


def _path(folder: Path, generation: int) -> Path:
    return folder / f"handover-{generation}.parquet"


def generation_of(operators: bytes | None) -> int:
    """Return the generation that kept operators are of."""
    if operators is None:
        return 0
    return int((unpacked(operators).schema.metadata or {}).get(GENERATION, b"0"))


def kept_operators(state: pa.Table, generation: int) -> bytes:
    """Return the operators of an instance as they are kept."""
    return packed(state.replace_schema_metadata({GENERATION: str(generation)}) if generation else state)


def state_rows(states: Mapping[int, InstanceState]) -> Iterable[tuple[int, str, bytes]]:
    """Yield states as rows of an instance, a variable and a value."""
    for number, state in states.items():
        yield from ((number, WAITING, blob) for blob in state.waiting)
        if state.operators is not None:
            yield number, OPERATORS, state.operators


def by_instance(rows: Iterable[tuple[int, str, bytes]]) -> dict[int, InstanceState]:
    """Return the states that rows hold."""
    kept: dict[int, dict[str, list[bytes]]] = {}
    for number, variable, value in rows:
        kept.setdefault(int(number), {}).setdefault(variable, []).append(bytes(value))
    return {number: InstanceState(of.get(WAITING, []), of.get(OPERATORS, [None])[0]) for number, of in kept.items()}


def handed_over(job: Job, states: Iterable[InstanceState], numbers: Sequence[int], generation: int) -> Handover:
    """Return the states of the instances that go on from those before them.

    Each event waits for several instances where several must see it; the first of its copies says where it goes now.
    """
    waiting: list[pa.Table] = []
    operators: list[pa.Table] = []
    for state in states:
        waiting += [unpacked(blob) for blob in state.waiting]
        operators += [] if state.operators is None else [unpacked(state.operators)]
    found: dict[int, InstanceState] = {}
    pieces: dict[int, list[bytes]] = _pieces(job, waiting, len(numbers)) if waiting else {}
    parts: Sequence[Any] = divided(job, operators, len(numbers)) if operators else [None] * len(numbers)
    for place, number in enumerate(numbers):
        own = None if parts[place] is None else packed(parts[place])
        found[number] = InstanceState(pieces.get(place, []), own)
    return Handover(generation, found)


def _pieces(job: Job, waiting: Sequence[pa.Table], instances: int) -> dict[int, list[bytes]]:
    events = pa.concat_tables(waiting, promote_options="permissive")
    events = events.filter(events[FIRST]).drop_columns([FIRST]).combine_chunks()
    routes = routed(job, events, instances)
    copies = events.take(pa.array(routes.rows)).append_column(FIRST, pa.array(routes.first))
    parts = {place: copies.filter(pa.array(routes.instances == place)) for place in range(instances)}
    return {place: [packed(part.combine_chunks())] for place, part in parts.items() if part.num_rows}
