"""Tables, written to one file: all of it or nothing."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from trellis.errors import UsageError
from trellis.io.claims import claimed
from trellis.io.failures import writing
from trellis.io.formats import READ_ONLY, FileFormat, format_of, known_extensions
from trellis.io.outputs import PLACE, OutputTarget
from trellis.io.results import write_file

_ROWS = 64 * 1024
BINARY = ("parquet", "orc")


def write_table(table: pa.Table, path: PLACE, *, overwrite: bool = False) -> Path:
    """Write a table to a file whose extension tells the format.

    Values are written as those of results are; see `trellis.io.results.write_file`.

    Parameters
    ----------
    table
        What to write.
    path
        Where: `.parquet`, `.csv`, `.tsv`, `.json`, `.jsonl`, `.ndjson` or `.orc`; text also with `.gz`
        behind. It appears under this name when it is complete.
    overwrite
        Whether a file of this name may be replaced.

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    UsageError
        If the extension is unknown, the folder is missing, or the file exists.
    DataError
        If it cannot be written: no space, no permission, a type that the format lacks.
    """
    target = Path(path)
    with claimed_file(path, overwrite) as output, output.replacing() as temporary:
        file_format = _format(target)
        with writing(target), _open(temporary, file_format) as stream:
            rows = table if file_format.name in BINARY else _in_seconds(table)
            write_file(rows.to_batches(max_chunksize=_ROWS), rows.schema, stream, file_format.name)
    return target


@contextmanager
def claimed_file(path: PLACE, overwrite: bool) -> Iterator[OutputTarget]:
    """Claim a file for `write_table`, before there is a table; see `trellis.io.claims.claimed`.

    Raises
    ------
    UsageError
        If it cannot be written there.
    """
    if not isinstance(path, OutputTarget):
        _format(Path(path))
    with claimed(path, overwrite=overwrite, is_file=True) as output:
        yield output


def _format(target: Path) -> FileFormat:
    file_format = format_of(target.name)
    if file_format is None or file_format.name in READ_ONLY:
        what = f"The format of {target} cannot be told from its name."
        raise UsageError(what, f"Known extensions: {known_extensions(writing=True)}.")
    return file_format


@contextmanager
def _open(path: Path, file_format: FileFormat) -> Iterator[BinaryIO | gzip.GzipFile]:
    # pyarrow gets the open file, not its name: given a name, it would delete what it cannot write.
    with open(path, "wb") as file:
        if not file_format.gzip:
            yield file
            return
        # Neither name nor time inside, so that the same table gives the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed


def _in_seconds(table: pa.Table) -> pa.Table:
    """Return a table whose times are in seconds where none has a fraction, as text shows them then."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            with suppress(pa.ArrowInvalid):
                table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp("s", field.type.tz)))
    return table
