"""The files of batches, as Spark's own checkpoint names them, are looked at.

Spark passes over a file that is gone, and fills in NULL where a file has no such column, both in silence.

    checkpoint/offsets/12        the offsets of batch 12: after two lines of its own, one line for each source
    checkpoint/sources/0/7       the files that the first source found at its seventh look; every tenth is `9.compact`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from trellis.errors import DataError

NOTHING = "-"  # in place of the offset of a source that nothing has come from
ANEW = "Put it back as it was; or begin anew, with another checkpoint and another output."


def check_checkpoint(checkpoint: Path, written: int | None) -> None:
    """Refuse a checkpoint of Spark's that is damaged, or knows less than the output: its last batch is `written`.

    Spark would end in words of its own, or number batches anew, which would then be taken for those that are written.
    """
    why = _damage(checkpoint, -1 if written is None else written)
    if why is not None:
        raise DataError(f"the checkpoint {checkpoint} is damaged: {why}", ANEW)


def _damage(checkpoint: Path, written: int) -> str | None:
    """Find what is wrong with the logs of a checkpoint; return a sentence, or None."""
    known = max(_numbers(checkpoint / "offsets"), default=-1)
    done = max(_numbers(checkpoint / "commits"), default=-1)
    if known < max(written, done):
        so_far = f"it knows batches up to {known}" if known >= 0 else "it knows of no batch"
        return f"{so_far}, and batch {max(written, done)} is done"
    if known < 0:
        return None
    needed = [checkpoint / "metadata", checkpoint / "offsets" / str(known)]
    needed += [checkpoint / "commits" / str(done)] if done >= 0 else []
    for source, end in enumerate(_offsets(checkpoint, known)):
        if end >= 0:
            plain = checkpoint / "sources" / str(source) / str(end)
            needed.append(plain if plain.exists() else plain.with_name(f"{end}.compact"))
    return next(filter(None, map(_unreadable, needed)), None)


def _unreadable(path: Path) -> str | None:
    """Return why a log cannot be read: what begins as JSON should be that, and no line may be missing."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            if line.startswith("{"):
                json.loads(line)
    except OSError:
        return f"{path} is not there"
    except ValueError:
        lines = []
    least = 2 if path.parent.name in ("offsets", "commits") else 1
    return None if len(lines) >= least else f"{path} cannot be read"


def check_files(checkpoint: Path, batch: int, columns: Sequence[str] = ()) -> None:
    """Refuse a batch with a file that is gone, or that lacks columns that each file should have, before it counts."""
    for path in files_of(checkpoint, batch):
        if not path.exists():
            raise DataError(
                f"{path} was removed while it was to be read",
                "Put it back, and start again: the stream goes on with it. Leave files where they are until the stream "
                "has read them.",
            )
        there = {name.casefold() for name in (*_columns(path, columns), *_of_directories(path))}
        lost = [name for name in columns if name.casefold() not in there]
        if lost:
            raise DataError(
                f"{path} has no column `{lost[0]}`, which the events of this stream have",
                "Put a file with all columns in its place, and start again: the stream goes on with it.",
            )


def files_of(checkpoint: Path, batch: int) -> Iterator[Path]:
    """Yield the files on this machine that a batch consists of."""
    ends, begins = _offsets(checkpoint, batch), _offsets(checkpoint, batch - 1)
    for source, end in enumerate(ends):
        begin = begins[source] if source < len(begins) else -1
        for number in range(begin + 1, end + 1):
            for entry in _entries(checkpoint / "sources" / str(source), number):
                address = urlsplit(entry["path"])
                if address.scheme in ("", "file") and entry["batchId"] == number:
                    yield Path(unquote(address.path))


def _offsets(checkpoint: Path, batch: int) -> list[int]:
    """Return how far each source was read with a batch; nothing for sources that are no files."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
        return [-1 if line == NOTHING else int(json.loads(line)["logOffset"]) for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _entries(source: Path, number: int) -> Iterable[dict[str, Any]]:
    for name in (str(number), f"{number}.compact"):
        path = source / name
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
            return [json.loads(line) for line in lines if line.strip()]
    return ()


def _columns(path: Path, otherwise: Sequence[str]) -> Sequence[str]:
    """Return the columns that a file says it has; formats that say it row by row, or that Spark checks, are trusted."""
    with path.open("rb") as file:
        kind = file.read(4)
    try:
        if kind == b"PAR1":
            return list(pq.read_schema(path).names)
        if kind[:3] == b"ORC":
            from pyarrow import orc

            return list(orc.ORCFile(path).schema.names)
    except (OSError, pa.ArrowException):
        raise DataError(f"{path} cannot be read: its content is damaged or has changed.") from None
    return otherwise


def _of_directories(path: Path) -> Iterator[str]:
    """Yield the columns that directories tell: `day` in `events/day=2024-05-01/1.parquet`."""
    yield from (part.partition("=")[0] for part in path.parent.parts if "=" in part)


def _numbers(directory: Path) -> Iterator[int]:
    if directory.is_dir():
        yield from (int(path.name) for path in directory.iterdir() if path.name.isdigit())
