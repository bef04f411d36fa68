"""Splitters, operators and mergers in this process: what is split how, in which order it comes out, what is refused."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.payments import as_plain, example, payments, plainly
from tests.profiles import examples
from trellis.errors import DataError, OperatorFailed, UsageError
from trellis.graphs import (
    Change,
    Cliques,
    Combination,
    Components,
    Event,
    Merger,
    Operator,
    Partition,
    Splitter,
    TopK,
    all_of,
    any_of,
    between,
    count_windows,
    duration,
    run,
    sequence,
    time_windows,
)
from trellis.graphs.plain import from_bytes, to_bytes


class Lists(Operator):
    """Gives the events of a partition when it closes."""

    output = {"kinds": "string"}

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def on_event(self, event: Event) -> None:
        self.kinds.append(f"{event.kind}{event.event_id}")

    def on_close(self) -> list[dict[str, str]]:
        return [{"kinds": " ".join(self.kinds)}]


class Counts(Operator):
    """Gives for each event how many its partition has had."""

    output = {"n": "int64"}

    def __init__(self, begin: int = 0) -> None:
        self.n = begin

    def on_event(self, event: Event) -> list[dict[str, int]]:
        self.n += 1
        return [{"n": self.n}]


def kinds(text: str, times: list[int] | None = None) -> pa.Table:
    """Events of the kinds that letters say, one second apart."""
    letters = list(text)
    return pa.table({"time": times or list(range(len(letters))), "kind": letters})


def is_(kind: str) -> Any:
    return lambda event: event.kind == kind


def lists(events: Any, splitter: Splitter, **more: Any) -> list[tuple[Any, str]]:
    return [(row["event"], row["kinds"]) for row in run(events, splitter, Lists, **more).table.to_pylist()]


# --- Splitting by predicates ------------------------------------------------------------------------------------------


def test_time_windows() -> None:
    events = kinds("abcdef", [0, 1, 4, 5, 6, 21])
    tumbling = lists(events, time_windows(5))
    assert tumbling == [(3, "a0 b1 c2"), (5, "d3 e4"), (5, "f5")]
    sliding = run(events, time_windows(6, 3), Lists).table.to_pylist()
    wanted: dict[int, str] = {}
    for start in range(-6, 24, 3):
        inside = [f"{k}{i}" for i, (k, t) in enumerate(zip("abcdef", [0, 1, 4, 5, 6, 21], strict=True))
                  if start <= t < start + 6]  # fmt: skip
        if inside:
            wanted[start] = " ".join(inside)
    assert {int(row["partition"]): row["kinds"] for row in sliding} == wanted
    moments = pa.table({"ts": pa.array([0, 59_000_000, 60_000_000], pa.timestamp("us")), "kind": ["a", "b", "c"]})
    assert lists(moments, time_windows("1 minute")) == [(2, "a0 b1"), (2, "c2")]


@given(st.lists(st.integers(0, 40), max_size=20), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
def test_all_windows_of_time_that_hold_events_are_there(
    times: list[int], size: int, slide: int, instances: int
) -> None:
    events = pa.table({"time": pa.array(sorted(times), pa.int64()), "kind": ["x"] * len(times)})
    found = run(events, time_windows(size, slide), Lists, instances=instances).table.to_pylist()
    wanted = {}
    for number in range(-10, 42):
        start = number * slide
        inside = [f"x{i}" for i, t in enumerate(sorted(times)) if start <= t < start + size]
        if inside:
            wanted[str(start)] = " ".join(inside)
    assert {row["partition"]: row["kinds"] for row in found} == wanted


def test_count_windows() -> None:
    assert lists(kinds("abcde"), count_windows(2)) == [(1, "a0 b1"), (3, "c2 d3"), (4, "e4")]
    assert lists(kinds("abcd"), count_windows(3, 1)) == [(2, "a0 b1 c2"), (3, "b1 c2 d3"), (3, "c2 d3"), (3, "d3")]
    assert lists(kinds("abc"), count_windows(1)) == [(0, "a0"), (1, "b1"), (2, "c2")]


def test_sequences() -> None:
    splitter = sequence(is_("a"), is_("b"), is_("c"))
    assert lists(kinds("xabxacbc"), splitter) == [(5, "a1 b2 x3 a4 c5"), (7, "a4 c5 b6 c7")]
    assert lists(kinds("cba"), splitter) == []


def test_and() -> None:
    splitter = all_of(is_("a"), is_("b"))
    assert lists(kinds("xbxab"), splitter) == [(3, "b1 x2 a3"), (4, "a3 b4")]


def test_or() -> None:
    assert lists(kinds("xabx"), any_of(is_("a"), is_("b"))) == [(1, "a1"), (2, "b2")]


def test_aperiodic() -> None:
    assert lists(kinds("xaxybxa"), between(is_("a"), is_("b"))) == [(4, "a1 x2 y3 b4")]
    open_end = between(is_("a"), is_("b"), keep_closing=False, at_end="close")
    assert lists(kinds("xaxybxa"), open_end) == [(4, "a1 x2 y3"), (6, "a6")]


def test_predicates_within_keys() -> None:
    events = kinds("abcabc").append_column("key", pa.array(list("xyxyxy")))
    for instances in (1, 2, 3):
        found = run(events, count_windows(2, key="key"), Lists, instances=instances).table.to_pylist()
        assert [(row["partition"], row["kinds"]) for row in found] == [
            ("x/0", "a0 c2"), ("y/1", "b1 a3"), ("x/4", "b4"), ("y/5", "c5"),
        ]  # fmt: skip


def test_partitions_that_nothing_closes_are_told() -> None:
    found = run(kinds("aab"), sequence(is_("a"), is_("z")), Lists)
    assert (found.partitions_left, found.events, found.table.num_rows) == (2, 3, 0)
    never = Splitter.by_predicates(lambda event: True, lambda partition, event: False, max_open=5)
    with pytest.raises(DataError, match="6 partitions are open at the event 5; the oldest, `0`, has 5 events") as told:
        run(kinds("abcdefgh"), never, Lists)
    assert "Does the closing predicate ever hold?" in str(told.value)
    with pytest.raises(DataError, match="opens a partition that is open: `same`"):
        run(kinds("ab"), Splitter.by_predicates(lambda event: ["same"], lambda p, e: False), Lists)


# --- Splitting by key -------------------------------------------------------------------------------------------------


def test_by_key_and_by_ranges() -> None:
    events = pa.table({"time": [3, 1, 2, 4], "user": [5, 1, 5, 12], "kind": list("abcd")})
    found = run(events, Splitter.by_key("user"), Counts).table
    assert found.column_names == ["time", "event", "partition", "place", "n"]
    assert [(r["time"], r["event"], r["partition"], r["n"]) for r in found.to_pylist()] == [
        (1, 1, "1", 1), (2, 2, "5", 1), (3, 0, "5", 2), (4, 3, "12", 1),
    ]  # fmt: skip
    ranges = Splitter.by_key("user", ranges=[(10, None), (None, 10)])
    for instances in (1, 2, 5):
        rows = run(events, ranges, Counts, instances=instances).table.to_pylist()
        assert [(r["partition"], r["n"]) for r in rows] == [("..10", 1), ("..10", 2), ("..10", 3), ("10..", 1)]
    named = Splitter.by_key("user", ranges={"few": (0, 5), "many": (5, 100)})
    assert run(events, named, Counts).table["partition"].to_pylist() == ["few", "many", "many", "many"]


def test_ranges_that_overlap_or_do_not_cover() -> None:
    for ranges, words in (
        ([(0, 5), (4, 9)], "the ranges 0..5 and 4..9 overlap"),
        ([(None, 5), (None, 9)], "overlap"),
        ([(0, 5), (6, 9)], "no range covers 5 to 6"),
        ([(5, 5)], "is empty"),
        ([], "no ranges"),
        ([(0, 5), ("a", "b")], "cannot be compared"),
    ):
        with pytest.raises(UsageError, match=words):
            Splitter.by_key("user", ranges=ranges)
    events = pa.table({"time": [1, 2], "user": [1, 9], "word": ["a", "b"]})
    with pytest.raises(DataError, match="no range covers the key 9 of the event 1"):
        run(events, Splitter.by_key("user", ranges=[(0, 5), (5, 9)]), Counts)
    with pytest.raises(DataError, match=r"bounds of the range `0\.\.5`"):
        run(events, Splitter.by_key("word", ranges=[(0, 5)]), Counts)


def test_columns_that_are_missing_or_unfit() -> None:
    events = pa.table({"time": [1], "user": [1], "part": pa.array([None], pa.int64())})
    with pytest.raises(UsageError, match="no column `usr` to split them by\nDid you mean `user`"):
        run(events, Splitter.by_key("usr"), Counts)
    with pytest.raises(UsageError, match="no column `nr`"):
        run(events, Splitter.by_key("user"), Counts, event_id="nr")
    with pytest.raises(DataError, match="has no key: `part` is NULL"):
        run(events, Splitter.by_key("part"), Counts)
    with pytest.raises(DataError, match="1 events have no time or no id"):
        run(events, Splitter.by_key("user"), Counts, event_id="part")
    with pytest.raises(DataError, match="the event 7 occurs twice"):
        run(pa.table({"time": [1, 1], "id": [7, 7]}), Splitter.by_key("id"), Counts, event_id="id")
    with pytest.raises(UsageError, match="0 instances"):
        run(events, Splitter.by_key("user"), Counts, instances=0)
    with pytest.raises(UsageError, match="the operator is not a class"):
        run(events, Splitter.by_key("user"), Counts())
    with pytest.raises(UsageError, match="the operator is a dict"):
        run(events, Splitter.by_key("user"), dict)


def test_events_of_all_kinds() -> None:
    rows = [{"ts": "2024-01-01 00:00:01", "user": "b"}, {"ts": "2024-01-01", "user": "a"}]
    found = run(rows, Splitter.by_key("user"), Counts).table
    assert found["time"].to_pylist() == [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 0, 0, 1),
    ]
    zoned = run([{"ts": "2024-01-01 02:00:00+02:00", "user": "a"}], Splitter.by_key("user"), Counts).table
    assert zoned["time"].to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC)]
    frame = pa.table({"time": [1.5, 0.5], "id": ["x", "y"]}).to_pandas()
    both = run(frame, Splitter.by_key("id"), Counts, event_id="id")
    assert both.to_pandas()["event"].tolist() == ["y", "x"]
    days = pa.table({"time": [date(2024, 1, 2)], "user": [1]})
    assert run(days, Splitter.by_key("user"), Counts).to_arrow()["time"].to_pylist()[0].day == 2
    fine = pa.table({"time": pa.array([1_001, 1_002], pa.timestamp("ns")), "user": [1, 1]})
    assert run(fine, Splitter.by_key("user"), Counts).table["n"].to_pylist() == [1, 2]
    nothing = run(days.slice(0, 0), Splitter.by_key("user"), Counts)
    assert (nothing.table.num_rows, nothing.events) == (0, 0)


# --- Operators --------------------------------------------------------------------------------------------------------


def test_the_example_finds_the_triangles_that_there_are() -> None:
    names = example()
    for seed in range(3):
        table = payments(120, seed)
        found = run(table, names["SPLITTER"], names["PaymentTriangles"], names["MERGER"], event_id="id").table
        assert as_plain(found) == plainly(table)
        assert found.num_rows > 5


@pytest.mark.parametrize("instances", [2, 3, 7])
def test_any_number_of_instances_gives_the_same(instances: int) -> None:
    names = example()
    table = payments(300, 5)
    given_ = (table, names["SPLITTER"], names["PaymentTriangles"], names["MERGER"])
    assert run(*given_, event_id="id", instances=instances).table == run(*given_, event_id="id").table
    windows = time_windows("40 minutes", "20 minutes")
    whole = run(table, windows, Parts, event_id="id").table
    assert run(table, windows, Parts, event_id="id", instances=instances).table == whole
    best = Merger(combine=TopK(2, key="part", by=["-n", "part"]))
    alone = run(table, Splitter.by_key("payer"), Followers, best, event_id="id").table
    assert run(table, Splitter.by_key("payer"), Followers, best, event_id="id", instances=instances).table == alone


class Parts(Operator):
    """Gives the sizes of the connected parts of a window's payments."""

    output = {"sizes": pa.list_(pa.int64())}

    def on_event(self, event: Event) -> None:
        self.manipulate_graph(add_edges=[(event.payer, event.payee)])

    def on_close(self) -> Any:
        parts = self.execute(Components()).to_dict()
        yield {"sizes": sorted(Counter(parts.values()).values())}


class Followers(Operator):
    """Gives how many accounts one has paid."""

    output = {"part": "string", "n": "int64"}

    def on_event(self, event: Event) -> Any:
        self.manipulate_graph(add_edges=[(event.payer, event.payee)])
        yield {"part": self.partition.name, "n": self.graph.degree(event.payer)}


def test_windows_run_programs_over_their_graphs() -> None:
    import networkx as nx

    table = payments(100, 2)
    rows = run(table, time_windows("1 hour"), Parts, event_id="id").table.to_pylist()
    hour = 3_600_000_000
    windows: dict[int, Any] = defaultdict(nx.Graph)
    for row in table.to_pylist():
        start = int(row["ts"].timestamp() * 1e6) // hour * hour
        windows[start].add_edge(row["payer"], row["payee"])
    wanted = {str(s): sorted(map(len, nx.connected_components(graph))) for s, graph in windows.items()}
    assert {row["partition"]: row["sizes"] for row in rows} == wanted


class Friends(Operator):
    """Tells how many of those who like the same thing are friends of the latest, by the store; and of friendships."""

    output = {"who": "string", "friends": "int64"}

    def __init__(self) -> None:
        self.likers: list[str] = []

    def on_event(self, event: Event) -> Any:
        if event.kind == "friends":
            if event.a in self.likers and event.b in self.likers:
                yield {"who": f"{event.a}-{event.b}", "friends": len(self.store.neighbours(event.a))}
            return
        self.likers.append(event.a)
        known = sum(self.store.has_edge(event.a, other) for other in self.likers)
        yield {"who": event.a, "friends": known}


def social() -> pa.Table:
    rows = [
        (1, "like", "u1", None, "c1"), (2, "friends", "u1", "u2", None), (3, "like", "u2", None, "c1"),
        (4, "like", "u3", None, "c1"), (5, "friends", "u3", "u2", None), (5, "like", "u2", None, "c2"),
        (6, "friends", "u1", "u3", None), (7, "like", "u1", None, "c2"),
    ]  # fmt: skip
    names = ["time", "kind", "a", "b", "comment"]
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def friendships(event: Event) -> Change | None:
    return Change(add_edges=[(event.a, event.b)]) if event.kind == "friends" else None


def test_the_graph_store_shows_the_past_only() -> None:
    splitter = Splitter.by_key("comment", store=friendships, broadcast=lambda event: event.kind == "friends")
    for instances in (1, 2, 3):
        rows = run(social(), splitter, Friends, instances=instances).table.to_pylist()
        assert [(row["partition"], row["who"], row["friends"]) for row in rows] == [
            ("c1", "u1", 0), ("c1", "u2", 1), ("c1", "u3", 0), ("c1", "u3-u2", 1), ("c2", "u2", 0), ("c1", "u1-u3", 2),
            ("c2", "u1", 1),
        ]  # fmt: skip
    only_stored = Splitter.by_key("comment", store=friendships)
    assert run(social(), only_stored, Friends).table["who"].to_pylist() == ["u1", "u2", "u3", "u2", "u1"]


class Community(Operator):
    """Gives the size of the largest clique of friends who like a comment and that the latest of them is in."""

    output = {"size": "int64"}

    def on_event(self, event: Event) -> Any:
        near = [(event.a, other) for other in self.graph if self.store.has_edge(event.a, other)]
        self.manipulate_graph(add_vertices=[event.a], add_edges=near)
        program = Cliques(event.a)
        found = self.execute(program, within=self.graph.neighbours(event.a) | {event.a}).to_dict()
        yield {"size": len(program.cliques(found[event.a])[0])}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 5)), max_size=40), st.integers(1, 3))
@examples(30)
def test_communities_with_store_and_cliques(steps: list[tuple[bool, int, int]], instances: int) -> None:
    import networkx as nx

    friends: set[frozenset[int]] = set()
    parts: dict[str, Any] = {"0": nx.Graph(), "1": nx.Graph()}
    rows, wanted = [], []
    for like, a, b in steps:
        comment = str(b % 2)
        if like and a not in parts[comment]:
            graph = parts[comment]
            near = [other for other in graph if frozenset([a, other]) in friends]
            graph.add_node(a)
            graph.add_edges_from((a, other) for other in near)
            wanted.append(max(len(clique) for clique in nx.find_cliques(graph) if a in clique))
            rows.append({"time": len(rows), "kind": "like", "a": a, "b": b, "comment": comment})
        elif not like:
            friends.add(frozenset([a, b]))
            rows.append({"time": len(rows), "kind": "friends", "a": a, "b": b, "comment": None})
    splitter = Splitter.by_key("comment", store=friendships)
    if rows and wanted:
        assert run(rows, splitter, Community, instances=instances).table["size"].to_pylist() == wanted


class Fails(Operator):
    output = {"n": "int64"}

    def on_event(self, event: Event) -> Any:
        if event.event_id == 2:
            raise ZeroDivisionError("the user's own words")
        return [{"n": "no number"}] if event.event_id == 3 else None


def test_an_operator_that_raises_says_where_and_keeps_the_exception() -> None:
    events = pa.table({"time": [1, 2, 3], "id": [1, 2, 3], "user": ["x", "y", "x"]})
    with pytest.raises(OperatorFailed) as raised:
        run(events, Splitter.by_key("user"), Fails, event_id="id")
    what = "the operator Fails failed at the event 2 in the partition `y`, instance 0: ZeroDivisionError: the user's"
    assert raised.value.what.startswith(what)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert "test_run.py, line" in str(raised.value)
    with pytest.raises(DataError, match="gave a `n` that is not of type int64"):
        run(events.filter(pa.array([True, False, True])), Splitter.by_key("user"), Fails, event_id="id")


class Odd(Operator):
    output = {"n": "int64"}

    def __init__(self, what: Any) -> None:
        self.what = what

    def on_event(self, event: Event) -> Any:
        return [self.what(self, event)]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda operator, event: 5, "a result is a int"),
        (lambda operator, event: {"m": 1}, "a result has `m`, which is not in `output`"),
        (lambda operator, event: {"n": event.usr}, "AttributeError: an event has no column `usr`"),
        (lambda operator, event: operator.manipulate_graph(remove_vertices=[1]), "no vertex 1 to remove"),
    ],
)
def test_results_that_cannot_be(what: Any, words: str) -> None:
    with pytest.raises(OperatorFailed, match=words):
        run(pa.table({"time": [1], "user": [1]}), Splitter.by_key("user"), partial(Odd, what))


def test_halves_do_not_become_whole_and_nothing_has_no_columns() -> None:
    with pytest.raises(DataError, match=r"1\.9 is not whole"):
        run(pa.table({"time": [1], "user": [1]}), Splitter.by_key("user"), partial(Odd, lambda *_: {"n": 1.9}))
    with pytest.raises(UsageError, match="no events"):
        run([], Splitter.by_key("user"), partial(Odd, lambda *_: {"n": 1}))


def test_predicates_that_raise_and_outputs_that_cannot_be() -> None:
    events = pa.table({"time": [1], "user": [1]})
    broken = Splitter.by_predicates(lambda event: event.nothing, lambda partition, event: True)
    with pytest.raises(OperatorFailed, match="the splitter failed at the event 0, instance 0: AttributeError"):
        run(events, broken, Counts)
    for output, words in (
        ({}, "does not say what it gives"),
        ({"n": "integer"}, "has no type `integer`"),
        ({"time": "int64"}, "gives a column `time`, which results have anyway"),
    ):
        made = type("Made", (Counts,), {"output": output})
        with pytest.raises(UsageError, match=words):
            run(events, Splitter.by_key("user"), made)
    with pytest.raises(UsageError, match="`at_end` is"):
        Splitter.by_predicates(is_("a"), lambda p, e: True, at_end="later")
    with pytest.raises(UsageError, match="`max_open` is 0"):
        Splitter.by_predicates(is_("a"), lambda p, e: True, max_open=0)
    for make in (lambda: time_windows(0), lambda: count_windows(0), lambda: sequence(is_("a")), lambda: all_of()):
        with pytest.raises(UsageError):
            make()
    for text in ("soon", "5", "1.5 s", "3 moons"):
        with pytest.raises(UsageError, match="is not a duration"):
            duration(text)
    assert (duration("90 s"), duration(5)) == (90_000_000, 5)


# --- Merging ------------------------------


class Says(Operator):
    output = {"name": "string", "score": "int64"}

    def on_event(self, event: Event) -> Any:
        yield {"name": event.name, "score": event.score}


def scores(*rows: tuple[str, int | None]) -> pa.Table:
    return pa.table({"time": list(range(len(rows))), "name": [r[0] for r in rows], "score": [r[1] for r in rows]})


def best(table: pa.Table, k: int = 2, **more: Any) -> list[tuple[int, list[str]]]:
    merger = Merger(combine=TopK(k, key="name", by=["-score"]))
    rows = run(table, Splitter.by_key("name"), Says, merger, **more).table.to_pylist()
    return [(row["event"], [f"{one['name']}{one['score']}" for one in row["best"]]) for row in rows]


def test_the_best_are_told_when_they_change() -> None:
    given_ = [("a", 1), ("b", 3), ("c", 2), ("d", 1), ("b", None), ("a", 2), ("c", None), ("a", None), ("d", None)]
    assert best(scores(*given_)) == [
        (0, ["a1"]), (1, ["b3", "a1"]), (2, ["b3", "c2"]), (4, ["c2", "a1"]), (5, ["a2", "c2"]), (6, ["a2", "d1"]),
        (7, ["d1"]), (8, []),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 4)), max_size=30), st.integers(1, 3))
@examples(50)
def test_the_best_are_those_of_a_full_sort(rows: list[tuple[str, int | None]], instances: int) -> None:
    now: dict[str, int] = {}
    wanted, last = [], []
    for i, (name, score) in enumerate(rows):
        now.pop(name, None)
        if score is not None:
            now[name] = score
        top = [f"{n}{s}" for n, s in sorted(now.items(), key=lambda item: (-item[1], item[0]))[:2]]
        if top != last:
            wanted.append((i, top))
            last = top
    table = scores(*rows).cast(pa.schema([("time", pa.int64()), ("name", pa.string()), ("score", pa.int64())]))
    assert best(table, instances=instances) == wanted


def test_orders_among_the_results_of_an_event() -> None:
    class Several(Operator):
        output = {"n": "int64", "word": "string"}

        def on_event(self, event: Event) -> Any:
            return [{"n": n, "word": word} for n, word in ((1, "b"), (2, "a"), (None, "c"), (2, "c"))]

    events = pa.table({"time": [1], "user": [1]})
    rows = run(events, Splitter.by_key("user"), Several, Merger(order=["-n", "-word"])).table.to_pylist()
    assert [(row["n"], row["word"]) for row in rows] == [(2, "c"), (2, "a"), (1, "b"), (None, "c")]
    plain = run(events, Splitter.by_key("user"), Several).table.to_pylist()
    assert [row["place"] for row in plain] == [0, 1, 2, 3]
    for merger, words in (
        (Merger(order=["m"]), "the order of the merger names `m`"),
        (Merger(combine=TopK(1, key="n", by="-m")), "the order of the best names `m`"),
        (Merger(combine=TopK(1, key="m", by="-n")), "names `m`, which results do not have"),
        (Merger(combine=Combination()), "does not say what it gives"),
    ):
        with pytest.raises(UsageError, match=words):
            run(events, Splitter.by_key("user"), Several, merger)
    with pytest.raises(UsageError, match="best 0"):
        TopK(0, key="n", by="n")


class Running(Combination):
    output = {"total": "int64"}

    def __init__(self) -> None:
        self.total = 0

    def take(self, rows: Any) -> Any:
        self.total += sum(row["score"] for row in rows)
        return [{"total": self.total}]


def test_a_combination_of_ones_own_begins_anew_in_each_run() -> None:
    merger = Merger(combine=Running())
    for _ in range(2):
        found = run(scores(("a", 1), ("b", 2)), Splitter.by_key("name"), Says, merger).table
        assert found["total"].to_pylist() == [1, 3]


# --- Plain data -------------------------------------------------------------------------------------------------------

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3),
    st.datetimes(), st.dates(), st.timedeltas(), st.decimals(allow_nan=False), st.just("!"),
)  # fmt: skip
DATA = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.frozensets(LEAVES, max_size=3),
        st.dictionaries(LEAVES, inner, max_size=3), st.lists(inner, max_size=3).map(deque),
    ),
    max_leaves=8,
)  # fmt: skip


@given(DATA)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    again = from_bytes(to_bytes(value, "a test"))
    assert again == value
    assert type(again) is type(value)


def test_other_data_that_may_be_kept_and_what_may_not() -> None:
    for value in (Counter("abc"), defaultdict(list, a=[1]), deque([1, 2], maxlen=2), {1, 2}, timedelta(1), Decimal(1)):
        again = from_bytes(to_bytes(value, "a test"))
        assert (again, type(again)) == (value, type(value))
    array = from_bytes(to_bytes({"x": np.arange(6.0).reshape(2, 3), "y": np.uint64(2**64 - 1)}, "a test"))
    assert array["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert array["y"] == np.uint64(2**64 - 1)
    with pytest.raises(UsageError, match="a test holds a Partition, which cannot be kept"):
        to_bytes([Partition("x")], "a test")
