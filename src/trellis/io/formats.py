"""The format of a file, by its name."""

from __future__ import annotations

from dataclasses import dataclass

EXTENSIONS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".xes": "xes",
}
"""The extensions that are known, with the format each stands for."""

FORMATS = ("parquet", "csv", "tsv", "json", "orc", "xes", "text")
"""The formats that are known; `json` is JSON lines, one object a line, and `text` the words of a text."""

COMPRESSIBLE = ("csv", "tsv", "json", "xes", "text")
"""The formats that may lie in a gzip file (`.csv.gz`); the others compress inside."""


@dataclass(frozen=True)
class FileFormat:
    """A format, and whether gzip is wrapped around it."""

    name: str
    gzip: bool = False


READ_ONLY = ("xes", "text")
"""The formats that are read and not written."""


def known_extensions(writing: bool = False) -> str:
    """Return the known extensions as a list for messages."""
    return ", ".join(ext for ext, name in EXTENSIONS.items() if not writing or name not in READ_ONLY)


def format_of(name: str) -> FileFormat | None:
    """Return the format that a path or the name of a file tells, in upper or lower case, or None.

    Returns
    -------
    FileFormat or None
        None where the extension is unknown, or is `.gz` around a format that is not read that way.
    """
    folded = name.lower()
    gzip = folded.endswith(".gz")
    inner = folded[: -len(".gz")] if gzip else folded
    for extension, known in EXTENSIONS.items():
        if inner.endswith(extension):
            return FileFormat(known, gzip) if not gzip or known in COMPRESSIBLE else None
    return None
