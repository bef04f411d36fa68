"""The fresh process of `memory_of`: does a piece of work twice and prints by how many bytes the peak grew."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    module, function, arguments = sys.argv[1:]
    work = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    work()
    _give_back()
    before = _kilobytes("VmRSS")
    # The peak so far is forgotten. (`ru_maxrss` cannot forget: it even remembers the process that started this one.)
    Path("/proc/self/clear_refs").write_text("5")
    work()
    print((_kilobytes("VmHWM") - before) * 1024)


def _give_back() -> None:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kilobytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status does not tell {name}")


if __name__ == "__main__":
    main()
