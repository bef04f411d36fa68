"""Objects in files whose arrays are mapped, not read: the workers of a machine share one copy of them in memory.

A file holds the buffers of all arrays, each at a multiple of 64 bytes, then the pickle that refers to them, then where
all that is. Mappings are private: kernels are compiled for arrays that can be written, but a write would stay in its
process.
"""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path
from typing import Any

_ALIGNED = 64
_FOOTER = 8


def save(thing: Any, file: Path) -> int:
    """Write an object to a file, and return the size of that in bytes."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    places: list[tuple[int, int]] = []
    with file.open("wb") as out:
        for buffer in buffers:
            with buffer.raw() as raw:
                out.write(b"\0" * (-out.tell() % _ALIGNED))
                places.append((out.tell(), raw.nbytes))
                out.write(raw)
        end = pickle.dumps((body, places))
        out.write(end)
        out.write(len(end).to_bytes(_FOOTER, "little"))
        return out.tell()


def load(file: Path) -> Any:
    """Return the object of a file; its arrays lie in the file as long as they live."""
    with file.open("rb") as source:
        whole = memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_COPY))
    size = int.from_bytes(whole[-_FOOTER:], "little")
    body, places = pickle.loads(whole[-_FOOTER - size : -_FOOTER])
    return pickle.loads(body, buffers=[whole[begin : begin + length] for begin, length in places])
