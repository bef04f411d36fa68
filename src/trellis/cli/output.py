"""The directory of `--out`: checked before any work, and clean after an interruption."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trellis.cli.options import OutputOptions
from trellis.errors import UsageError


@contextmanager
def checked_target(output: OutputOptions) -> Iterator[None]:
    """Refuse a target that cannot be written, before any work; leave nothing half-written beside it after an error.

    A task of Spark's may go on for a moment after Ctrl-C and write again into the hidden directory that had been
    removed, so what is new there goes once the engine has stopped.
    """
    if output.out is None:
        if output.overwrite:
            raise UsageError("--overwrite is for --out", "Name the directory to write with --out.")
        yield
        return
    from trellis.io.results import check_target

    check_target(output.out, output.format, output.overwrite)
    before = _hidden(output.out)
    try:
        yield
    except BaseException:
        for path in _hidden(output.out) - before:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _hidden(target: str) -> set[Path]:
    """Return the hidden directories that `trellis.io.results.whole_directory` makes for a target."""
    path = Path(target)
    return {p for p in path.parent.glob(f".{glob.escape(path.name)}.*") if p.is_dir()}
