"""The checkpoint of a stream: `trellis.json` tells the queries, events and outputs that it is for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trellis.errors import DataError, UsageError
from trellis.io.durable import write_whole
from trellis.streams.lock import is_unused
from trellis.streams.query import StandingQuery

ABOUT = "trellis.json"


def read_about(directory: Path, name: str, maker: str) -> dict[str, Any] | None:
    """Return the description of a stream in a file of its checkpoint; None if that is not there yet, or is empty.

    `maker` is whose checkpoint it is, for a message.
    """
    about = directory / name
    if not about.exists():
        if not is_unused(directory):
            raise UsageError(
                f"{directory} is no checkpoint of {maker}", "Name an empty directory, or one that it made."
            )
        return None
    try:
        return dict(json.loads(about.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise unreadable(about) from None


def unreadable(about: Path) -> DataError:
    """Return the error about a file that says what a checkpoint is of, and does not."""
    return DataError(f"{about} cannot be read", "It is damaged, or of another version of Trellis.")


@dataclass
class Checkpoint:
    """The description that a checkpoint directory holds: its queries, columns, buckets and outputs."""

    directory: Path
    columns: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)  # the directory of each query's output, by its key
    out: str = ""
    format: str = ""
    buckets: dict[str, list[int]] = field(default_factory=dict)  # of each group
    outputs: dict[str, str] = field(default_factory=dict)  # what each query's output is known by, by its key
    old_ranks: bool = True  # its state may have rank counters of the version before pages
    naive: bool = False  # times without a zone come out so; earlier versions gave them in UTC, and go on so

    @classmethod
    def at(cls, directory: str) -> Checkpoint:
        """Return the description in a directory; an empty one if it is not there yet, or holds nothing."""
        path = Path(directory)
        about = read_about(path, ABOUT, "`trellis stream`")
        if about is None:
            return cls(path, naive=True, old_ranks=False)
        try:
            return cls(path, **about)
        except TypeError:
            raise unreadable(path / ABOUT) from None

    def check(self, queries: Iterable[StandingQuery], columns: Mapping[str, str], controlled: bool = False) -> None:
        """Refuse a checkpoint of other events or, unless these are `controlled`, of other queries."""
        for name, type_ in self.columns.items():
            found = columns.get(name)
            if found != type_:
                now = "is not there any more" if found is None else f"is {found} now"
                raise UsageError(
                    f"the events have changed since the checkpoint {self.directory} was made: `{name}` was {type_}, "
                    f"and {now}",
                    "Name a new checkpoint and a new output, or give the events the types that they had (--schema).",
                )
        if self.queries and not controlled and not any(one.key in self.queries for one in queries):
            known = ", ".join(key.partition(":")[0] for key in self.queries)
            raise UsageError(
                f"the checkpoint {self.directory} is of other queries: {known}",
                "Name another checkpoint. A query whose text has changed is another one.",
            )

    def check_output(self, out: str, format_: str) -> None:
        """Refuse to go on into another output, which would have a part of the results only, or in another format."""
        here = str(Path(out).absolute())
        if self.out and self.out != here:
            raise UsageError(
                f"the checkpoint {self.directory} is of a stream that writes to {self.out}",
                "Name that output, or another checkpoint.",
            )
        if self.format and self.format != format_:
            raise UsageError(f"the output {out} is {self.format}, and cannot go on as {format_}", "Keep its format.")
        self.out, self.format = here, format_

    def save(self) -> None:
        """Write down what it is for."""
        about = asdict(self)
        del about["directory"]
        write_whole(self.directory / ABOUT, json.dumps(about, indent=2))


def named_as_before(queries: Sequence[StandingQuery], stored: Iterable[str]) -> list[StandingQuery]:
    """Return queries under the names that they have in a checkpoint, others under names that are free there."""
    known = {key.partition(":")[2]: key.partition(":")[0] for key in stored}
    names: dict[int, str] = {}
    for i, one in enumerate(queries):
        name = known.get(one.key.partition(":")[2])
        if name is not None and name not in names.values():
            names[i] = name
    for i, one in enumerate(queries):
        name, number = one.name, 2
        while i not in names and name.casefold() in {one.casefold() for one in (*names.values(), *known.values())}:
            name, number = f"{one.name}-{number}", number + 1
        names.setdefault(i, name)
    return [replace(one, name=names[i]) for i, one in enumerate(queries)]
