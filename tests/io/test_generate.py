"""Sample streams: their columns, their rules, and that a seed decides everything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from trellis.errors import UsageError
from trellis.io.generate import KINDS, generate_table, options_of
from trellis.io.generate.activity import activity
from trellis.io.generate.kite import kite
from trellis.io.generate.stock import stock

TIME = pa.timestamp("us", tz="UTC")
INT, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()
SCHEMAS = {
    "kite": pa.schema(
        [("ts", TIME), ("event_id", INT)] + [(name, TEXT) for name in ("src", "dest", "source", "destination", "type")]
    ),
    "stock": pa.schema(
        {"ts": TIME, "tick": INT, "event_id": INT, "id": INT, "companyID": INT}
        | {"name": TEXT, "code": TEXT, "price": DOUBLE, "volume": INT}
    ),
    "activity": pa.schema([("ts", TIME), ("event_id", INT), ("personID", INT), ("rate", INT), ("type", TEXT)]),
    "zipf": pa.schema([("ts", TIME), ("event_id", INT), ("name", TEXT)]),
    "laundering": pa.schema(
        {"ts": TIME, "event_id": INT, "source": TEXT, "destination": TEXT, "amount": DOUBLE}
        | {"attempt": INT, "scheme": TEXT, "laundering": INT}
    ),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def test_compatibility_is_the_number_of_earlier_events_that_each_may_follow() -> None:
    table = kite(4000, rate=60, compatibility=3, selectivity=0.5)
    chosen = table.filter(pc.equal(table["type"], "not covered"))
    assert chosen.num_rows == 2000
    when, src, dest = (chosen[name].to_numpy() for name in ("ts", "src", "dest"))
    earlier = np.array([((dest == s) & (when < t)).sum() for s, t in zip(src, when, strict=True)])
    assert (earlier[when == when[0]] == 0).all()
    assert (earlier[when > when[0]] == 3).all()
    assert set(table["src"].to_pylist()).isdisjoint(
        table.filter(pc.equal(table["type"], "covered"))["dest"].to_pylist()
    )
    few = kite(60, rate=1, compatibility=3)
    when, src, dest = (few[name].to_numpy() for name in ("ts", "src", "dest"))
    earlier = [int(((dest == s) & (when < t)).sum()) for s, t in zip(src, when, strict=True)]
    assert earlier == [0] * 3 + [3] * 57


@pytest.mark.parametrize("options", [{"selectivity": 0.5}, {"compatibility": 3, "chains": 0.5}, {"compatibility": -1}])
def test_compatibility_takes_no_other_options(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        kite(10, **options)  # type: ignore[arg-type]


def seconds(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(INT).to_numpy() / 1e6


@every_kind
@pytest.mark.parametrize("events", [0, 1, 2, 3, 50, 3000])
def test_schema_ids_and_time_order(kind: str, events: int) -> None:
    table = KINDS[kind](events)
    assert table.schema == SCHEMAS[kind]
    assert table["event_id"].to_pylist() == list(range(events))
    assert (np.diff(seconds(table)) >= 0).all()
    assert all(column.null_count == 0 for column in table.columns)


@every_kind
def test_the_seed_decides(kind: str) -> None:
    assert KINDS[kind](500, 7).equals(KINDS[kind](500, 7))
    assert not KINDS[kind](500, 7).equals(KINDS[kind](500, 8))


@every_kind
def test_some_events_have_the_same_time_but_not_most(kind: str) -> None:
    ties = (np.diff(seconds(KINDS[kind](5000))) == 0).mean()
    assert 0.005 < ties < 0.6


@every_kind
def test_start(kind: str) -> None:
    first = KINDS[kind](100, start="2030-05-06T01:00:00+01:00")["ts"][0].as_py()
    assert first.isoformat()[:10] == "2030-05-06"


def test_attempts_to_launder_hang_together() -> None:
    frame = generate_table("laundering", 5000, 4, launders=0.2).to_pandas()
    assert frame["laundering"].sum() == 1000
    assert (frame["source"] != frame["destination"]).all()
    last = frame["attempt"].max()  # may be cut short
    seen = set()
    for attempt, rows in frame[(frame["attempt"] > 0) & (frame["attempt"] < last)].groupby("attempt"):
        (scheme,) = set(rows["scheme"])
        seen.add(scheme)
        assert (rows["ts"].max() - rows["ts"].min()).days < 2, attempt
        payers, payees = rows["source"].tolist(), rows["destination"].tolist()
        if scheme == "cycle":
            assert payees == [*payers[1:], payers[0]]
        elif scheme in ("fan-in", "fan-out"):
            assert len({*(payees if scheme == "fan-in" else payers)}) == 1
        else:
            assert set(payers) & set(payees)
    assert seen == {"fan-in", "fan-out", "cycle", "gather-scatter", "scatter-gather", "stack"}
    with pytest.raises(UsageError, match="at least 20"):
        generate_table("laundering", 10, accounts=5)


def test_kite_accounts_and_types() -> None:
    table = kite(4000, 3, accounts=20, covered=0.5, chains=0.0)
    assert table["src"].equals(table["source"])
    assert table["dest"].equals(table["destination"])
    assert not pc.any(pc.equal(table["src"], table["dest"])).as_py()
    assert set(table["src"].to_pylist()) == {f"A{i:03d}" for i in range(20)}
    share = pc.mean(pc.equal(table["type"], "covered").cast(DOUBLE)).as_py()
    assert 0.45 < share < 0.55
    assert set(table["type"].to_pylist()) == {"not covered", "covered"}


def test_kite_spelling_of_the_cet_paper() -> None:
    table = kite(200, type_spelling="notcovered")
    assert set(table["type"].to_pylist()) == {"notcovered", "covered"}


def test_kite_two_accounts() -> None:
    table = kite(50, accounts=2)
    assert set(zip(table["src"].to_pylist(), table["dest"].to_pylist(), strict=True)) == {
        ("A000", "A001"),
        ("A001", "A000"),
    }


def test_kite_chains_are_planted() -> None:
    table = kite(60, accounts=1000, chains=1.0, rate=10.0)
    source, destination, when = table["src"].to_pylist(), table["dest"].to_pylist(), seconds(table)
    follows = [
        any(source[j] == destination[i] and 0 < when[j] - when[i] <= 12.1 * 3600 for j in range(60)) for i in range(60)
    ]
    assert sum(follows) >= 60 // 2
    assert set(table["type"].to_pylist()) == {"not covered"}


@pytest.mark.parametrize("rate", [1.0, 40.0, 5000.0])
def test_kite_density(rate: float) -> None:
    table = kite(2000, rate=rate, resolution=1)
    days = (seconds(table)[-1] - seconds(table)[0]) / 86_400
    assert days == pytest.approx(2000 / rate, rel=0.05)


def test_kite_weeks_hold_some_trends_but_not_too_many() -> None:
    table = kite(400, 1)
    week = table.filter(pc.less(table["ts"], pa.scalar("2024-01-08T00:00:00Z").cast(TIME)))
    rows = [row for row in week.to_pylist() if row["type"] == "not covered"]
    paths: dict[int, int] = {}
    continued: set[int] = set()
    for row in reversed(rows):
        later = [r for r in rows if r["ts"] > row["ts"] and r["src"] == row["dest"]]
        paths[row["event_id"]] = sum(paths[r["event_id"]] for r in later) or 1
        continued |= {r["event_id"] for r in later}
    trends = sum(n for event, n in paths.items() if event not in continued)
    assert 100 < trends < 10_000


def test_stock_identities() -> None:
    table = stock(20, companies=10)
    assert table["id"].equals(table["companyID"])
    assert set(table["id"].to_pylist()) == set(range(1, 11))
    assert {"Google", "name1", "name2", "name3", "name4"} <= set(table["name"].to_pylist())
    assert "600210" in table["code"].to_pylist()
    assert len({tuple(r.values()) for r in table.select(["id", "name", "code"]).to_pylist()}) == 10


def test_stock_tick_is_ts() -> None:
    table = stock(300, rate=0.5)
    start = pa.scalar("2024-01-01T00:00:00Z").cast(TIME).cast(INT).as_py() // 1_000_000
    assert (seconds(table) - start).tolist() == table["tick"].to_pylist()
    assert table["tick"][-1].as_py() == pytest.approx(600, rel=0.3)


def test_stock_prices_walk_in_cents_above_zero() -> None:
    table = stock(200_000, companies=2)
    price = table["price"].to_numpy()
    assert (price > 0).all()
    assert (np.round(price, 2) == price).all()
    one = price[table["id"].to_numpy() == 1]
    assert np.abs(np.diff(np.log(one))).max() < 0.05
    assert (np.diff(one) > 0).mean() == pytest.approx(0.5, abs=0.05)
    assert pc.min(table["volume"]).as_py() > 0


def test_activity_persons_types_and_rises() -> None:
    table = activity(5000, persons=4)
    assert set(table["personID"].to_pylist()) == {1, 2, 3, 4}
    assert set(table["type"].to_pylist()) == {"passive", "active"}
    ends = pc.min_max(table["rate"]).as_py()
    assert 45 <= ends["min"] < ends["max"] <= 200
    passive = table.filter(pc.equal(table["type"], "passive"))
    assert pc.max(passive["rate"]).as_py() > 100


@every_kind
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"events": -1}, "`events` must be at least 0, not -1."),
        ({"events": 1.5}, "`events` must be a whole number, not 1.5."),
        ({"events": 5, "seed": -1}, "`seed` must be at least 0, not -1."),
        ({"events": 5, "rate": 0}, "`rate` must be a number above 0, not 0."),
        ({"events": 5, "rate": float("nan")}, "`rate` must be a number above 0, not nan."),
        ({"events": 5, "rate": "x"}, "`rate` must be a number, not 'x'."),
        (
            {"events": 5, "rate": 1e-12},
            "So many events at this rate reach beyond the year 9999.\nRaise `rate`.",
        ),
        (
            {"events": 5, "start": "soon"},
            "`start` must be a time such as 2024-01-01T00:00:00, not 'soon'.",
        ),
    ],
)
def test_options_that_make_no_sense(kind: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        generate_table(kind, **options)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("kite", {"accounts": 1}, "`accounts` must be at least 2, not 1."),
        ("kite", {"covered": 1.5}, "`covered` must be a number from 0 to 1, not 1.5."),
        ("kite", {"chains": -0.1}, "`chains` must be a number from 0 to 1, not -0.1."),
        ("kite", {"type_spelling": "x"}, "`type_spelling` must be `not covered` or `notcovered`, not `x`."),
        ("stock", {"companies": 0}, "`companies` must be at least 1, not 0."),
        ("activity", {"persons": 0}, "`persons` must be at least 1, not 0."),
        ("kite", {"acounts": 3}, "`kite` has no option `acounts`.\nDid you mean `accounts`?"),
        ("stock", {"zzz": 3}, "`stock` has no option `zzz`.\nIts options: companies, rate, start."),
        ("stocks", {}, "There is no kind `stocks` of sample stream.\nDid you mean `stock`?"),
        (
            "x",
            {},
            "There is no kind `x` of sample stream.\nKnown kinds: kite, stock, activity, zipf, laundering, social.",
        ),
    ],
)
def test_unknown_kinds_and_options(kind: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        generate_table(kind, 5, **options)
    assert str(caught.value) == sentence


@every_kind
def test_every_option_has_a_simple_type_a_default_and_help(kind: str) -> None:
    for option in options_of(kind):
        assert option.type in (int, float, str)
        assert isinstance(option.default, option.type)
        assert option.help.endswith(".")


def test_names_come_by_their_ranks() -> None:
    names = KINDS["zipf"](40_000, 3, names=30)["name"].to_pylist()
    shares = [names.count(name) / len(names) for name in ("A", "B", "C", "AD")]
    total = sum(1 / rank for rank in range(1, 31))
    assert shares == pytest.approx([1 / total, 1 / 2 / total, 1 / 3 / total, 1 / 30 / total], abs=0.01)
    assert set(KINDS["zipf"](50, 3, names=1)["name"].to_pylist()) == {"A"}
