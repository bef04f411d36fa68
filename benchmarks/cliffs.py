"""No cliffs: twelve ways to write a query, each beside a plain program with the same answer, and rewordings of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import trellis
from benchmarks import Peer, Row, Table, Target, Timing, at_most, cliffs_limit, cliffs_neighbours
from benchmarks.cliff import MODULUS, Cliff, trades
from benchmarks.cliffs_shapes import ROWS
from benchmarks.limited import Done, Piece, timed_within

PLAIN, OWN = "times the plain program", "times the row's own"
LIMIT = 10  # times as long as the plain program, at most
ALIKE = 3  # times as long as the query itself, at most, for a rewording
LEAST = 0.005  # seconds of all cores; what takes less is a call's own cost, so ratios are taken to this
SECONDS = 8.0  # of all cores, after which a run is given up
LONGER = {"row 9, span of 1 hour": 80.0, "row 11, four variables crossing, the whole input": 45.0}  # ten times the peer
SMALL = 300  # events of the run by which everything is compiled
WIDE = ("OR, both ways", "OR of two columns")  # their numbers have as many bits as there are events
MILLION = f"row 6, {cliffs_limit.GAIN}"  # asked of a million events, too
SEVERAL = "row 6, several variables"
RANKED = (
    "a row tells its rank, the number of trends before it, or NULL beyond 64 bits; to tell which, rising trends are "
    "counted, and that takes n log n comparisons (whoever counts them learns whether two values are equal), while the "
    "plain program goes over the events once and tells no rank. The plain program with ranks sorts and counts; beside "
    "it the target holds"
)
NOTES = [
    "Answers are compared, counts modulo 2^64. The plain program passes over the events once for each 58 bits of the "
    "exact number; the plain programs of LIMIT know that prices rise: they neither count nor sort.",
    f"A run that takes more than {SECONDS:.0f} s of all cores, or ten times as long as a plain program that takes long "
    "itself, is given up, and called over the limit.",
]


@dataclass(frozen=True)
class Item:
    """A query and its peer over some events.

    `ask(text, size)` answers a query, `peer(size, times)` runs the plain program so many times; where both are numbers,
    they are compared.
    """

    name: str
    size: int
    text: str
    ask: Callable[[str, int], Any]
    peer: Callable[[int, int], Any]
    rewordings: tuple[str, ...] = ()
    peer_name: str = "plain Numba"
    limit: float | None = LIMIT
    bound: str = ""

    @property
    def seconds(self) -> float:
        """How long a run may take."""
        return LONGER.get(self.name, SECONDS)

    def pieces(self) -> Iterator[Piece]:
        """Yield the work: ours, the peer's, and the rewordings."""
        answers: list[Any] = []
        small = min(self.size, SMALL)

        def ours() -> Any:
            answers.append(self.ask(self.text, self.size))
            return answers[-1] % MODULUS if isinstance(answers[-1], int) else None

        def theirs() -> Any:
            known = answers[-1] if answers and isinstance(answers[-1], int) else 0
            answer = self.peer(self.size, cliffs_neighbours.passes(known))
            return int(answer) % MODULUS if isinstance(answer, int) else None

        what = f"{self.name}, {self.size:,} events"
        yield Piece(what, lambda: self.ask(self.text, small), ours, self.seconds)
        yield Piece(f"{what}, {self.peer_name}", lambda: self.peer(small, 1), theirs, self.seconds)
        for text in self.rewordings:
            yield Piece(text, lambda t=text: self.ask(t, small), lambda t=text: self.ask(t, self.size), self.seconds)

    def rows(self, done: Iterator[Done]) -> Iterator[Row]:
        """Yield the rows of what became of the pieces, each as soon as it is known."""
        ours, theirs = next(done), next(done)
        if ours.answer is not None and theirs.answer is not None and ours.answer != theirs.answer:
            raise AssertionError(f"{self.name}, {self.size:,}: {ours.answer}; by {self.peer_name}: {theirs.answer}")
        targets = []
        if self.limit is not None and theirs.timing is not None:
            targets.append(self._times(self.limit, PLAIN, ours, theirs.timing))
        peers = [] if theirs.timing is None else [Peer(self.peer_name, theirs.timing)]
        yield Row(f"{self.name}, {self.size:,} events{self._over(ours)}", ours.timing, peers=peers, targets=targets)
        for text in self.rewordings:
            other = next(done)
            own = ours.timing or Timing(self.seconds, self.seconds)
            yield Row(f"`{text}`{self._over(other)}", other.timing, targets=[self._times(ALIKE, OWN, other, own)])

    def _over(self, done: Done) -> str:
        return "" if done.timing is not None else f": over the limit of {self.seconds:.0f} s"

    def _times(self, limit: float, what: str, done: Done, other: Timing) -> Target:
        if done.timing is None:  # at least so many times, and never called met
            return at_most(limit, f"{what}, or more", max(self.seconds / max(other.cpu, LEAST), 1.001 * limit))
        return at_most(limit, what, max(done.timing.cpu, LEAST) / max(other.cpu, LEAST))


@dataclass(frozen=True)
class Explained:
    """The explanation of a row's query over some events, its estimate by a sample included."""

    name: str
    size: int
    text: str
    explain: Callable[[str, int], Any]
    bound: str = ""

    def pieces(self) -> Iterator[Piece]:
        """Yield the one piece of work."""
        small = min(self.size, SMALL)
        yield Piece(
            f"explain {self.name}", lambda: self.explain(self.text, small),
            lambda: (self.explain(self.text, self.size), None)[1], SECONDS,
        )  # fmt: skip

    def rows(self, done: Iterator[Done]) -> Iterator[Row]:
        """Yield the row of what became of it."""
        one = next(done)
        seconds = SECONDS if one.timing is None else one.timing.cpu
        yield Row(f"explain {self.name}, {self.size:,} events", one.timing, targets=[at_most(1, "seconds", seconds)])


def run(quick: bool) -> list[Table]:
    done = timed_within("benchmarks.cliffs", "pieces", quick)
    rows = [(item, list(item.rows(done))) for item in items(quick)]
    next(done, None)
    notes = NOTES + [f"{item.name}: {item.bound}." for item in dict.fromkeys(item for item, _ in rows if item.bound)]
    sizes = sorted({item.size for item, _ in rows})
    tables = [[row for item, own in rows if item.size == size for row in own] for size in sizes]
    return [Table(f"{size:,} events", own, notes) for size, own in zip(sizes, tables, strict=True)]


def pieces(quick: bool) -> Iterator[Piece]:
    """Yield the work of all rows, in order."""
    for item in items(quick):
        yield from item.pieces()


def items(quick: bool) -> Iterator[Item | Explained]:
    """Yield the twelve rows, the smaller numbers of events first, then what `explain` takes of the largest."""
    for size in (1_000,) if quick else (10_000, 100_000):
        for name, (text, _, _) in cliffs_neighbours.rows(10).items():
            if name not in WIDE or size <= 10_000:
                yield _of_neighbours(name, text, size)
        for cliff in ROWS:
            if size in cliff.sizes or quick:
                yield _of_shape(cliff, size)
            elif size == 10_000 and max(cliff.sizes) < size:
                yield _of_shape(cliff, cliff.sizes[0])
        for name in cliffs_limit.entries(10):
            item = _of_limit(name, size)
            if name == SEVERAL and size == 100_000:
                yield _with_ranks(item, several=True)
                item = replace(item, limit=None, bound=RANKED)
            yield item
    million = _of_limit(MILLION, 1_000 if quick else 1_000_000)
    yield _with_ranks(million)
    if not quick:
        yield replace(million, limit=None, bound=RANKED)
    for cliff in ROWS:
        yield Explained(f"row {cliff.row}, {cliff.title}", million.size, cliff.text, _explained)
    for name, (text, _, _) in cliffs_limit.entries(10).items():
        yield Explained(name, million.size, text, cliffs_limit.explained)


def _with_ranks(item: Item, several: bool = False) -> Item:
    """Return the row beside a plain program that tells ranks, too."""
    return replace(
        item, name=f"{item.name}, with ranks", peer=lambda n, _: cliffs_limit.with_ranks(n, several), rewordings=(),
        peer_name="plain Numba with ranks",
    )  # fmt: skip


def _explained(text: str, events: int) -> str:
    return str(trellis.query(text).explain(trades(events), time="ts", event_id="id", type="kind", engine="local"))


def _of_neighbours(name: str, text: str, size: int) -> Item:
    number = 9 if "span" in name else 10 if "gap" in name else 2 if "OR" in name else 1
    return Item(
        f"row {number}, {name}", size, text, cliffs_neighbours.ask,
        lambda n, times: cliffs_neighbours.rows(n)[name][2](times), cliffs_neighbours.rewordings(name),
    )  # fmt: skip


def _of_shape(cliff: Cliff, size: int) -> Item:
    return Item(
        f"row {cliff.row}, {cliff.title}", min(size, max(cliff.sizes)), cliff.text,
        lambda text, n: cliff.ask(text, cliff.events(n)),
        lambda n, times: [cliff.peer(cliff.events(n)) for _ in range(times)][-1],
        cliff.rewordings, cliff.peer_name, cliff.limit, cliff.bound,
    )  # fmt: skip


def _of_limit(name: str, size: int) -> Item:
    return Item(
        name, size, cliffs_limit.entries(size)[name][0], cliffs_limit.ask,
        lambda n, _: cliffs_limit.entries(n)[name][2](), cliffs_limit.rewordings(name, size),
    )  # fmt: skip
