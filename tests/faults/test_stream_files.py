"""Files that a stream reads or remembers by are damaged, changed or taken away: it says so, and no row is wrong."""

from __future__ import annotations

import os
import shutil
import time as clock
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.engines.spark.stream.test_stream import (
    RISING,
    batch,
    events,
    found,
    nearly_sorted,
    run,
    stream_of,
    write_files,
)
from trellis.engines.options import RunOptions
from trellis.engines.spark.session.failures import mistake_in
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.engines.spark.stream.spark_log import check_checkpoint, check_files, files_of
from trellis.errors import DataError, TrellisError, UsageError

pytestmark = pytest.mark.spark
BEGUN = 1_700_000_000


# --- What Spark remembers by ------------------------------------------------------------------------------------


def last(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def cut(path: Path, part: float = 0.5) -> None:
    """Keep a part of a file, with no checksum beside it."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def remove(path: Path) -> None:
    path.unlink()
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def cut_state(checkpoint: Path) -> None:
    for path in (checkpoint / "state").rglob("*.zip"):
        cut(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "all of a family": shutil.rmtree,
    "the last commit is empty": lambda at: cut(last(at / "commits"), 0),
    "the last commit is gone": lambda at: remove(last(at / "commits")),
    "the last offsets are cut": lambda at: cut(last(at / "offsets")),
    "the last offsets are gone": lambda at: remove(last(at / "offsets")),
    "offsets and commits are gone": lambda at: (shutil.rmtree(at / "offsets"), shutil.rmtree(at / "commits")),
    "the last list of files is cut": lambda at: cut(last(at / "sources" / "0")),
    "lists of files are gone": lambda at: shutil.rmtree(at / "sources"),
    "metadata are gone": lambda at: remove(at / "metadata"),
    "state is gone": lambda at: shutil.rmtree(at / "state"),
    "state is cut": cut_state,
    "what Trellis knows is cut": lambda at: cut(at.parent / "trellis.json"),
    "what Trellis knows is gone": lambda at: remove(at.parent / "trellis.json"),
}
HARMLESS = ("the last commit is gone",)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_damaged_checkpoint_is_told_and_never_gives_other_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Each damage ends in a sentence, or in the rows of the batch; with other batches than before, too."""
    table = nearly_sorted(events(120), 3)
    write_files(table, tmp_path / "in", 6)
    later = [tmp_path / "in" / f"{i:03}.parquet" for i in (4, 5)]
    for path in later:
        path.rename(tmp_path / path.name)
    run(stream_of(spark, tmp_path, {"q": RISING}), flush=False)
    for path in later:
        (tmp_path / path.name).rename(path)
    kept = tmp_path / "kept"
    for name in ("out", "cp"):
        shutil.copytree(tmp_path / name, kept / name)
    (family,) = (path.name for path in (kept / "cp").iterdir() if path.is_dir())
    for what, damage in DAMAGES.items():
        for name in ("out", "cp"):
            shutil.rmtree(tmp_path / name)
            shutil.copytree(kept / name, tmp_path / name)
        damage(tmp_path / "cp" / family)
        told = told_by(spark, tmp_path)
        if told:
            assert what not in HARMLESS, told
            assert "checkpoint" in told or "cannot be read" in told, what
        else:
            assert found(tmp_path / "out") == batch(RISING, table), what


def told_by(spark: SparkSession, folder: Path) -> str:
    """Go on with a stream, and return what it says if it refuses to."""
    try:
        run(stream_of(spark, folder, {"q": RISING}, files=10))
    except TrellisError as mistake:
        return str(mistake)
    return ""


def test_a_checkpoint_behind_its_output_is_refused(tmp_path: Path) -> None:
    check_checkpoint(tmp_path, None)
    with pytest.raises(DataError, match="it knows of no batch, and batch 3 is done"):
        check_checkpoint(tmp_path, 3)
    noted(tmp_path, [[], [], [], []])
    with pytest.raises(DataError, match="metadata is not there"):
        check_checkpoint(tmp_path, 3)
    (tmp_path / "metadata").write_text('{"id":"1"}')
    check_checkpoint(tmp_path, 3)
    with pytest.raises(DataError, match="it knows batches up to 3, and batch 12 is done"):
        check_checkpoint(tmp_path, 12)


def test_failures_of_a_stream_are_told_in_a_sentence() -> None:
    for said, kind, words in (
        ("java.io.IOException: No space left on device", DataError, "there is no room"),
        ("java.lang.NoClassDefFoundError: org/rocksdb/RocksDBException", UsageError, "keep their state in RocksDB"),
        ("org.apache.spark.SparkException: Python worker failed to connect back.", TrellisError, "is too busy"),
        ("[CANNOT_LOAD_STATE_STORE.CANNOT_READ_CHECKPOINT] An error", DataError, "is damaged or incomplete"),
    ):
        mistake = mistake_in(RuntimeError(said))
        assert isinstance(mistake, kind)
        assert words in str(mistake)
    assert mistake_in(RuntimeError("something else")) is None


# --- Files of events --------------------------------------------------------------------------------------------


def noted(checkpoint: Path, batches: list[list[Path]]) -> None:
    """Write the logs of Spark's as they are after batches of these files; every tenth list is a compacted one."""
    for name in ("offsets", "sources/0"):
        (checkpoint / name).mkdir(parents=True)
    before: list[str] = []
    for number, files in enumerate(batches):
        (checkpoint / "offsets" / str(number)).write_text(f'v1\n{{"conf":{{}}}}\n{{"logOffset":{number}}}')
        lines = [f'{{"path":"{file.as_uri()}","timestamp":1,"batchId":{number}}}' for file in files]
        before += lines
        is_whole = number % 10 == 9
        log = checkpoint / "sources" / "0" / (f"{number}.compact" if is_whole else str(number))
        log.write_text("\n".join(["v1", *(before if is_whole else lines)]))


def test_the_files_of_a_batch_are_looked_at(tmp_path: Path) -> None:
    table = pa.table({"ts": [1], "x": [2]})
    files = [tmp_path / f"day={i}" / "a file.parquet" for i in range(11)]
    for file in files:
        file.parent.mkdir()
        pq.write_table(table, file)
    noted(tmp_path / "cp", [[file] for file in files])
    for number, file in enumerate(files):
        assert list(files_of(tmp_path / "cp", number)) == [file]
        check_files(tmp_path / "cp", number, ["ts", "X", "day"])
    with pytest.raises(DataError, match="has no column `y`"):
        check_files(tmp_path / "cp", 9, ["ts", "y"])
    files[10].unlink()
    with pytest.raises(DataError, match="was removed while it was to be read"):
        check_files(tmp_path / "cp", 10, ["ts"])
    assert not list(files_of(tmp_path / "cp", 11))
    for other in ("-", '{"topic":{"0":3}}', "17"):  # sources that are no files, or have given nothing yet
        (tmp_path / "cp" / "offsets" / "11").write_text(f'v1\n{{"conf":{{}}}}\n{other}')
        (tmp_path / "cp" / "metadata").write_text('{"id":"1"}')
        check_files(tmp_path / "cp", 11, ["ts"])
        check_checkpoint(tmp_path / "cp", 11)


@pytest.mark.slow
def test_a_file_that_is_removed_before_it_is_read_ends_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    table = nearly_sorted(events(120), 3)
    write_files(table, tmp_path / "in", 6)
    stream = stream_of(spark, tmp_path, {"q": RISING})
    stream.start()
    while not list((tmp_path / "out" / "_log").glob("*.json")):
        clock.sleep(0.02)
    file = tmp_path / "in" / "005.parquet"
    file.rename(tmp_path / "aside")
    try:
        with pytest.raises(DataError, match=r"005\.parquet was removed while it was to be read"):
            stream.wait()
    finally:
        stream.stop()
    with pytest.raises(DataError, match=r"005\.parquet was removed while it was to be read"):
        run(stream_of(spark, tmp_path, {"q": RISING}))
    (tmp_path / "aside").rename(file)
    run(stream_of(spark, tmp_path, {"q": RISING}))
    assert found(tmp_path / "out") == batch(RISING, table)


def with_x(table: pa.Table, kind: pa.DataType) -> pa.Table:
    return table.set_column(table.schema.get_field_index("x"), "x", table["x"].cast(kind))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop_columns(["x"]), "has no column `x`"),
        (lambda table: with_x(table, pa.string()), r"column `x` of .*005\.parquet is BINARY"),
        (lambda table: with_x(table, pa.float64()), r"column `x` of .*005\.parquet is DOUBLE"),
    ],
)
def test_a_file_with_other_columns_ends_the_stream(
    spark: SparkSession, tmp_path: Path, change: Callable[[pa.Table], pa.Table], words: str
) -> None:
    table = nearly_sorted(events(80), 3)
    write_files(table, tmp_path / "in", 6)
    file = tmp_path / "in" / "005.parquet"
    own = pq.read_table(file)
    file.unlink()
    stream = stream_of(spark, tmp_path, {"q": RISING}, file_columns=("ts", "id", "g", "x", "k"))
    pq.write_table(change(own), file)  # it comes after the columns were looked at
    os.utime(file, (BEGUN + 9, BEGUN + 9))
    with pytest.raises(DataError, match=words):
        run(stream)
    pq.write_table(own, file)
    run(stream_of(spark, tmp_path, {"q": RISING}))
    assert found(tmp_path / "out") == batch(RISING, table)


@pytest.mark.slow
def test_csv_columns_are_told_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would take them by their places: that gave other trends, without a word."""
    (tmp_path / "in").mkdir()
    one, other = tmp_path / "in" / "a.csv", tmp_path / "in" / "b.csv"
    one.write_text("ts,id,x,y\n2023-11-14 22:13:20,1,1,100\n2023-11-14 22:13:21,2,2,99\n")
    frame = read_stream(spark, str(tmp_path / "in"), files_a_batch=1)
    other.write_text("ts,id,y,x\n2023-11-14 22:13:22,3,98,3\n2023-11-14 22:13:23,4,97,4\n")
    for number, path in enumerate((one, other)):
        os.utime(path, (BEGUN + number, BEGUN + number))
    query = trellis.query("PATTERN T+ t[] WHERE t[i].x > t[i-1].x WITHIN 10 s SLIDE 10 s")
    options = Options(str(tmp_path / "out"), str(tmp_path / "cp"), "1 s", available_now=True)
    with pytest.raises(DataError, match=r"b\.csv has other columns than the events have, or has them in another order"):
        run(Stream(spark, {"q": query}, frame, options, RunOptions(time="ts", event_id="id")))
