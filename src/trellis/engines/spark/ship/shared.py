"""Objects in files whose arrays are mapped, not read: the workers of a machine share one copy of them in memory.

A file holds the buffers of all arrays, each at a multiple of 64 bytes, then the pickle that refers to them, then where
all that is. Mappings are private: kernels are compiled for arrays that can be written, but a write would stay in its
process. To read a pickle is to run it, so only files are read that this user alone can have written.
"""

from __future__ import annotations

import mmap
import os
import pickle
from pathlib import Path
from typing import Any

from trellis.caches import create_private, is_private, open_private
from trellis.errors import DataError

_ALIGNED = 64
_FOOTER = 8


def save(thing: Any, file: Path) -> int | None:
    """Write an object to a new file, and return the size of that in bytes; None where a file cannot be private."""
    number = create_private(file)
    if not is_private(number):  # some file systems have no owners or modes
        os.close(number)
        file.unlink()
        return None
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    places: list[tuple[int, int]] = []
    with os.fdopen(number, "wb") as out:
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
    """Return the object of a file; its arrays lie in the file as long as they live.

    Raises
    ------
    DataError
        If somebody else may have written the file.
    """
    try:
        number = open_private(file)
    except PermissionError as problem:
        raise DataError(str(problem), "Write to a directory that nobody else may write.") from None
    with os.fdopen(number, "rb") as source:
        whole = memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_COPY))
    size = int.from_bytes(whole[-_FOOTER:], "little")
    body, places = pickle.loads(whole[-_FOOTER - size : -_FOOTER])
    return pickle.loads(body, buffers=[whole[begin : begin + length] for begin, length in places])
