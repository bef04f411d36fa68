"""What the fixtures of earlier versions hold: events, queries, and how their directories are packed and unpacked.

Checkpoints hold absolute paths, of Spark's and of ours. They are replaced by `PLACE` when a directory is packed, and by
the directory in which it now lies when it is unpacked; modification times stay as they were.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa

FIXTURES = Path(__file__).parent / "fixtures"
PLACE = "/the-place-of-the-fixture"
FIRST = 60  # events that the earlier version had read, of all
SECOND = 1_000_000
QUERIES = {
    "rising": "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 s SLIDE 5 s",
    "span": "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 4 s",
}
DETECTED = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 3 s"
SUMMED = (
    "PATTERN T+ t[] WHERE [g] AND t[i].x >= t[i-1].x WITHIN 7 s SLIDE 2 s "
    "AGGREGATE COUNT(*), SUM(t.x), AVG(LENGTH), MIN(t.n)"
)
FOUND = "PATTERN SEQ(a, b) WITHIN 3 seconds"


def events(number: int = 120) -> pa.Table:
    """Return events in the order of time, two in a second."""
    rng = np.random.default_rng(20)
    times = 1_700_000_000 * SECOND + np.sort(rng.choice(number * SECOND // 2, number, replace=False))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": [f"e{i:05}" for i in range(number)],
            "n": rng.choice(["a", "b", "c"], number),
            "g": rng.choice(["u", "v", None], number),
            "x": rng.integers(0, 9, number),
        }
    )


def pack(name: str, folder: Path) -> None:
    """Keep a directory as a fixture."""
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(".crc"):
            path.unlink()  # Hadoop's own checksums, which it does without
        elif path.is_file() and str(folder).encode() in (held := path.read_bytes()):
            path.write_text(held.decode().replace(str(folder), PLACE))  # text only: fails for anything else
    with tarfile.open(FIXTURES / f"{name}.tar.gz", "w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            member = tar.gettarinfo(path, str(path.relative_to(folder)))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if path.is_dir():
                tar.addfile(member)
            else:
                with path.open("rb") as file:
                    tar.addfile(member, file)


def unpack(name: str, folder: Path) -> Path:
    """Put a fixture into a directory, as if it had been made there, and return that."""
    folder.mkdir(parents=True)
    with tarfile.open(FIXTURES / f"{name}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    for path in folder.rglob("*"):
        if path.is_file() and PLACE.encode() in (held := path.read_bytes()):
            path.write_text(held.decode().replace(PLACE, str(folder)))
    return folder
