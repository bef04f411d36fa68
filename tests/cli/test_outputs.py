"""`--out` and `--overwrite`: nothing is destroyed that Trellis did not write, whatever a user names and kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import trellis
from tests.cli.cases import PRICES, RISING, assert_mistake, names_in, run, run_local, run_process, start
from trellis.errors import UsageError
from trellis.io.claims import claimed
from trellis.io.generate import generate_table
from trellis.io.outputs import LIST, read_list, uncounted
from trellis.io.sources import expand
from trellis.io.write import write_table
from trellis.streams.stream_output import RESULTS, StreamOutput

OUTPUT = [LIST, "part-00000.parquet"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the project `proj`, whose events lie in `proj/in`."""
    (tmp_path / "proj" / "in").mkdir(parents=True)
    (tmp_path / "proj" / "in" / "prices.csv").write_text(PRICES)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Everything below a folder, hidden files too."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return found | {str(p.relative_to(folder)): b"/" for p in folder.rglob("*") if p.is_dir()}


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize("command", ["detect", "count"])
@pytest.mark.parametrize(
    ("events", "out", "said"),
    [
        ("../proj/in", "../proj/in", "is the input `../proj/in`"),
        ("../proj/in/prices.csv", "../proj/in/", "holds the input"),
        ("../proj/in", "../proj", "holds the input `../proj/in`"),
        ("../proj/in", "../proj/in/results", "lies in the input `../proj/in`"),
        ("../proj/in", "../proj/in/deep/results", "lies in the input"),
        ("../proj/*/*.csv", "../proj", "holds the input"),
        ("../proj/*", "../proj/results", "lies among the files of the input `../proj/*`"),
        ("../proj/**/*.csv", "../proj/in/results", "lies among the files of the input"),
        ("../linked", "../proj/in", "is the input `../linked`"),
        ("../linked", "../proj", "holds the input `../linked`"),
        ("../linked", "../proj/in/new", "lies in the input `../linked`"),
        ("../links", "../proj/in", "holds the input `../links`"),
        ("../proj/in", "../linked", "is a link to"),
        ("../proj/in", "../linked/new", "lies in the input"),
        ("../proj/in", "../nowhere", "is a link to"),
        ("../proj/in", ".", "is the working directory or holds it"),
        ("../proj/in", "..", "is the working directory or holds it"),
        ("../proj/in", "../work", "is the working directory or holds it"),
        ("../proj/in", "../work/../work/.", "is the working directory or holds it"),
        ("../proj/in", "", "the output has no name"),
        ("../proj/in", "/", "is the root of a file system"),
        ("../proj/in", "~", "is or holds the home directory"),
        ("../proj/in", "~/..", "is or holds the home directory"),
    ],
)  # fmt: skip
def test_places_that_are_refused(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, command: str, events: str,
    out: str, said: str, overwrite: tuple[str],
) -> None:  # fmt: skip
    (here / "linked").symlink_to(here / "proj" / "in")
    (here / "links").mkdir()
    (here / "links" / "prices.csv").symlink_to(here / "proj" / "in" / "prices.csv")
    (here / "nowhere").symlink_to(here / "missing")
    (here / "homes" / "me").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(here / "homes" / "me"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    before = contents(here)
    assert_mistake(run_local(command, RISING, events, "--out", os.path.expanduser(out), *overwrite), said)
    assert contents(here) == before


def test_events_by_type_are_inputs_too(here: Path) -> None:
    shutil.copytree(here / "proj" / "in", here / "other")
    query = "PATTERN SEQ(A a, B b)"
    given = ("--events", f"A={here / 'proj' / 'in'}", "--events", f"B={here / 'other'}")
    for place, said in (("other", "is the input"), ("other/new", "lies in the input"), ("proj", "holds the input")):
        done = run_local("detect", query, *given, "--event-id", "event_id", "--out", here / place, "--overwrite")
        assert_mistake(done, said)
    assert names_in(here / "other") == names_in(here / "proj" / "in") == ["prices.csv"]


def test_an_output_beside_the_input_and_a_rerun_work(here: Path) -> None:
    for events in (here / "proj" / "in", here / "proj" / "in" / "*.csv"):
        for _ in range(2):
            assert run_local("detect", RISING, events, "--out", here / "proj" / "out", "--overwrite").code == 0
            assert names_in(here / "proj") == ["in", "out"]
    beside = here / "proj" / "in" / "out"  # the input is the file, and not its folder
    for _ in range(2):
        done = run_local("detect", RISING, here / "proj" / "in" / "prices.csv", "--out", beside, "--overwrite")
        assert done.code == 0, done.err
    assert names_in(beside) == OUTPUT
    assert pq.read_table(beside).num_rows == 2
    assert run_local("detect", RISING, here / "proj" / "in" / "prices.csv", "--out", "new/deep/out").code == 0
    assert names_in(here / "work" / "new" / "deep") == ["out"]


def _mine(out: Path) -> None:
    (out / "mine.txt").write_text("mine")


def _folder(out: Path) -> None:
    (out / "sub").mkdir()


def _hidden(out: Path) -> None:
    (out / ".hidden").write_text("mine")


def _changed(out: Path) -> None:
    with (out / "part-00000.parquet").open("ab") as file:
        file.write(b"more")


def _linked(out: Path) -> None:
    (out / "part-00000.parquet").unlink()
    (out / "part-00000.parquet").symlink_to(out / LIST)


def _unlisted(out: Path) -> None:
    (out / LIST).unlink()


def _damaged(out: Path) -> None:
    (out / LIST).write_text("{")


def _later(out: Path) -> None:
    (out / LIST).write_text((out / LIST).read_text().replace('"version": 1', '"version": 2'))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_mine, "holds `mine.txt`, which Trellis did not write"),
        (_folder, "holds `sub`, which Trellis did not write"),
        (_hidden, "holds `.hidden`, which Trellis did not write"),
        (_changed, "`part-00000.parquet`, which was changed since"),
        (_linked, "holds `part-00000.parquet`, which Trellis did not write"),
        (_unlisted, "no list of files that Trellis wrote"),  # as the version before wrote them
        (_damaged, "is not a list of the files"),
        (_later, "is of another version of Trellis"),
    ],
)
def test_what_trellis_did_not_write_is_not_replaced(prices: Path, change: Callable[[Path], None], said: str) -> None:
    out = prices.parent / "out"
    assert run_local("detect", RISING, prices, "--out", out).code == 0
    change(out)
    before = contents(prices.parent)
    assert_mistake(run_local("detect", RISING, prices, "--out", out, "--overwrite"), said)
    assert_mistake(run_local("count", RISING, prices, "--out", out, "--overwrite"), said)
    assert contents(prices.parent) == before


def test_outputs_of_the_version_before_are_still_read(prices: Path) -> None:
    out = prices.parent / "out"
    assert run_local("detect", RISING, prices, "--out", out).code == 0
    _unlisted(out)
    done = run_local("count", "PATTERN R+ r[]", out, "--time", "start_time", "--event-id", "rank", "--quiet")
    assert (done.code, done.out) == (0, "2\n"), done.err


def test_an_output_is_refused_before_the_events_are_read(here: Path) -> None:
    (here / "bad.csv").write_text("ts,price\n1\n")
    done = run_local("detect", RISING, here / "bad.csv", "--out", here / "proj", "--overwrite")
    assert_mistake(done, "no list of files")


def test_a_full_list_of_refusals_for_single_files(here: Path) -> None:
    events = here / "proj" / "in" / "prices.csv"
    (here / "link.csv").symlink_to(events)
    make = ("generate", "stock", "--events", "10", "--overwrite", "--out")
    assert_mistake(run(*make, here / "link.csv"), "is a link to")
    assert_mistake(run(*make, here / "proj"), "")
    os.mkfifo(here / "pipe.csv")
    assert_mistake(run(*make, here / "pipe.csv"), "is not a plain file")
    assert (here / "pipe.csv").is_fifo()
    assert events.read_text() == PRICES
    assert run(*make, here / "new.csv").code == 0
    assert run(*make, here / "new.csv").code == 0
    assert names_in(here) == ["link.csv", "new.csv", "pipe.csv", "proj", "work"]


def test_lines_of_a_graph_do_not_replace_its_files(tmp_path: Path) -> None:
    assert run("generate", "social", "--events", "100", "--out", tmp_path / "net").code == 0
    before = contents(tmp_path)
    (tmp_path / "posts").symlink_to(tmp_path / "net" / "posts.dat")
    for posts in (tmp_path / "net" / "posts.dat", tmp_path / "posts"):
        given = ("--posts", posts, "--comments", tmp_path / "net" / "comments.dat")
        done = run("graph", "posts", *given, "--out", tmp_path / "net" / "posts.dat", "--overwrite")
        assert_mistake(done, "is the input")
    (tmp_path / "posts").unlink()
    assert contents(tmp_path) == before
    (tmp_path / "net" / "mine").write_text("mine")
    done = run("generate", "social", "--events", "100", "--out", tmp_path / "net", "--overwrite")
    assert_mistake(done, "holds `mine`, which Trellis did not write")


def test_an_archive_lies_apart_from_its_events(here: Path) -> None:
    given = ("--time", "ts", "--type", "code", "--event-id", "event_id")
    for place in ("proj", "proj/in/archive"):
        done = run("archive", "build", here / "proj" / "in", "--archive", here / place, *given)
        assert_mistake(done, "the input")
    assert names_in(here / "proj") == ["in"]


def test_a_benchmark_replaces_only_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "startup.md").write_text("my notes")
    done = run("bench", "startup", "--quick", "--out", tmp_path)
    assert_mistake(done, "startup.md was not written by Trellis")
    assert names_in(tmp_path) == ["startup.md"]


# --- Two at once, and what is left of the killed -----------------------------------------------------------------


def test_two_writers_of_one_output(prices: Path) -> None:
    out = prices.parent / "out"
    with claimed(out):
        done = run_local("detect", RISING, prices, "--out", out)
        assert_mistake(done, f"process {os.getpid()} on ", "is writing the output", "Wait for its end")
    assert run_local("detect", RISING, prices, "--out", out).code == 0
    assert names_in(prices.parent) == ["out", "prices.csv"]


@pytest.mark.parametrize("left", ["new", "next", "old"])
def test_what_a_killed_run_left_behind_is_removed(prices: Path, left: str) -> None:
    out, work = prices.parent / "out", prices.parent / ".out.trellis"
    for _ in range(2):
        if out.exists():
            shutil.copytree(out, work / left)
            (work / "lock").write_text("process 1 on nowhere")
        assert run_local("detect", RISING, prices, "--out", out, "--overwrite").code == 0
        assert names_in(prices.parent) == ["out", "prices.csv"]


def test_an_output_that_was_renamed_aside_comes_back(prices: Path) -> None:
    out, work = prices.parent / "out", prices.parent / ".out.trellis"
    assert run_local("detect", RISING, prices, "--out", out).code == 0
    before = contents(out)
    work.mkdir()
    out.rename(work / "old")
    missing = run_local("count", "PATTERN R+ r[]", out)
    assert_mistake(missing, "There is no file", "was being replaced when a run was killed", f"{work / 'old'}")
    done = run_local("detect", RISING, prices, "--out", out)
    assert done.code == 2
    told, _, error = done.err.partition("\n")
    assert told.startswith("warning: the output")
    assert told.endswith("it has been restored")
    assert error.startswith(f"error: the output `{out}` exists")
    assert contents(out) == before
    assert names_in(prices.parent) == ["out", "prices.csv"]


def test_a_stranger_in_what_is_left_is_not_removed(prices: Path) -> None:
    out, work = prices.parent / "out", prices.parent / ".out.trellis"
    assert run_local("detect", RISING, prices, "--out", out).code == 0
    shutil.copytree(out, work / "old")
    (work / "old" / "mine").write_text("mine")
    done = run_local("detect", RISING, prices, "--out", out, "--overwrite")
    assert_mistake(done, "holds `mine`, which Trellis did not write", f"remove {work / 'old'}")
    assert (work / "old" / "mine").read_text() == "mine"


# Each of these may be the last that a process does.
STEPS = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "ftruncate", "open")


def killed_at(step: int, target: Path, text: str, exchange: bool) -> bool:
    """Replace an output in a process of its own that dies before a step; return whether it was done before."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    import trellis.io.outputs as outputs

    left = step

    def dying(work: Callable[..., object]) -> Callable[..., object]:
        def do(*arguments: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*arguments, **options)

        return do

    try:
        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        swap = outputs.exchanged if exchange else lambda *_: False
        outputs.exchanged = dying(swap)  # type: ignore[assignment]
        with claimed(target, overwrite=True) as output, output.replacing() as directory:
            for number in range(2):
                (directory / f"part-0000{number}.json").write_text(text)
        os._exit(0)
    finally:
        os._exit(1)


def whole(target: Path) -> str:
    """Return what an output holds; fail if it is not whole."""
    listed = read_list(target)
    assert listed is not None
    assert {*names_in(target)} - uncounted(target) - {f"{LIST}.tmp"} == {LIST, *listed}
    (text,) = {source.path.read_text() for source in expand(target)}
    return text


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    """A file system that does not rename the directory `out`, which holds an output."""
    with claimed(tmp_path / "lower" / "out") as output, output.replacing() as directory:
        (directory / "part-00000.json").write_text("the first")
    places = [f"{name}dir={tmp_path / name}" for name in ("lower", "upper", "work")]
    for name in ("upper", "work", "merged"):
        (tmp_path / name).mkdir()
    options = ",".join([*places, "redirect_dir=off"])
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "-o", options, "overlay", tmp_path / "merged"], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root may mount an overlay")
    try:
        yield tmp_path / "merged"
    finally:
        subprocess.run(["umount", tmp_path / "merged"], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [True, False])
def test_a_kill_before_any_step_leaves_a_whole_output(tmp_path: Path, exchange: bool) -> None:
    with claimed(tmp_path / "out") as output, output.replacing() as directory:
        (directory / "part-00000.json").write_text("the first")
    assert_whole_whenever_killed(tmp_path / "out", exchange, 0 if exchange else 1)


@pytest.mark.slow
def test_a_kill_before_any_step_where_directories_are_not_renamed(overlay: Path) -> None:
    with pytest.raises(OSError, match="cross-device"):
        os.rename(overlay / "out", overlay / "other")
    assert_whole_whenever_killed(overlay / "out", True, 0)


def test_an_ordinary_rerun_where_directories_are_not_renamed(prices: Path, overlay: Path) -> None:
    for _ in range(2):
        done = run_local("detect", RISING, prices, "--out", overlay / "out", "--overwrite", "--format", "json")
        assert done.code == 0, done.err
        assert len(names_in(overlay / "out")) == 2
        assert names_in(overlay) == ["out"]
        again = run_local(
            "count", "PATTERN R+ r[]", overlay / "out", "--time", "start_time", "--event-id", "rank", "--json"
        )
        assert json.loads(again.out)["events"] == 2


def assert_whole_whenever_killed(target: Path, exchange: bool, most_absent: int) -> None:
    """Kill replacements of an output before their first step, their second, and so on."""
    held, absent = whole(target), 0
    for step in range(1000):
        text = f"the one of step {step}"
        done = killed_at(step, target, text, exchange)
        if target.exists():
            assert whole(target) in (held, text)
        else:
            absent += 1
        with (
            pytest.warns(UserWarning, match="restored") if not target.exists() else contextlib.nullcontext(),
            claimed(target, overwrite=True),
        ):
            assert whole(target) in (held, text)  # whatever happened, the next run finds one whole output
        held = whole(target)
        assert names_in(target) == sorted([LIST, *(read_list(target) or ())])
        assert names_in(target.parent) == ["out"]
        if done:
            assert held == text
            break
    assert step > 20
    assert absent == most_absent


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_command_that_is_killed_leaves_a_whole_output(tmp_path: Path, seed: int) -> None:
    events, out = tmp_path / "events.parquet", tmp_path / "out"
    write_table(generate_table("stock", 2000, 1, rate=0.05), events)
    query = "PATTERN s+ s[] WHERE [companyID] AND s[i].price > s[i-1].price WITHIN 60 seconds SLIDE 20 seconds"
    command = ("detect", query, events, "--engine", "local", "--out", out, "--overwrite", "--quiet")
    assert run_process(*command).code == 0
    rows = pq.read_table(out).num_rows
    chance = random.Random(seed)
    process = start(*command)
    work = tmp_path / ".out.trellis"
    while not work.exists() and process.poll() is None:
        time.sleep(0.001)
    if seed % 2:  # about when files are written and names change
        while not (work / "new").exists() and process.poll() is None:
            time.sleep(0.0001)
        time.sleep(chance.random() * 0.05)
    else:
        time.sleep(chance.random() * 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert pq.read_table(out).num_rows == rows
    assert run_process(*command).code == 0
    assert names_in(tmp_path) == ["events.parquet", "out"]
    assert names_in(out) == OUTPUT
    assert pq.read_table(out).num_rows == rows


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for very little."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_full_disk_leaves_the_old_output_whole(prices: Path, small_disk: Path, format: str) -> None:
    out = small_disk / "out"
    assert run_local("detect", RISING, prices, "--out", out, "--format", format).code == 0
    before = contents(small_disk)
    many = prices.parent / "many.parquet"
    write_table(generate_table("stock", 3000, 1, rate=0.05), many)
    query = (
        "PATTERN s+ s[] WHERE [companyID] AND s[i].price > s[i-1].price REPORT any WITHIN 5 minutes SLIDE 20 seconds"
    )
    options = ("--out", out, "--overwrite", "--format", format, "--max-trends", "1000000000", "--limit", "500000")
    done = run_local("detect", query, many, *options)
    assert_mistake(done, "No space left on device", "Free some space")
    assert contents(small_disk) == before


def test_a_full_disk_leaves_an_old_file_whole(small_disk: Path) -> None:
    make = ("generate", "stock", "--overwrite", "--out", small_disk / "events.csv")
    assert run(*make, "--events", "10").code == 0
    before = contents(small_disk)
    assert_mistake(run(*make, "--events", "100000"), "no space left on device")
    assert contents(small_disk) == before


def test_a_stream_removes_no_files_of_others(tmp_path: Path) -> None:
    theirs = [
        "part-00000-0f2c1a3e-9c1d-4a53-8d7e-0a1b2c3d4e5f-c000.snappy.parquet",
        "part-1-mine.csv",
        "part-flush-mine",
    ]
    for name in (*theirs, f"part-000000003-0-{'0f' * 16}.parquet"):
        (tmp_path / name).write_text("")
    StreamOutput(tmp_path).prepare([RESULTS])
    assert names_in(tmp_path) == ["_log", *theirs]  # what a killed batch wrote is gone


# --- Python ------------------------------------------------------------------------------------------------------


def test_python_leaves_its_inputs_alone(here: Path) -> None:
    events = here / "proj" / "in"
    for data in (str(events), [events / "prices.csv"]):
        trends = trellis.query(RISING).detect(data, engine="local", event_id="event_id")
        with pytest.raises(UsageError, match=r"is the input|holds the input"):
            trends.write(str(events), overwrite=True)
    assert names_in(events) == ["prices.csv"]
    trends.write(here / "out", overwrite=True)
    trends.write(here / "out", overwrite=True)
    assert names_in(here / "out") == OUTPUT
