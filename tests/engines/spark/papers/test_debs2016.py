"""The DEBS 2016 queries as streams: the lines of a run over whole files, in batches, and through a restart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trellis.engines.spark.papers.debs2016 import LineStream, written_lines
from trellis.errors import UsageError
from trellis.io.generate.social import lines_of, social
from trellis.papers.debs2016 import QueryOutput, communities, posts

TABLES = social(1500, 3, users=40, rate=150.0)
FILES = {name: lines_of(table) for name, table in TABLES.items()}
# What does not belong there must be counted just the same, and bytes that are not UTF-8 go through.
FILES["comments"] = FILES["comments"].replace(b"maybe", b"\xff\xfe\r", 5) + b"nonsense\n"
_, *_, last = FILES["friendships"].splitlines(keepends=True)
FILES["friendships"] = last + FILES["friendships"][: -len(last)] + b"bad\n"
QUERIES: dict[str, dict[str, Any]] = {"posts": {"k": 2}, "communities": {"k": 3, "d": 5 * 86_400}}


def whole(query: str) -> QueryOutput:
    if query == "posts":
        return posts(FILES["posts"], FILES["comments"], **QUERIES[query])
    return communities(FILES["friendships"], FILES["comments"], FILES["likes"], **QUERIES[query])


def sources(query: str) -> tuple[str, ...]:
    return ("posts", "comments") if query == "posts" else ("friendships", "comments", "likes")


def arrive(folder: Path, query: str, parts: int, which: list[int]) -> dict[str, str]:
    """Let some parts of each file arrive; friendships are out of order, and so come with the first."""
    for name in sources(query):
        (folder / name).mkdir(exist_ok=True)
        lines = FILES[name].splitlines(keepends=True)
        size = len(lines) if name == "friendships" else -(-len(lines) // parts)
        for part in which:
            path = folder / name / f"{part:03}.dat"
            path.write_bytes(b"".join(lines[part * size : (part + 1) * size]))
            os.utime(path, (1_700_000_000 + part, 1_700_000_000 + part))
    return {name: str(folder / name) for name in sources(query)}


def stream(spark: Any, folder: Path, query: str, given: dict[str, str], **more: Any) -> LineStream:
    places = {"out": str(folder / "out"), "checkpoint": str(folder / "checkpoint")}
    return LineStream(spark, query, QUERIES[query], given, available_now=True, **places, **more)


def uncommit(folder: Path) -> None:
    """Have Spark not know that its last batch is done."""
    last = max((folder / "checkpoint" / "spark" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()


@pytest.mark.parametrize("query", QUERIES)
def test_a_stream_and_its_restart_give_the_lines_of_whole_files(spark: Any, query: str, tmp_path: Path) -> None:
    given = arrive(tmp_path, query, 4, [0, 1])
    one = stream(spark, tmp_path, query, given, files_a_batch=1)
    one.start()
    one.wait()
    one.flush()
    expected = whole(query)
    early = written_lines(str(tmp_path / "out"))
    assert early
    assert early != expected.output
    arrive(tmp_path, query, 4, [2, 3])
    # As if the process had ended before Spark took note of the last batch: it comes again.
    uncommit(tmp_path)
    again = stream(spark, tmp_path, query, given)
    again.start()
    again.wait()
    engine = again.flush()
    assert written_lines(str(tmp_path / "out")) == expected.output
    assert (engine.bad, engine.events, engine.lines) == (expected.bad, expected.events, expected.lines)


def test_a_batch_that_was_cut_off_is_done_again(spark: Any, tmp_path: Path) -> None:
    given = arrive(tmp_path, "posts", 3, [0])
    one = stream(spark, tmp_path, "posts", given)
    one.start()
    one.wait()
    # Its lines and its state are there, but neither log knows of it.
    (tmp_path / "out" / "_log" / "000000000.json").unlink()
    uncommit(tmp_path)
    arrive(tmp_path, "posts", 3, [1, 2])
    again = stream(spark, tmp_path, "posts", given)
    again.start()
    again.wait()
    again.flush()
    assert written_lines(str(tmp_path / "out")) == whole("posts").output


def test_a_silent_source_holds_up_the_others_unless_there_is_a_delay(spark: Any, tmp_path: Path) -> None:
    given = arrive(tmp_path, "posts", 1, [0])
    for path in Path(given["comments"]).iterdir():
        path.unlink()
    for delay, lines in ((None, 0), (86_400_000, 1)):
        folder = tmp_path / str(delay)
        one = stream(spark, folder, "posts", given, delay=delay)
        one.start()
        one.wait()
        assert (len(written_lines(str(folder / "out"))) > 0) == bool(lines)


def test_what_belongs_to_another_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    given = arrive(tmp_path, "posts", 1, [0])
    one = stream(spark, tmp_path, "posts", given)
    one.start()
    one.wait()
    one.options["k"] = 7
    with pytest.raises(UsageError, match="another stream: its options"):
        one.start()
    one.checkpoint = tmp_path / "new"
    with pytest.raises(UsageError, match="output of another stream"):
        one.start()
    one.checkpoint = Path(given["posts"])
    with pytest.raises(UsageError, match="no checkpoint"):
        one.start()
    with pytest.raises(UsageError, match="no directory"):
        stream(spark, tmp_path, "posts", {**given, "posts": str(tmp_path / "none")})
