"""pyarrow with looser types: its stubs know neither a scalar beside an array nor the newest options."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute
import pyarrow.csv
import pyarrow.json

Array: TypeAlias = Any
"""A `pyarrow.Array`."""

Chunked: TypeAlias = Any
"""A `pyarrow.ChunkedArray`."""

pc: Any = pyarrow.compute
pcsv: Any = pyarrow.csv
pjson: Any = pyarrow.json
