"""Claims of outputs: before any work, and for this process alone until the end of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trellis.io.outputs import PLACE, OutputTarget, check_files, read_list, save_list


@contextmanager
def claimed(
    path: PLACE, *, overwrite: bool = False, inputs: Iterable[PLACE] = (), is_file: bool = False
) -> Iterator[OutputTarget]:
    """Claim an output before any work; nobody else can write it until the end of the block.

    Parameters
    ----------
    path
        A directory, an address such as `s3://bucket/out` or, with `is_file`, a file. An output that is claimed already
        stays so and is given back as it is.
    overwrite
        Whether an output of this name may be replaced.
    inputs
        The files, directories and globs that are read.
    is_file
        Whether it is one file, and no directory.

    Raises
    ------
    UsageError
        If the output exists and may not be replaced, or must not be: see `check_place` and `check_replaceable`; or if
        another process is writing it.
    DataError
        If it cannot be written.
    """
    if isinstance(path, OutputTarget):
        yield path
        return
    if "://" in os.fspath(path) and not is_file:
        from trellis.io.remote import RemoteTarget

        output: OutputTarget = RemoteTarget(path, overwrite, inputs)
    else:
        output = OutputTarget(path, overwrite, inputs, is_file)
    try:
        yield output
    finally:
        output.release()


def replace_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a folder that has others, each wholly or not at all, and put them on its list."""
    check_files(folder, texts)
    for name, text in texts.items():
        with claimed(folder / name, overwrite=True, is_file=True) as output, output.replacing() as file:
            file.write_text(text, encoding="utf-8")
            save_list(folder, {**(read_list(folder) or {}), name: file.stat().st_size})
