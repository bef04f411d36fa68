"""The tree of a history walked from the top beside bit slices: from which size and rarity on it wins."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import Peer, Row, Table, best_of
from trellis.archive import Archive
from trellis.archive.answers import Answerer


def run(quick: bool) -> list[Table]:
    """Ask for names that come so often in a million events, of histories of several sizes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in (20_000,) if quick else (1_000_000, 10_000_000):
            for rarity in (10, 1000):
                rng = np.random.default_rng(1)
                names = rng.integers(0, 20, number).astype(np.int32)
                names[rng.integers(0, number, max(2, number * rarity // 1_000_000))] = 20
                text = pa.DictionaryArray.from_arrays(pa.array(names), pa.array([f"w{i}" for i in range(21)]))
                table = pa.table({"t": np.arange(number), "n": text.cast(pa.string())})
                place = Path(folder) / f"{number}-{rarity}"
                archive = Archive.build(table, place, time="t", type="n", leaf=20, sizing="tree")
                rows.append(_row(archive, number, rarity, quick))
    return [
        Table(
            "A rare name looked up in leaves of 20 events: the tree walked beside bit slices", rows,
            ["The nodes and leaves that a walk looks at are told; slices are words of bitmaps over 64 leaves."],
        )
    ]  # fmt: skip


def _row(archive: Archive, number: int, rarity: int, quick: bool) -> Row:
    question = "PATTERN SEQ(w20 a, w20 b) SELECT skip-till-next"
    walked, plain = (archive.find(question, algorithm=name) for name in ("tree", "slices"))
    assert walked.equals(plain)
    visited = int(walked.schema.metadata[b"visited"])
    answerer: Answerer = archive.answerer
    tree = best_of("tree", lambda: answerer.tree_index.anew().has(["w20"]), quick=quick)
    slices = best_of("slices", lambda: answerer.contents.filters.has(["w20"]), quick=quick)
    auto = "tree" if answerer.walks else "slices"
    about = archive.info()
    what = (
        f"{number:,} events, {rarity} in a million: height {about['height']}, {about['bits']} bits, "
        f"{visited:,} looked at of {about['leaves']:,} leaves; auto takes {auto}"
    )
    return Row(what, tree, peers=[Peer("bit slices", slices)])
