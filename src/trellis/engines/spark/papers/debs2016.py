"""The DEBS 2016 queries on Structured Streaming: directories that keep growing give the lines of whole files.

One ordered instance of a query runs in the driver; Spark finds the files, reads them, and remembers how far it is. Each
batch leaves its lines, then the state, then a note in the log of the output: what the log names counts, and once. If
the process ends before, the batch comes again and starts from the state before it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.sources.read_stream import FILE_AGE
from trellis.engines.spark.stream.one_query import WritingStream
from trellis.engines.spark.stream.spark_log import check_files
from trellis.errors import DataError, UsageError
from trellis.events.columns.arrow import pc
from trellis.io.durable import kept_file, swapped_file
from trellis.kernels.papers.debs2016.lines import NEVER, line_times
from trellis.papers.debs2016 import Communities, Posts
from trellis.papers.debs2016.engine import LineEngine
from trellis.papers.debs2016.files import in_order
from trellis.streams.commit_log import FLUSH
from trellis.streams.stream_output import RESULTS, batch_name, committed_files

STATES = "states"


class LineStream(WritingStream):
    """A query over directories of lines.

    Parameters
    ----------
    session
        The session; its driver runs the query.
    query
        `posts` or `communities`.
    options
        What `Posts` or `Communities` takes.
    directories
        The directory of each source, by its name. A file is read once, in the order of modification, and then by name.
    out, checkpoint
        Where lines go, and where the stream remembers how far it is.
    delay
        Milliseconds: a source that has no line so far behind the latest of all has none before any more. None: a source
        that is silent holds up the others.
    files_a_batch
        At most so many files of a source make a batch.
    available_now
        Whether to stop when all that is there has been read.

    Raises
    ------
    UsageError
        If a directory is not there, or the checkpoint or the output are of another stream.
    """

    def __init__(
        self, session: SparkSession, query: str, options: Mapping[str, Any], directories: Mapping[str, str], *,
        out: str, checkpoint: str, delay: int | None = None, files_a_batch: int | None = None,
        available_now: bool = False,
    ) -> None:  # fmt: skip
        refuse_connect(session, "a query of the challenge over directories that keep growing", "")
        super().__init__(out, checkpoint, available_now)
        self.session, self.query, self.options, self.delay = session, query, dict(options), delay
        self.files_a_batch = files_a_batch
        engine = self._new()
        self.directories = {name: os.path.abspath(directories[name]) for name in engine.sources}
        for name, directory in self.directories.items():
            if not Path(directory).is_dir():
                raise UsageError(f"{directory} is no directory", f"Name the directory that {name} arrive in.")
        self._engine: tuple[str, LineEngine] | None = None  # the one after a batch

    def _new(self) -> LineEngine:
        return Posts(**self.options) if self.query == "posts" else Communities(**self.options)

    # --- Running ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to read, run and write."""
        self._take_places()
        (self.checkpoint / STATES).mkdir(parents=True, exist_ok=True)
        self._start(self._lines(), self._take)

    def _flush(self) -> LineEngine:
        """Add the results at the end of the input; return the query at the end, which tells what was bad."""
        batches = sorted(path.stem for path in (self.checkpoint / STATES).glob("*.npz"))
        engine = self._load(batches[-1]) if batches else self._new()
        for source in range(len(engine.sources)):
            engine.close(source)
        self.output.take_back()
        self._write(FLUSH, engine)
        return engine

    def _about(self) -> dict[str, Any]:
        return {
            "query": self.query, "options": self.options, "directories": self.directories,
            "out": os.path.abspath(self.output.directory),
        }  # fmt: skip

    def _lines(self) -> DataFrame:
        """Return the lines of all sources as bytes, and where each is from."""
        found: DataFrame | None = None
        for number, directory in enumerate(self.directories.values()):
            reader = self.session.readStream.format("text").option("lineSep", "\n").option("maxFileAge", FILE_AGE)
            if self.files_a_batch is not None:
                reader = reader.option("maxFilesPerTrigger", self.files_a_batch)
            place = f.col("_metadata")
            lines = reader.load(f"file://{directory}").select(
                f.lit(number).alias("source"), f.col("value").cast("binary").alias("line"),
                place["file_modification_time"].alias("made"), place["file_path"].alias("path"),
                place["file_block_start"].alias("begin"),
            )  # fmt: skip
            found = lines if found is None else found.unionAll(lines)
        assert found is not None
        return found

    # --- Batches ------------------------------------------------------------------------------------------------

    def _take(self, frame: DataFrame, number: int) -> None:
        batch = batch_name(number)
        if self.output.has(batch):  # it was written, and the process ended before Spark took note of it
            return
        engine = self._before(number)
        self._engine = None  # until the batch is done
        self.output.take_back()
        rows = frame.toArrow()
        with in_task():
            check_files(self.spark_checkpoint, number)
        latest = [self._push(engine, source, rows) for source in range(len(engine.sources))]
        if self.delay is not None and max(latest) > -NEVER:
            for source in range(len(engine.sources)):
                engine.promise(source, max(latest) - self.delay)
        self._write(batch, engine)
        self._engine = (batch, engine)

    def _push(self, engine: LineEngine, source: int, rows: pa.Table) -> int:
        """Give the new lines of a source to the query; return the time of the latest one that it has."""
        own = rows.filter(pc.equal(rows["source"], source))
        keys = [(name, "ascending") for name in ("made", "path", "begin")]
        own = own.append_column("place", pa.array(np.arange(own.num_rows)))
        lines = joined(own.sort_by([*keys, ("place", "ascending")])["line"])
        held = engine.held(source).tobytes()
        if engine.sources[source] == "friendships":
            engine.replace(source, in_order(held + lines))
        else:
            engine.push(source, lines)
        times = line_times(engine.held(source))[2]
        return int(times.max()) if len(times) else -int(NEVER)

    def _write(self, batch: str, engine: LineEngine) -> None:
        """Write the lines that are decided, the state behind them, and that they count."""
        name = f"part-{batch}-0.txt"
        with kept_file(self.output.directory / name) as file:
            engine.run(file.write)
        if batch != FLUSH:
            self._save(batch, engine)
        self.output.commit(batch, {RESULTS: [name]}, {RESULTS: engine.lines})
        for old in (self.checkpoint / STATES).glob("*.npz") if batch != FLUSH else ():
            if old.stem < batch_name(int(batch) - 1):
                old.unlink()

    # --- State --------------------------------------------------------------------------------------------------

    def _before(self, number: int) -> LineEngine:
        """Return the query as it was before a batch."""
        if number == 0:
            return self._new()
        before = batch_name(number - 1)
        if self._engine is not None and self._engine[0] == before:
            return self._engine[1]
        return self._load(before)

    def _save(self, batch: str, engine: LineEngine) -> None:
        held: dict[str, Any] = {f"held{source}": engine.held(source) for source in range(len(engine.sources))}
        with swapped_file(self.checkpoint / STATES / f"{batch}.npz") as file:
            np.savez(file, allow_pickle=False, **engine.state, **held)

    def _load(self, batch: str) -> LineEngine:
        path = self.checkpoint / STATES / f"{batch}.npz"
        engine = self._new()
        try:
            with np.load(path) as stored:
                engine.state |= {name: stored[name] for name in engine.state}
                for source in range(len(engine.sources)):
                    engine.restore(source, stored[f"held{source}"])
        except (OSError, ValueError, KeyError):
            raise DataError(f"the state {path} cannot be read", "The checkpoint is damaged: begin anew.") from None
        return engine


def joined(lines: pa.ChunkedArray) -> bytes:
    """Return lines as one text, each with its end."""
    whole = pa.concat_arrays(lines.chunks) if lines.num_chunks else pa.array([], lines.type)
    if not len(whole):
        return b""
    wide = whole.cast(pa.large_binary())
    ended = pc.binary_join_element_wise(wide, pa.scalar(b"", wide.type), pa.scalar(b"\n", wide.type))
    return bytes(ended.buffers()[2].to_pybytes())


def written_lines(out: str) -> bytes:
    """Return all lines of an output that count, in their order."""
    return b"".join(path.read_bytes() for path in committed_files(out))
