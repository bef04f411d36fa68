"""From what the user names (files, directories, globs) to the list of files to read."""

from __future__ import annotations

import difflib
import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.errors import DataError, UsageError, did_you_mean
from trellis.io.formats import COMPRESSIBLE, EXTENSIONS, FORMATS, FileFormat, format_of, known_extensions
from trellis.io.outputs import LIST, uncounted
from trellis.io.partitions import keys_between

SMALL = 64_000_000  # bytes of files that this process reads, unless Spark is asked for
WRITTEN_BY_SPARK = ("_SUCCESS", "_spark_metadata")

PathLike = str | os.PathLike[str]
Paths = PathLike | Iterable[PathLike]


@dataclass(frozen=True)
class Source:
    """One file to read.

    Parameters
    ----------
    path
        Where it is.
    format
        One of `trellis.io.formats.FORMATS`.
    gzip
        Whether it is to be unpacked first.
    delimiter
        What stands between the fields of CSV, where the user says it.
    root
        The directory that was named, where it is partitioned: the folders between it and the file say `COLUMN=VALUE`.
    """

    path: Path
    format: str
    gzip: bool = False
    delimiter: str | None = None
    root: Path | None = None

    def separated_by(self, sign: str | None) -> Source:
        r"""Return the file with what the user says is between its fields; a tab may be written `\t`.

        Raises
        ------
        UsageError
            If it is no one sign that can stand there.
        """
        sign = "\t" if sign == "\\t" else sign
        if sign is not None and (len(sign) != 1 or sign in '"\r\n' or not sign.isascii()):
            raise UsageError(f"the delimiter {sign!r} is not one sign", "Write `;`, `|`, `\\t` or another ASCII sign.")
        return replace(self, delimiter=sign)

    @property
    def keys(self) -> dict[str, str | None]:
        """The columns that the folders say, with their values as text; see `trellis.io.partitions`."""
        return {} if self.root is None else keys_between(self.root, self.path)


def expand(paths: Paths, input_format: str | None = None) -> list[Source]:
    """Find the files that the user means.

    Parameters
    ----------
    paths
        A file, directory or glob, or several. Directories are searched with their subdirectories; in them and
        in globs, names that begin with `_` or `.` are left out.
    input_format
        The format of all files; without one, their extensions tell. `jsonl` and `ndjson` mean `json`.

    Returns
    -------
    list of Source
        In the order given; what one directory or glob holds is sorted by path, and no file comes twice.

    Raises
    ------
    DataError
        If a file is missing, nothing matches, an extension is unknown or the formats are mixed.
    UsageError
        If `input_format` is unknown.
    """
    forced = None if input_format is None else _named_format(input_format)
    named = [os.fspath(p) for p in _as_list(paths)]
    if not named:
        raise UsageError("No events were given.", "Name one or more files, directories or globs.")
    found: dict[str, tuple[Path, Path | None]] = {}
    for name in named:
        root = _root(name)
        for path in _files(name):
            found.setdefault(os.path.realpath(path), (path, root if root and keys_between(root, path) else None))
    sources = [_source(path, forced, root) for path, root in found.values()]
    _check_one_format(sources)
    return sources


def are_small(tables: Iterable[list[str]], input_format: str | None = None) -> bool:
    """Return whether the files of some tables are so few bytes that starting Spark would take longer than the work.

    Directories that Spark wrote and other storage are left to Spark.

    Raises
    ------
    DataError
        As `expand` does.
    """
    tables = [[*paths] for paths in tables]
    named = [path for paths in tables for path in paths]
    if any("://" in path or (Path(path) / mark).exists() for path in named for mark in WRITTEN_BY_SPARK):
        return False
    sources = [source for paths in tables for source in expand(paths, input_format)]
    return sum(source.path.stat().st_size for source in sources) < SMALL


SQL_BEGINS = ("select", "with", "from", "table", "values")
_SQL = re.compile(rf"\s*({'|'.join(SQL_BEGINS)})\s", re.IGNORECASE)
_NAME = r"(?:[^\W\d]\w*|`[^`]+`)"
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME})*")


def is_sql(text: str) -> bool:
    """Return whether a text is SQL that gives rows."""
    return _SQL.match(text) is not None


def is_table(text: str, known: bool) -> bool:
    """Return whether a text stands for a table of Spark's or for SQL, and not for files.

    Parameters
    ----------
    text
        What was given as events.
    known
        Whether there is a session; without one, a single word is the name of a file that is missing, and so is what
        a file is called like.
    """
    if os.path.exists(text) or "://" in text:
        return False
    if is_sql(text):
        return True
    if _TABLE.fullmatch(text) is None or format_of(text) is not None:
        return False
    return known or ("." in text and not difflib.get_close_matches(text, os.listdir(), cutoff=0.8))


def open_source(source: Source) -> Any:
    """Open a file as a stream of pyarrow's, unpacked."""
    packed = pa.OSFile(str(source.path), "rb")
    return pa.CompressedInputStream(packed, "gzip") if source.gzip else packed


def _as_list(paths: Paths) -> list[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def _named_format(name: str) -> str:
    folded = name.lower()
    if folded in FORMATS:
        return folded
    if f".{folded}" in EXTENSIONS:
        return EXTENSIONS[f".{folded}"]
    known = f"Known formats: {', '.join(FORMATS)}."
    raise UsageError(f"The input format `{name}` is unknown.", did_you_mean(name, FORMATS, known))


def _root(name: str) -> Path | None:
    """Return the directory below which folders may say columns: the one that is named, or that a glob begins with."""
    path = Path(name)
    if path.exists():
        return path if path.is_dir() else None
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts[:-1])
    return Path(*plain)


def _files(name: str) -> list[Path]:
    path = Path(name)
    if "://" in name:
        hint = "Use the Spark engine for remote files, or copy them here first."
        raise DataError(f"{name} is not a local file, and only local ones can be read here.", hint)
    if path.is_dir():
        return _some(_with_content(sorted(_walk(path))), f"The directory {name} holds no files of events.")
    if path.exists():
        return [path]
    found = sorted(_matches(name)) if glob.has_magic(name) else []
    if not found:
        _refuse_misspelt_sql(name)
    if glob.has_magic(name):
        return _some(found, f"No files match {name}.")
    raise _missing(path)


def _refuse_misspelt_sql(text: str) -> None:
    """Refuse a text that is no file and was meant as SQL."""
    word, _, rest = text.strip().partition(" ")
    if len(rest.split()) > 1 and difflib.get_close_matches(word.lower(), SQL_BEGINS, cutoff=0.7):
        begins = ", ".join(one.upper() for one in SQL_BEGINS)
        raise DataError(
            f"`{text}` is no file, and SQL does not begin with `{word}`.",
            did_you_mean(word.upper(), [one.upper() for one in SQL_BEGINS], f"SQL begins with one of {begins}."),
        )


def _some(files: list[Path], otherwise: str) -> list[Path]:
    if not files:
        raise DataError(otherwise, "Names that begin with `_` or `.` are left out.")
    return files


def _with_content(files: list[Path]) -> list[Path]:
    """Leave out the part files of Hadoop's that hold not a byte, as Spark does, where others hold something."""
    return [path for path in files if not _is_empty_part(path)] or files


def _is_empty_part(path: Path) -> bool:
    return path.name.startswith("part-") and path.stat().st_size == 0


def _walk(directory: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(directory, onerror=_raise_unreadable, followlinks=True):
        subfolders[:] = [s for s in subfolders if not _is_hidden(s)]
        left_out = _uncounted(folder) if LIST in names else set()
        yield from (Path(folder, n) for n in names if not _is_hidden(n) and n not in left_out)


def _uncounted(folder: str) -> set[str]:
    try:
        return uncounted(Path(folder))
    except DataError:
        return set()  # a file of that name from elsewhere, which is left out like all with an underscore


def _raise_unreadable(error: OSError) -> None:
    raise DataError(f"The directory {error.filename} cannot be read: {error.strerror}.")


def _matches(pattern: str) -> Iterator[Path]:
    hidden_wanted = _is_hidden(os.path.basename(pattern))
    for path in map(Path, glob.glob(pattern, recursive=True)):
        if _is_hidden(path.name) and not hidden_wanted:
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _missing(path: Path) -> DataError:
    aside = path.parent / f".{path.name}.trellis" / "old"  # see trellis.io.outputs
    if aside.is_dir():
        return DataError(
            f"There is no file {path}: it was being replaced when a run was killed.",
            f"What it was is in {aside}; the next run with --out {path} brings it back.",
        )
    try:
        neighbours = os.listdir(path.parent)
    except OSError:
        return DataError(f"There is no file {path}.", f"The folder {path.parent} does not exist or cannot be read.")
    otherwise = f"No file in {_folder(path)} has a similar name."
    return DataError(f"There is no file {path}.", did_you_mean(path.name, neighbours, otherwise))


def _folder(path: Path) -> str:
    return "the working directory" if path.parent == Path() else f"the folder {path.parent}"


def _source(path: Path, forced: str | None, root: Path | None) -> Source:
    format_ = format_of(path.name)
    if forced is not None:
        format_ = FileFormat(forced, forced in COMPRESSIBLE and path.name.lower().endswith(".gz"))
    if format_ is None:
        hint = f"Known extensions: {known_extensions()}; or say the format with --input-format."
        raise DataError(f"The format of {path} cannot be told from its name.", hint)
    return Source(path, format_.name, format_.gzip, root=root)


def _check_one_format(sources: list[Source]) -> None:
    first = sources[0]
    other = next((s for s in sources if s.format != first.format), None)
    if other is not None:
        both = f"{first.path} is {first.format}, {other.path} is {other.format}"
        raise DataError(f"The files have different formats: {both}.", "Read files of one format at a time.")
