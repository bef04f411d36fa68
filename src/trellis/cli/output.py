"""The directory of `--out`: claimed before any work, and given free once the engine has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trellis.cli.options import EventOptions, OutputOptions
from trellis.errors import UsageError

if TYPE_CHECKING:
    from trellis.io.outputs import OutputTarget


@contextmanager
def claimed_target(output: OutputOptions, events: EventOptions) -> Iterator[OutputTarget | None]:
    """Claim the directory of `--out`, if there is one, and refuse it where it must not be written.

    A task of Spark's may go on for a moment after Ctrl-C and write into the hidden directory of the output, so the
    claim ends, and the directory goes, after the engine has stopped.
    """
    if output.out is None:
        if output.overwrite:
            raise UsageError("--overwrite is for --out", "Name the directory to write with --out.")
        if output.raw_csv:
            raise UsageError("--raw-csv is for --out", "Name the directory to write with --out.")
        yield None
        return
    from trellis.io.outputs import claimed
    from trellis.io.results import check_format

    check_format(output.format, output.raw_csv)
    with claimed(output.out, overwrite=output.overwrite, inputs=events.named) as target:
        yield target
