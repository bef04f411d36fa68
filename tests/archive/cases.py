"""Events and archives for tests, and what an archive holds in plain values."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.archive.naive_tree import Node
from trellis.archive import Archive


def events(number: int, dice: random.Random, names: str = "ABCDE") -> pa.Table:
    """Return events in the order of their times, several at one time, some without a name."""
    return pa.table(
        {
            "t": pa.array(sorted(dice.randrange(2 * number + 1) for _ in range(number)), pa.int64()),
            "id": pa.array([f"e{i:04}" for i in range(number)], pa.string()),
            "n": pa.array([dice.choice([*names, None]) for _ in range(number)], pa.string()),
            "x": pa.array([dice.randrange(5) for _ in range(number)], pa.int64()),
            "g": pa.array([dice.choice("uv") for _ in range(number)], pa.string()),
            "y": pa.array(
                [dice.choice([None, math.nan, -1.5, -0.5, 0.5, 1.5, 2.5]) for _ in range(number)], pa.float64()
            ),
        }
    )


def with_keys(table: pa.Table, dice: random.Random, keys: str = "pqr") -> pa.Table:
    """Return events with a key each."""
    return table.append_column("key", pa.array([dice.choice(keys) for _ in range(table.num_rows)], pa.string()))


def built(table: pa.Table, folder: Path, **more: Any) -> Archive:
    """Return an archive of events with small leaves."""
    given = {"time": "t", "type": "n", "event_id": "id", "leaf": 4, "false_positive": 0.01} | more
    return Archive.build(table, folder, **given)


def sized_as(archive: Archive, folder: Path) -> Archive:
    """Return an archive without events that is otherwise like another one."""
    manifest = archive.manifest
    fields = ("schema", "time", "type", "event_id", "key", "capacity", "bits", "hashes", "fan_out", "false_positive",
              "names", "ranged", "values")  # fmt: skip
    return Archive.begin(folder, type(manifest)(**{name: getattr(manifest, name) for name in fields}))


def held_in(archive: Archive) -> tuple[list[Node], list[Node]]:
    """Return the leaves of an archive, as questions see them, and its nodes, in plain values."""
    contents, capacity = archive.answerer.contents, archive.manifest.capacity
    bits = np.unpackbits(contents.filters.rows().view(np.uint8), axis=1, bitorder="little")
    leaves: list[Node] = [
        (0, int(at) // capacity, int(number), since, until, frozenset(np.flatnonzero(own).tolist()))
        for (at, number, since, until), own in zip(
            contents.entries[["at", "events", "since", "until"]].tolist(), bits, strict=True
        )
    ]
    nodes: list[Node] = []
    for node in archive.tree.nodes:
        own = np.unpackbits(np.ascontiguousarray(node["filter"]).view(np.uint8), bitorder="little")
        level, index, number, since, until = (node[n].item() for n in ("level", "index", "events", "since", "until"))
        nodes.append((level, index, number, since, until, frozenset(np.flatnonzero(own).tolist())))
    return leaves, sorted(nodes, key=lambda node: node[:2])
