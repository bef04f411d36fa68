"""Texts, read as streams of words: one row per word, with its position.

A word is a run of letters, with apostrophes inside, in lower case. The format has no extension of its own: any file is
read so with the input format `text`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.errors import DataError
from trellis.io.failures import check_columns
from trellis.io.sources import Source, open_source

BLOCK = 1 << 20
POSITION, WORD = "position", "word"
WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def read_words(source: Source, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the words of a text, numbered from 0."""
    try:
        with open_source(source) as stream:
            parts = [pa.array(WORDS.findall(text.lower()), pa.string()) for text in pieces(stream)]
    except UnicodeDecodeError:
        raise DataError(f"{source.path} is not UTF-8 text.", "Save the file as UTF-8.") from None
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{source.path} cannot be read: {problem}.") from None
    check_columns(source.path, [POSITION, WORD], columns)
    words = pa.chunked_array(parts, pa.string())
    table = pa.table({POSITION: pa.array(np.arange(len(words))), WORD: words})
    return table if columns is None else table.select(list(columns))


def numbered(table: pa.Table) -> pa.Table:
    """Number words anew, after texts were put one behind the other."""
    place = table.column_names.index(POSITION) if POSITION in table.column_names else -1
    return table if place < 0 else table.set_column(place, POSITION, pa.array(np.arange(table.num_rows)))


def pieces(stream: Any, block_size: int = BLOCK) -> Iterator[str]:
    """Yield a text in pieces that end between words, read by so many bytes."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    while block := stream.read(block_size):
        text = rest + decoder.decode(bytes(block))
        cut = max(text.rfind(" "), text.rfind("\n")) + 1
        rest = text[cut:]
        yield text[:cut]
    yield rest + decoder.decode(b"", True)
