"""`trellis explain`: the plan as text and as data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from tests.cli.cases import RISING, assert_mistake, run, run_local
from trellis.cli import costs
from trellis.digits import bytes_text
from trellis.plan.explain import explain_data

EXAMPLES = Path(__file__).parents[2] / "examples"
RATIO = EXAMPLES / "abi_q2_rising_price.tq"
KITING = EXAMPLES / "abi_q1_check_kiting.tq"


def test_explains_a_file() -> None:
    done = run("explain", RATIO, "--param", "ratio=1.05")
    assert done.out == trellis.query(RATIO.read_text()).explain({"ratio": "1.05"}) + "\n"


def test_explains_a_text_and_overrides_report() -> None:
    done = run("explain", RISING, "--report-mode", "maximal")
    assert done.out == trellis.query(RISING).explain(report_mode="maximal") + "\n"


def test_json_is_the_plain_data() -> None:
    done = run("explain", RATIO, "--param", "ratio=1.05", "--json")
    assert json.loads(done.out) == explain_data(trellis.query(RATIO.read_text()).plan(params={"ratio": "1.05"}))


def test_events_add_operator_and_exact_counts(samples: Path) -> None:
    done = run_local("explain", KITING, samples / "kite.parquet", "--event-id", "event_id", "--json")
    told = json.loads(done.out)
    trends = trellis.query(KITING.read_text()).detect(pq.read_table(samples / "kite.parquet"), event_id="event_id")
    assert told["operator"]["engine"] == "local"
    assert told["events"]["trends"] == str(trends.count())
    assert told["events"]["read"] == 300
    assert told["events"]["windows"] == trends.statistics["windows"]
    assert told["identity"] == "column event_id"
    text = run_local("explain", KITING, samples / "kite.parquet", "--event-id", "event_id").out
    assert f"trends: {trends.count():,}" in text
    assert "Operator" in text


def test_events_show_the_index_and_what_listing_would_take(samples: Path) -> None:
    query = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price"
    stock = (samples / "stock.csv", "--event-id", "event_id", "--json")
    told = json.loads(run_local("explain", query, *stock).out)
    assert "n log m" in told["index"]["counting"]
    assert "attribute index (inequality)" in told["operator"]["successors"]
    assert set(told["listing"]) == {"mean_length", "memory", "time", "refused"}
    assert int(told["events"]["trends"]) > 10**8
    maximal = json.loads(run_local("explain", query, *stock, "--report-mode", "maximal").out)
    assert "direct successors by time bisection" in maximal["operator"]["successors"]
    assert float(maximal["listing"]["mean_length"].split()[0]) > 1
    none = json.loads(run_local("explain", f"{query} AND s.price < 0", *stock).out)
    assert none["listing"] == {"trends": "none to list"}


def test_listing_of_what_nobody_lists_is_not_weighed(tmp_path: Path) -> None:
    """Counting remembers less than lengths do: explain tells the count and does not fail for the lengths."""
    rows = "\n".join(f"{i},{i * 7919 % 3001}" for i in range(600))  # counted at once, however slow the machine
    (tmp_path / "events.csv").write_text(f"ts,v\n{rows}\n")
    query, rows = "PATTERN SEQ(T+ a[], T b) WHERE a.v < b.v WITHIN 300", tmp_path / "events.csv"
    told = json.loads(run_local("explain", query, rows, "--time", "ts", "--json").out)
    assert int(told["events"]["trends"]) > 10**50
    assert set(told["listing"]) == {"refused"}


def test_costs_of_any_size_are_told() -> None:
    assert costs.duration_text(Fraction(1, 1000)) == "0.001 seconds"
    assert costs.duration_text(Fraction(7200)) == "2 hours"
    assert costs.duration_text(Fraction(10) ** 40).endswith("e+32 years")
    assert costs.duration_text(Fraction(10) ** 400) == "more than 1e392 years"
    assert bytes_text(999) == "999 bytes"
    assert bytes_text(45_000_000) == "45.0 MB"
    assert bytes_text(10**40) == "1.0e+28 TB"
    assert bytes_text(10**400) == "more than 1e388 TB"


def test_patterns_of_several_variables_tell_what_is_carried(samples: Path) -> None:
    query = "PATTERN SEQ(Stock a, Stock+ b[]) WHERE a.price < b.price WITHIN 2 min SLIDE 2 min"
    told = json.loads(run_local("explain", query, samples / "stock.csv", "--json").out)
    assert told["index"]["carried"] == "carried: a for `a.price < b.price`"
    assert "ts" in told["reads"]
    both = query.replace("Stock a", "Stock+ a[]")
    carried = "the greatest price of a for `a.price < b.price`"
    assert carried in json.loads(run_local("explain", both, "--json").out)["index"]["carried"]
    rising = query.replace("WITHIN", "AND b.price < NEXT(b).price WITHIN")
    assert "nothing else is carried" in run_local("explain", rising, samples / "stock.csv").out
    assert_mistake(run_local("explain", query.replace("a.price", "a.prise"), samples / "stock.csv"), "`prise`", "price")


def test_a_missing_parameter_is_told() -> None:
    assert_mistake(run("explain", RATIO), "`ratio`")


def test_without_events_nothing_heavy_is_imported() -> None:
    code = f"""
import sys
import time
from trellis.cli.main import main
sys.argv = ["trellis", "explain", {str(RATIO)!r}, "--param", "ratio=1.05"]
try:
    main()
except SystemExit as end:
    assert not end.code
assert not {{"pyspark", "numba", "pyarrow", "numpy", "pandas"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=60, env=os.environ)


def test_a_named_algorithm_tells_how_it_works(samples: Path) -> None:
    plain = run("explain", KITING, "--algorithm", "anchor", "--anchors", "3", "--memory-limit", "1G").out
    assert "name: anchor" in plain
    assert "memory limit: 1,073,741,824 bytes" in plain
    given = (KITING, samples / "kite.parquet", "--event-id", "event_id", "--algorithm", "anchor")
    told = json.loads(run_local("explain", *given, "--construction", "dynamic", "--anchors", "3", "--json").out)
    assert told["algorithm"]["construction"] == "dynamic"
    assert told["algorithm"]["anchors"].startswith("3 in the window that stores most")
    assert "8 for each event" in told["algorithm"]["stores"]
    assert_mistake(run("explain", KITING, "--algorithm", "anchors"), "Did you mean `anchor`?")
    assert_mistake(run("explain", KITING, "--algorithm", "dfs", "--anchors", "2"), "no use for anchors")


def test_events_that_take_long_are_not_counted_but_estimated() -> None:
    rng = np.random.default_rng(1)
    events = pa.table({"ts": np.arange(400_000), "id": np.arange(400_000), "x": np.round(rng.random(400_000) * 100, 2)})
    query = trellis.query("PATTERN E+ s[] WHERE ABS(s[i].x - s[i-1].x) < 2 REPORT any")
    assert "trends: " in query.explain(events.slice(0, 500), time="ts", event_id="id")
    seconds = []
    for _ in range(2):  # the first may compile
        begun = time.process_time()
        told = query.explain(events, time="ts", event_id="id")
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 2, "well under a second on a quiet machine; counting takes ten"
    assert "results: not counted here, as that takes long" in told
    assert re.search(r"time: about \d+ (seconds|minutes) to count, by a sample", told)
