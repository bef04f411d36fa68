"""The CET paper's algorithms beside one another and beside the default: its Figures 13 and 14."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from benchmarks import Figure, Peer, Row, Table, at_least, at_most, median_of, memory_of
from benchmarks.cet_work import AUTO, Patience, claim, fresh, generated, input_of, listed, times, worked, workload
from benchmarks.report import amount

METHODS = ("flattened", "baseline", "sase", "m-cet", "t-cet", "h-cet", AUTO)
SCALABLE = ("sase", "m-cet", "t-cet", "h-cet", AUTO)
LIMIT = 1_000_000  # bytes of stored partial trends for h-cet
AS_FAST = 1.2  # times the best named algorithm, at most
UNSHARED = "h-cet-unshared"
NAMED = ("sase", "m-cet", "t-cet", "h-cet")
UNITS = (
    "8 bytes a reference to an event, a vertex, an edge or a pointer, as the paper counts; a query's largest window."
)


def run(quick: bool, large: bool = False) -> list[Table]:
    queries = 2 if quick else 10
    return [
        *_rate(quick, large, queries),
        *_length(quick, large, queries),
        _overlap(quick, large),
        _compatibility(quick, large),
        _default(quick),
        _memory(quick),
    ]


def _pair(number: str, title: str, setting: str, places: list[Any], tried: Patience, claims: list[str]) -> list[Table]:
    """Return the figure of seconds and the one of memory."""
    seconds, memory = (
        Figure(
            f"Figure {figure}({number}): {what}, {title}", [], [claim], setting=setting, places=places, unit=unit,
            lines={name: line for name, line in tried.of(attribute).items() if name != AUTO or unit == "s"},
        )
        for figure, what, unit, attribute, claim in (
            (13, "seconds per window", "s", "a_window", claims[0]),
            (14, "memory", "B", "memory", f"{claims[1]} {UNITS}"),
        )
    )  # fmt: skip
    return [seconds, memory]


def _rate(quick: bool, large: bool, queries: int) -> list[Table]:
    """Vary the events per window on checks (`trellis generate kite`)."""
    rates = [60, 120] if quick else [100, 200, 300, 400, 500, 600] + ([700, 750] if large else [])
    tried = Patience(METHODS)
    for rate in rates:
        events = generated("kite", 3 * rate, accounts=50, rate=float(rate))
        window = "WITHIN 1 day SLIDE 1 day"
        tried.try_all(f"Figure 13(a), {rate}", workload("kite", events, window, queries), LIMIT)
    sase, walk, breadth, hybrid, auto = (_last(tried, name) for name in ("sase", "m-cet", "t-cet", "h-cet", AUTO))
    stored = [run.stored for run in tried.lines["h-cet"] if run is not None]
    first_to_go = all(None in tried.lines[name] for name in ("flattened", "baseline"))
    ratios = f"{times(sase / hybrid)} h-cet, {times(sase / walk)} m-cet, {times(sase / breadth)} t-cet"
    claims = [
        f"Q1 in {queries} variants over 3 windows of a day. "
        + claim(
            "Flink and the baseline give up, SASE takes up to 42 times as long as CET",
            first_to_go and sase / hybrid >= 10,
            f"those two {'gave' if first_to_go else 'did not give'} up, and SASE took {ratios} where most is found",
        )
        + f" SASE took {times(sase / auto)} as long as the default. In compiled code most of the time goes into "
        "writing what is found, whichever way it is found.",
        f"h-cet has a limit of {LIMIT:,} bytes. "
        + claim(
            "CET adapts to the limit, SASE stores least, Flink most",
            max(stored) <= LIMIT and _smallest(tried) in ("sase", "m-cet"),
            f"h-cet stored at most {max(stored):,} bytes of partial trends, {_smallest(tried)} needed least",
        ),
    ]
    return _pair("a", "by events per window, FT", "events a day", rates, tried, claims)


def _length(quick: bool, large: bool, queries: int) -> list[Table]:
    """Vary the length of windows on stocks."""
    lengths = [5, 10] if quick else [8, 12, 16, 20, 24] + ([28] if large else [])
    tried = Patience(METHODS)
    for minutes in lengths:
        events = generated("stock", 600 if quick else 2400, companies=10, rate=0.4)
        window = f"WITHIN {minutes} minutes SLIDE {minutes} minutes"
        tried.try_all(f"Figure 13(b), {minutes}", workload("stock", events, window, queries), LIMIT)
    sase, hybrid = _last(tried, "sase"), _last(tried, "h-cet")
    same = [
        a.stored == b.stored
        for a, b in zip(tried.lines["h-cet"], tried.lines["t-cet"], strict=True)
        if a is not None and b is not None and b.stored <= LIMIT
    ]
    claims = [
        f"Q3 in {queries} variants over 10 companies. "
        + claim(
            "CET is much faster than SASE for long windows", sase / hybrid >= 2,
            f"SASE took {times(sase / hybrid)} as long as h-cet",
        ),
        claim(
            "H-CET stores what T-CET does where that fits the limit", all(same),
            f"so in {sum(same)} of {len(same)} cases; the optimizer also cuts where that saves steps",
        ),
    ]  # fmt: skip
    return _pair("b", "by length of windows, ST", "minutes", lengths, tried, claims)


def _overlap(quick: bool, large: bool) -> Figure:
    """Vary how much windows share, on checks, three a second."""
    length, layers = (6, 24) if quick else ((13, 78) if large else (12, 60))
    overlaps = [0, 3] if quick else [length * i // 6 for i in range(6)]
    tried = Patience((*SCALABLE, UNSHARED))
    built: list[float] = []
    built_anew: list[float] = []
    for overlap in overlaps:
        window = f"WITHIN {length} s SLIDE {length - overlap} s"
        trends = workload("checks", _compatible(3 * layers, 3), window, 1)
        tried.try_all(f"Figure 13(c), {overlap}", trends)
        built.append(_inside(trends))
        built_anew.append(_inside(trends, shared=False))
    lines = tried.of("a_window") | {"h-cet, without joining": built, f"{UNSHARED}, without joining": built_anew}
    alone = lines[UNSHARED][-1] or 0.0
    hybrid = [seconds for seconds in lines["h-cet"] if seconds is not None]
    sase = [seconds for seconds in lines["sase"] if seconds is not None]
    falls, inner, stays = hybrid[0] / hybrid[-1], built[0] / built[-1], sase[0] / sase[-1]
    return Figure(
        "Figure 13(c): seconds per window, by overlap of windows, FT", [],
        [
            f"Q1 on three checks a second, windows of {length} seconds. "
            + claim(
                "the time of CET falls with the overlap, that of SASE stays", falls > 1.5 and falls > 1.5 * stays,
                f"that of h-cet falls {times(falls)}, that of SASE {times(stays)}; what windows share, without joining "
                f"(graph, plan, partial trends), falls {times(inner)}",
            )
            + " What § 6.3 saves where most is shared: h-cet-unshared, which finds graphlets anew in each window, "
            f"takes {times(alone / hybrid[-1])} as long, and {times(built_anew[-1] / built[-1])} without joining."
            + f" Of the fall of h-cet {times(hybrid[0] / hybrid[1])} are between windows that share nothing, each of "
            "which is one graphlet, and the first that are cut where others begin: small graphlets stay in the cache. "
            "Every window lists its own trends, which costs the same however much is shared."
        ],
        setting="overlap, seconds", places=overlaps, lines=lines,
    )  # fmt: skip


def _inside(trends: list[Any], shared: bool = True) -> float:
    """Return the seconds per window that h-cet takes for all but joining: graph, plan and partial trends."""
    from trellis.papers.cet.cet_graph import cet_graph_of
    from trellis.papers.cet.h_cet import planned
    from trellis.papers.cet.pool import Pool

    seconds, windows = 0.0, 0
    for one in trends:
        began = time.perf_counter()
        given = input_of(one, "h-cet")
        cet = cet_graph_of(given)
        pool = Pool(cet, len(given.events), given.meter)
        for partition, choice in planned(given, cet, shared):
            borders = partition.bounds[[0, *choice.cuts, len(partition.bounds) - 1]].tolist()
            for u, v in pairwise(borders):
                pool.add(u, v)
                pool.release_before(u)
            pool.release_before(borders[-1])
        seconds += time.perf_counter() - began
        windows += len(given.tasks)
    return seconds / windows


def _compatibility(quick: bool, large: bool) -> Figure:
    """Vary how many events of the second before an event may follow."""
    events = 12 if quick else (42 if large else 36)
    places = [2, 3] if quick else [1, 2, 3, 4, 6, 9, 12]
    tried = Patience(METHODS)
    for width in places:
        tried.try_all(f"Figure 13(d), {width}", workload("checks", _compatible(events, width), "", 1), LIMIT)
    trends = tried.of("trends")[AUTO]
    most = places[max(range(len(places)), key=lambda i: trends[i] or 0)]
    sase, hybrid = (tried.of("a_window")[name][places.index(3)] or 1e-9 for name in ("sase", "h-cet"))
    return Figure(
        "Figure 13(d): seconds per window, by compatibility, FT", [],
        [
            f"Q1 on one window of {events} checks. "
            + claim(
                "there are most trends, and all costs are greatest, at 3, where SASE takes 5.4 times as long as CET",
                most == 3 and sase / hybrid >= 2, f"most trends at {most}, SASE {times(sase / hybrid)} h-cet there",
            )
        ],
        setting="compatible events", places=places, lines=tried.of("a_window"),
    )  # fmt: skip


def _compatible(events: int, width: int) -> Any:
    """Make the paper's stream: so many checks a second, each of which may follow all of the second before."""
    return generated("kite", events, rate=float(width), compatibility=width)


def _last(tried: Patience, method: str) -> float:
    """Return the seconds per window of a method at the last place where SASE ended."""
    sase = tried.lines["sase"]
    at = max(i for i, run in enumerate(sase) if run is not None)
    run = tried.lines[method][at]
    return float("nan") if run is None else max(run.a_window, 1e-9)


def _smallest(tried: Patience) -> str:
    """Return which method of the paper needed least memory at the last place."""
    last = {name: line[-1] for name, line in tried.of("memory").items() if name != AUTO}
    return min(last, key=lambda name: float("inf") if last[name] is None else last[name] or 0.0)


# --- The default ----------------------------------------------------------------------------------------------------


WORK = {
    "checks, 3 a second, 43 M trends of 16": (
        "checks", {"events": 48, "rate": 3.0, "compatibility": 3}, "", "maximal",
    ),
    "kite, 760 a day": ("kite", {"events": 2280, "accounts": 50, "rate": 760.0}, "WITHIN 1 day SLIDE 1 day", "maximal"),
    "stock, windows of 30 minutes": (
        "stock", {"events": 2900, "companies": 10, "rate": 0.4}, "WITHIN 30 minutes SLIDE 10 minutes", "maximal",
    ),
    "activity, windows that overlap ten times": (
        "activity", {"events": 13_000, "persons": 10, "rate": 1.0}, "WITHIN 10 minutes SLIDE 1 minute", "maximal",
    ),
    "activity, 200 persons, few trends per window": (
        "activity", {"events": 400_000, "persons": 200, "rate": 4.0}, "WITHIN 10 minutes SLIDE 5 minutes", "maximal",
    ),
    "stock, unextendable": (
        "stock", {"events": 2000, "companies": 10, "rate": 0.5}, "WITHIN 10 minutes SLIDE 5 minutes", "unextendable",
    ),
}  # fmt: skip
STORED = "kite, 700 a day"  # whose partial trends t-cet can store
STORABLE = {STORED: ("kite", {"events": 2100, "accounts": 50, "rate": 700.0}, "WITHIN 1 day SLIDE 1 day", "maximal")}
SMALL = {"checks": 18}  # events in a quick run; elsewhere 300


def _work(name: str, quick: bool) -> Any:
    kind, options, window, report = (WORK | STORABLE)[name]
    if quick:
        options = options | {"events": SMALL.get(kind, 300)}
    events = generated("kite" if kind == "checks" else kind, **options)
    return workload(kind, events, window, 1, report)[0]


def _default(quick: bool) -> Table:
    """Compare the default with each named algorithm on work that takes some time."""
    rows, written = [], 0.0
    for name in WORK:
        trends = _work(name, quick)
        ours = median_of(name, lambda trends=trends: listed(fresh(trends), None), quick)
        peers = []
        for method in NAMED:
            if worked([trends], method) is not None:
                timing = median_of(f"{name}, {method}", lambda t=trends, m=method: worked([t], m), quick)
                peers.append(Peer(method, timing))
        ratio = ours.wall / min(peer.timing.wall for peer in peers)
        targets = [at_most(AS_FAST, "times the best named algorithm", ratio)] if ours.wall >= 0.05 or quick else []
        rows.append(Row(f"{name}: {trends.count():,} trends", ours, peers=peers, targets=targets))
        written = max(written, _written(trends) / ours.wall)
    return Table(
        "The default beside the named algorithms, median of 5: from sorted events to all trends as positions", rows,
        [
            "The default counts first, and lists on as many threads as there are cores; the others use one and need "
            "not count. Work of less than 50 ms has no target.",
            "t-cet is left out where it would store more than 2 GiB. A limit: each event of a trend is 4 bytes to "
            f"write; the default writes up to {amount(written, 'B')} a second.",
        ],
    )  # fmt: skip


def _written(trends: Any) -> int:
    """Return the bytes of all trends as positions."""
    row = trends.aggregate(f"count({trends.plan.bound.variables[0].name}) AS named")
    return 4 * sum(map(int, row["named_text"].to_pylist()))


def _memory(quick: bool) -> Table:
    """Compare the memory of the default with that of t-cet, in processes of their own."""
    ours = memory_of("the default", memory_work, STORED, AUTO, quick)
    theirs = memory_of("t-cet", memory_work, STORED, "t-cet", quick)
    stored = worked([_work(STORED, quick)], "t-cet")
    assert stored is not None
    rows = [
        Row(
            f"the default, {STORED}",
            memory=ours,
            targets=[at_least(1, "times as much in t-cet", theirs / max(ours, 1))],
        ),
        Row("t-cet", memory=theirs),
        Row("t-cet, stored partial trends in the paper's unit", memory=stored.stored),
    ]
    return Table("Memory beyond the sorted events: growth of a process of its own", rows, [])


def memory_work(name: str, method: str, quick: bool) -> Any:
    """Prepare work for a process of its own."""
    trends = _work(name, quick)
    return lambda: listed(fresh(trends), None) if method == AUTO else worked([trends], method)
