"""Numba's cache after an upgrade: an index that names a class that is gone is out of date, and not an error.

Numba reads an index before it looks whether it belongs to the sources as they are.
"""

from __future__ import annotations

from typing import Any

from numba.core.caching import IndexDataCacheFile

_load_index = IndexDataCacheFile._load_index


def _load_current_index(self: IndexDataCacheFile) -> dict[Any, str]:
    try:
        return _load_index(self)
    except (AttributeError, ImportError, TypeError):  # classes of an earlier version: what is there is written anew
        return {}


def pass_over_stale_indexes() -> None:
    """Have Numba compile again where its cache was written by a version with other classes."""
    IndexDataCacheFile._load_index = _load_current_index
