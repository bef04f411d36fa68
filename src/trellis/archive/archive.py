"""An archive: events in Parquet, with filters beside them that tell where names may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.archive.answers import QuestionOptions
from trellis.archive.decay import coarsened, dropped
from trellis.archive.events import Progress, fitted, in_order
from trellis.archive.exact import Exact, needed
from trellis.archive.growth import ArchivePlan, number_too_late, settle, split_newest
from trellis.archive.leaves import Answer
from trellis.archive.reader import ArchiveReader, ArchiveSnapshot
from trellis.archive.reading import EventReader
from trellis.archive.store import Manifest, making, read_manifest, remove_unnamed, swap_manifest, writing
from trellis.arguments import size_in_bytes
from trellis.errors import DataError, UsageError, did_you_mean
from trellis.events.source import is_spark_frame
from trellis.events.tables import as_tables
from trellis.language.schema import time_columns
from trellis.providers import provided


class Archive(ArchiveReader):
    """A history on disk; make one with `Archive.build`, go on with `Archive.open`."""

    # --- Making one -------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, directory: str | Path) -> Archive:
        """Return the archive in a directory."""
        return cls(directory)

    @classmethod
    def build(
        cls, data: Any, directory: str | Path, *, time: str | Sequence[str], type: str, event_id: str | None = None,
        leaf: int = 100, false_positive: float = 1e-4, memory: int | str | None = None,
        expected_events: int | None = None, query_length: int = 3, fan_out: int = 2, sizing: str = "sample",
        key: str | None = None, height: int = 0, values: Sequence[str] = (), progress: Progress | None = None,
    ) -> Archive:  # fmt: skip
        """Make an archive of events.

        Parameters
        ----------
        data
            An Arrow table, a pandas or polars frame; or a Spark frame, of which Spark's tasks make it in parallel.
        directory
            Where it is made; it must not exist, or be empty.
        time, type, event_id
            The columns of times, of names, and of ids; with several columns of times the later ones break ties.
        leaf
            How many events a leaf has.
        false_positive
            The rate of questions whose list of leaves may be wrong.
        memory
            The bytes that the filters may take, as a number or such as `2G`; it is refused if they would take more.
        expected_events
            How many events there will be; those that there are by default.
        query_length
            How many names a question has.
        fan_out
            The children of a node of the tree.
        sizing
            `sample`: by the names that leaves have; `thesis`: by the equations of the thesis.
        key
            A column such as the case of a log: questions with `[key]` are then answered for each of its values.
        height
            The level up to which nodes are to exist: filters are made so large that theirs are at most half full.
        values
            Columns of text or whole numbers whose values the filters hold with the names: `a.account = 'x'` then
            reads only where an `A` of that account may be. Ranges of numbers are kept without asking.
        progress
            Called with a sentence about what is being done.
        """
        time, tie_breakers = _time_columns(time)
        memory = None if memory is None else size_in_bytes(memory, "the memory for filters")
        plan = ArchivePlan(
            time, type, event_id, leaf, false_positive, memory, expected_events, query_length, fan_out, sizing, key,
            height, tie_breakers, tuple(values),
        )  # fmt: skip
        if is_spark_frame(data):
            return cls(provided("archives on Spark").build(data, Path(directory), plan, progress or _silently))
        table = _table(data)
        plan.check(Path(directory), table.schema)
        (progress or _silently)("sorting")
        ordered = in_order(table.replace_schema_metadata(None), time, event_id, tie_breakers)
        manifest = plan.manifest(ordered.schema, ordered.num_rows, lambda low, high: ordered.slice(low, high - low))
        with making(Path(directory)):
            archive = cls.begin(directory, manifest)
            archive._settle(ordered, 0, progress or _silently)
        return archive

    @classmethod
    def begin(cls, directory: str | Path, manifest: Manifest) -> Archive:
        """Make an archive without events; it counts for nothing before it has some: see `making`."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        swap_manifest(Path(directory), manifest)
        return cls(directory)

    def append(
        self, data: Any, *, delay: Any = None, late: str = "error", batch: tuple[str, int] | None = None,
        progress: Progress | None = None,
    ) -> bool:  # fmt: skip
        """Add later events; return whether they were added.

        Parameters
        ----------
        data
            As for `build`. Events must be later than all that have their places; those of the newest time have none
            before later ones come, so that events of one time may come in several parts, and in any order.
        delay
            How far events may be late: so much of the newest is held. A number, or a `timedelta` where times are
            moments.
        late
            The treatment of events that come later than that: `error`, or `drop`, which counts them.
        batch
            The name of a stream and the number of its batch: one that was added already is not added again.
        progress
            Called with a sentence about what is being done.
        """
        if late not in ("error", "drop"):
            raise UsageError(f"late is `{late}`", "It is `error` or `drop`.")
        with self._writing():
            if batch is not None and self.manifest.batches.get(batch[0], -1) >= batch[1]:
                return False
            if is_spark_frame(data):
                if delay is not None or batch is not None or late != "error":
                    raise UsageError("delay, late and batch are for events of this process", "Use df.toArrow().")
                self._use(provided("archives on Spark").append(data, self, progress or _silently))
            else:
                self._append(data, delay, late, batch, progress or _silently)
        return True

    def follow(
        self, frame: Any, checkpoint: str | Path, *, delay: str | int | None = None, late: str = "error",
        available_now: bool = False,
    ) -> Any:  # fmt: skip
        """Append the events of a streaming data frame of Spark's, each batch once; this survives kills and restarts.

        Parameters
        ----------
        frame
            A streaming data frame with the columns of the archive.
        checkpoint
            The directory in which the stream remembers how far it is.
        delay, late
            As for `append`; a delay is written like `10 minutes`.
        available_now
            Stop when all that is there has been read.

        Returns
        -------
        trellis.engines.spark.archive.follow.ArchiveStream
            The stream, which runs: `wait` for its end, or `stop` it.
        """
        running = provided("archives on Spark").follow(
            frame, str(self.directory), str(checkpoint), delay=delay, late=late, available_now=available_now
        )
        running.start()
        return running

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep others from writing, and go on from what they wrote before."""
        with writing(self.directory):
            now = read_manifest(self.directory)
            if now.generation != self.manifest.generation:
                self._use(now)
            remove_unnamed(self.directory, self.manifest)
            yield

    def _append(self, data: Any, delay: Any, late: str, batch: tuple[str, int] | None, progress: Progress) -> None:
        manifest = self.manifest
        table = fitted(_table(data), manifest.arrow)
        if not table.num_rows and batch is None:
            return
        ordered = in_order(pa.concat_tables([self.held, table]), *manifest.order)
        too_late = number_too_late(ordered, manifest, late)
        length = 0 if delay is None else self._length(delay)
        self._settle(ordered.slice(too_late), length, progress, batch, too_late)

    def _length(self, delay: Any) -> Any:
        """Return a delay as a number."""
        try:
            if not self.answerer.schema.time_type.temporal:
                return delay + 0
            return pa.scalar(delay, pa.duration("us")).cast(pa.int64()).as_py()
        except (TypeError, pa.ArrowException):
            raise UsageError(f"`{delay}` is not a delay of this history", "Give a number, or a timedelta.") from None

    def _settle(
        self, ordered: pa.Table, delay: Any, progress: Progress, batch: tuple[str, int] | None = None, late: int = 0
    ) -> None:
        parts = split_newest(ordered, self.manifest.time, delay)
        self._use(settle(self.directory, self.manifest, self.stored, self.tree, *parts, progress, batch, late))

    def drop_before(self, moment: Any) -> int:
        """Forget the leaves that end before a time; return how many events are forgotten.

        Positions stay what they were. The files of events and filters that nothing needs any more are removed.
        """
        with self._writing():
            before = self.manifest.dropped
            self._use(dropped(self.directory, self.manifest, self.stored, self.answerer.number(moment)))
        return self.manifest.dropped - before

    def coarsen_before(self, moment: Any, level: int) -> int:
        """Let nodes of the tree up to a level stand for their leaves, where these end before a time.

        Questions of that part are answered in coarser intervals: a `no` stays certain, and exact answers stay exact.
        Where no node exists, since too many bits would be set, the leaves stay. Returns by how many leaves there are
        less.
        """
        if level < 1:
            raise UsageError("leaves are coarsened to a level of 1 or more")
        with self._writing():
            before, bound = len(self.stored.entries), self.answerer.number(moment)
            self._use(coarsened(self.directory, self.manifest, self.stored, self.tree, bound, level))
        return before - len(self.stored.entries)

    # --- Questions --------------------------------------------------------------------------------------------

    def exists(self, pattern: object, *, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """Return whether a pattern happened: `no`, which is certain, `maybe` or `likely`; options as in `find`."""
        known = [each.name for each in fields(QuestionOptions)]
        for name in options:
            if name not in known:
                hint = did_you_mean(name, known, f"Options are {', '.join(known)}; exact answers are those of `find`.")
                raise UsageError(f"`exists` has no option `{name}`", hint)
        given = QuestionOptions(**options)
        return self._answer(lambda now: now.answerer.exists(now.answerer.text(pattern, params), given))

    def find(
        self, pattern: object, *, policy: str | None = None, same_leaf: str = "maybe",
        begin: Any = None, end: Any = None, first: int | None = None, last: int | None = None,
        within_events: int | None = None, level: int = 0,
        starts: str = "every", pairs: bool = False, minimal: bool = False, limit: int | None = None,
        algorithm: str = "auto", exact: bool = False, params: Mapping[str, Any] | None = None,
    ) -> pa.Table | Exact:  # fmt: skip
        """Return where a pattern may have happened, or, exactly, what happened.

        Parameters
        ----------
        pattern
            A query or its text, whose variables have types.
        policy
            Overrides SELECT: `skip-till-any`, `skip-till-next`, `contiguous` or `adjacent-leaves`.
        same_leaf
            `maybe`: two steps may be in one leaf, so that nothing is missed. `no`: the reading of the thesis.
        begin, end
            Times between which it happened, both included.
        first, last
            Positions between which it happened, both included.
        within_events
            How many positions the last event may be behind the first, where the pattern has no WITHIN.
        level
            Blocks of `fan_out**level` leaves in place of leaves.
        starts
            Of skip-till-next: `every` leaf that it may start in, or `after`, the list of the thesis: the next one
            starts where the one before ended, or later.
        pairs
            Of skip-till-any: a row for each end of a start, and not one for a start with its ends.
        minimal
            Only intervals that contain no other.
        limit
            At most so many rows.
        algorithm
            `slices`: a bitmap over the leaves for each bit of a name; `tree`: the thesis's walk from the top, the
            number of nodes and leaves that it looked at is `visited` in the metadata of the table; `auto`: the one that
            is expected to be quicker. The answer is the same.
        exact
            Read the events that may matter, and give what `query.detect` gives over all of them.
        params
            Values of the query's parameters.
        """
        options = QuestionOptions(
            policy, same_leaf, begin, end, first, last, within_events, level, starts, pairs, minimal, limit,
            algorithm,
        )  # fmt: skip
        if not exact:
            return self._answer(lambda now: now.answerer.find(now.answerer.text(pattern, params), options))
        if options != QuestionOptions():
            raise UsageError(
                "an exact answer is that of the query itself", "Write SELECT, and conditions on the time, in the query."
            )
        return self._answer(lambda snapshot: _exact(snapshot, pattern, params))

    def plot(self, pattern: object, *, exact: bool = False, **options: Any) -> Any:
        """Return a picture of where a pattern may have happened, from large blocks down to leaves.

        Parameters
        ----------
        pattern
            A query, as for `find`.
        exact
            Also read the events that may matter, and mark what is found.
        options
            Those of `find`, but for `level`.

        Returns
        -------
        plotly.graph_objects.Figure
            A row of bars for each level.
        """
        return provided("pictures").history(self, pattern, exact, **options)


def _exact(snapshot: ArchiveSnapshot, pattern: object, params: Mapping[str, Any] | None) -> Exact:
    manifest, answerer = snapshot.manifest, snapshot.answerer
    wanted = needed(answerer, answerer.text(pattern, params))
    entries = answerer.contents.entries
    reader = EventReader(snapshot.directory, manifest, snapshot.held, snapshot.files, entries, wanted)
    query = answerer.prepared(pattern, params)
    table = reader.rows(query.columns)
    try:
        trends = query.detect_narrow(table, reader.rows)
        read = reader.read
        _ = trends.statistics  # prepares the events, whose ids must not repeat
    except DataError as problem:
        if "on_bad_rows" not in (problem.hint or ""):
            raise
        raise DataError(problem.what, "Build the archive of events whose ids do not repeat.") from None
    return Exact(trends, int(answerer.contents.entries["events"][wanted.leaves].sum()), read, len(snapshot))


def _time_columns(time: str | Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the column of times and those that break ties."""
    first, others = time_columns(time)
    assert first is not None
    return first, others


def _table(data: Any) -> pa.Table:
    tables = as_tables(data)
    if None not in tables:
        raise UsageError("a history is of one table of events", "Give one, with a column that tells the names.")
    return tables[None]


def _silently(what: str) -> None:
    pass
