"""What is printed is shown and never obeyed: control characters, marks of direction, and formulas in CSV."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.cases import COMMAND, assert_mistake, run, run_local
from trellis.cli.console import shown, shown_in_line
from trellis.io.read import read_table
from trellis.io.spreadsheets import GUARD

EVIL = "a\x1b[31mb\u202ec\x07d\re\x9bf\ng\th\x7f\u2066\u200f\x00\b"
SEEN = "a\\u001b[31mb\\u202ec\\u0007d\\u000de\\u009bf\\ng\\th\\u007f\\u2066\\u200f\\u0000\\u0008"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NAME = EVIL.replace("\n", "")  # as a query can say it
ALL = "PATTERN E+ s[] REPORT any"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Events whose names and values hold everything that a terminal obeys."""
    file = tmp_path / "events.parquet"
    table = pa.table({"ts": [1, 2, 3], "id": [f"{EVIL}{i}" for i in range(3)], "x": [1, 2, 3], NAME: ["=1", EVIL, "-"]})
    pq.write_table(table, file)
    return file


def seen(text: str) -> str:
    """Check that a terminal obeys nothing of a text but its ends of lines."""
    assert not OBEYED.search(text), ascii(text)
    return text


@given(st.text() | st.text(alphabet=list(EVIL + "\ud800\u2028\u061c")))
def test_every_character_is_shown(text: str) -> None:
    seen(shown_in_line(text))
    assert "\n" not in shown_in_line(text)
    assert shown(shown(text)) == shown(text)
    assert json.loads(shown(json.dumps(text, ensure_ascii=False))) == text


def test_tables(events: Path) -> None:
    for command in ("detect", "count"):
        done = run_local(command, f"PATTERN E+ s[] WHERE [x] RETURN FIRST(s).`{NAME}` AS v", events, "--event-id", "id")
        assert done.code == 0, done.err
        seen(done.out)
        seen(done.err)
    done = run_local("detect", ALL, events, "--event-id", "id")
    assert "a\\u001b[31mb\\u202ec" in seen(done.out)
    done = run_local("detect", f"{ALL} AGGREGATE count(*), max(s.id)", events, "--event-id", "id")
    assert "\\u202e" in seen(done.out)


def test_messages(events: Path, tmp_path: Path) -> None:
    for done in (
        run_local("detect", "PATTERN E+ s[] WHERE s.nothing > 1", events),  # names the columns
        run_local("detect", f"PATTERN E+ s[] WHERE s.`{NAME}` > 1", events),
        run_local("detect", ALL, tmp_path / EVIL.replace("\x00", "")),
        run_local("detect", ALL, events, "--time", EVIL),
        run_local("detect", ALL, events, "--event-id", f"{EVIL}?"),
        run_local("detect", ALL, events, "--param", EVIL),
        run_local("detect", ALL, events, "--format", EVIL),
        run_local("detect", f"PATTERN E+ s[] WHERE s.x = '{EVIL}", events),
        run_local("detect", ALL, events, "--out", f"{events}/{EVIL}".replace("\x00", "")),
        run("archive", "info", "--archive", tmp_path / EVIL.replace("\x00", "")),
    ):
        assert_mistake(done)
        seen(done.err)
        assert "\\u202e" in done.err


def test_a_repeated_id_is_shown(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1, 2], "id": [EVIL, EVIL]}), tmp_path / "twice.parquet")
    done = run_local("count", ALL, tmp_path / "twice.parquet", "--event-id", "id")
    assert_mistake(done, SEEN)
    seen(done.err)
    assert done.err.count("\n") <= 2


def test_explain_and_summaries(events: Path) -> None:
    query = "PATTERN E+ s[] WHERE s.id != '\x1b[2J\u202e' RETURN s.id AS `\u202ex`"
    for more in ((), (events,)):
        done = run_local("explain", query, *more) if more else run("explain", query)
        assert done.code == 0, done.err
        assert "\\u001b[2J\\u202e" in seen(done.out)
        told = run_local("explain", query, *more, "--json") if more else run("explain", query, "--json")
        assert json.loads(seen(told.out))["output"][-1]["name"] == "\u202ex"
    done = run_local("detect", query, events, "--event-id", "id", "--json")
    assert "\u202e" in json.loads(seen(done.out))["query"]


def test_on_a_terminal(events: Path, tmp_path: Path) -> None:
    """The colours of a terminal are there, and nothing of the events."""
    main, side = pty.openpty()
    out = tmp_path / "out\x1b]0;title\x07"
    command = [*COMMAND, "detect", ALL, str(events), "--event-id", "id", "--engine", "local", "--out", str(out)]
    process = subprocess.Popen(command, stdout=side, stderr=side, env=os.environ | {"TERM": "xterm", "COLUMNS": "300"})
    os.close(side)
    told = b""
    while True:
        try:
            block = os.read(main, 4096)
        except OSError:
            break
        if not block:
            break
        told += block
    assert process.wait() == 0
    text = told.decode()
    assert "\\u001b[31mb" in text
    assert "\\u001b]0;title\\u0007" in text
    assert not re.search("\x1b\\[31mb|\x1b\\]|\x07|\x9b|\u202e|\x00|\x7f|\b", text)


# --- Spreadsheets ------------------------------------------------------------------------------------------------


@pytest.fixture
def formulas(tmp_path: Path) -> Path:
    """Events with texts that a spreadsheet computes."""
    file = tmp_path / "formulas.csv"
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows(
            [["ts", "id", "k", "x"], [1, "e1", "=1+1", -5], [2, "e2", "@a", -6], [3, "e3", "'=b", 7]]
        )
    return file


@pytest.mark.parametrize("raw", [(), ("--raw-csv",)])
def test_csv_fields_are_shown_by_a_spreadsheet(formulas: Path, raw: tuple[str, ...]) -> None:
    query = "PATTERN E+ s[] WHERE [k] RETURN FIRST(s).k AS `=k`, FIRST(s).x AS x"
    out = formulas.parent / "out"
    done = run_local("detect", query, formulas, "--event-id", "id", "--out", out, "--format", "csv", *raw)
    assert done.code == 0, done.err
    with (out / "part-00000.csv").open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    guard = "" if raw else GUARD
    place = header.index(f"{guard}=k")
    assert sorted(row[place] for row in rows) == sorted(["'=b", f"{guard}=1+1", f"{guard}@a"])
    assert sorted(row[header.index("x")] for row in rows) == ["-5", "-6", "7"]
    assert sorted(read_table(out)["=k"].to_pylist()) == ["'=b", "=1+1", "@a"]
    # What was written is read as events by a query.
    again = run_local("detect", "PATTERN R+ r[] WHERE r.`=k` = '=1+1'", out, "--time", "start_time", "--json")
    assert json.loads(again.out)["results"] == "1"


def test_raw_csv_is_for_csv(formulas: Path) -> None:
    out = formulas.parent / "out"
    assert_mistake(run_local("detect", ALL, formulas, "--out", out, "--raw-csv"), "raw CSV", "the format is parquet")
    assert_mistake(run_local("count", ALL, formulas, "--raw-csv"), "--raw-csv is for --out")


@pytest.mark.slow
def test_spark_writes_the_same_csv(formulas: Path) -> None:
    query = "PATTERN E+ s[] WHERE [k] RETURN FIRST(s).k AS `=k`, FIRST(s).x AS x"
    found = {}
    for engine in ("local", "spark"):
        out = formulas.parent / engine
        done = run("detect", query, formulas, "--event-id", "id", "--out", out, "--format", "csv", "--engine", engine)
        assert done.code == 0, done.err
        found[engine] = sorted(line for file in out.glob("part-*") for line in file.read_text().splitlines())
    assert set(found["local"]) == set(found["spark"])


# --- Standard input, short help, completion, all columns --------------------------------------------------------


def piped(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the real command, `python -m trellis`, with a text as its standard input."""
    command = [sys.executable, "-m", "trellis", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=500, check=False)


def test_standard_input_is_events_or_the_query(prices: Path) -> None:
    done = piped(prices.read_text(), "detect", ALL, "-", "--engine", "local", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["results"], len(told["rows"])) == ("7", 7)
    assert told["rows"][1]["events"] == [0, 1]
    done = piped("\ufeff" + ALL, "count", "-", prices, "--engine", "local", "--quiet")
    assert (done.returncode, done.stdout) == (0, "7\n")
    done = piped("", "detect", ALL, "-", "--engine", "local")
    assert (done.returncode, done.stderr) == (
        2,
        "error: standard input is empty: it has no events\nSend some: `cat events.csv | trellis detect QUERY -`.\n",
    )
    done = piped(ALL, "detect", "-", "-", "--engine", "local")
    assert (done.returncode, done.stderr) == (
        2,
        "error: standard input cannot be both the query and the events\nName a file for one of them.\n",
    )


def test_short_help_and_completion() -> None:
    assert "Usage" in run("-h").out
    assert "--wide" in run("detect", "-h").out
    environment = {**os.environ, "_TRELLIS_COMPLETE": "complete_bash", "COMP_WORDS": "trellis de", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert {"detect", "demo"} <= set(done.stdout.split())


def test_json_says_how_many_rows_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    pq.write_table(pa.table({"ts": range(11), "x": range(11)}), file)
    told = json.loads(run_local("detect", ALL, file, "--json").out)
    assert (told["results"], len(told["rows"]), told["rows_left_out"]) == ("2047", 1000, "1047")


def test_why_on_the_command_line(prices: Path) -> None:
    rising = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
    done = run("why", rising, prices, "--ids", "1,0")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "a match, but not a result: 0, 1"
    assert_mistake(run("why", rising, prices), "certain events or of a partition")
