"""Where events come from: tables of this process, files, or Spark; told here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trellis.errors import UsageError


def is_spark_frame(data: Any) -> bool:
    """Return whether data is a data frame of Spark's; pyspark is not imported to find out."""
    return type(data).__module__.startswith("pyspark.")


def is_pandas_frame(data: Any) -> bool:
    """Return whether data is a data frame of pandas'; pandas is not imported to find out."""
    return type(data).__module__.startswith("pandas") and hasattr(data, "columns")


def paths_of(data: Any) -> list[str] | None:
    """Return the paths that data stands for: a path or a list of them; None for anything else."""
    if isinstance(data, str | os.PathLike):
        return [os.fspath(data)]
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | os.PathLike) for path in data):
        return [os.fspath(path) for path in data]
    return None


@dataclass(frozen=True)
class EventSource:
    """The events of a query as they were given: one table, or several by event type.

    Attributes
    ----------
    tables
        Data frames, Arrow tables or paths by event type; by None where there is one table for all.
    """

    tables: dict[str | None, Any]

    @classmethod
    def of(cls, data: Any) -> EventSource:
        """Return the source for data as users give them.

        Raises
        ------
        UsageError
            If a dictionary without tables was given.
        """
        if not isinstance(data, Mapping):
            return cls({None: data})
        if not data:
            raise UsageError("no table of events was given")
        return cls({None if name is None else str(name): table for name, table in data.items()})

    @property
    def has_spark_frames(self) -> bool:
        """Whether some table is a data frame of Spark's."""
        return any(is_spark_frame(table) for table in self.tables.values())

    @property
    def is_for_spark(self) -> bool:
        """Whether Spark may run the query without being asked to: some table is a Spark frame, or files."""
        return self.has_spark_frames or any(paths_of(table) is not None for table in self.tables.values())

    @property
    def paths(self) -> list[str]:
        """The files and directories that events are read from."""
        return [path for table in self.tables.values() for path in paths_of(table) or ()]
