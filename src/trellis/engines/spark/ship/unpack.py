"""The stand-in that Spark's workers import as `trellis` where it was sent to them: unpacks the package, and gives way.

In the archive that `ship.ship` makes, this file is `trellis/__init__.py`, and the package lies in the folder `PACKAGE`.
It is unpacked because Numba keeps what it compiles for files only, and to a place that stays, so that a machine
compiles a kernel once and not in each application. There is nothing to import here but Python itself.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PACKAGE = "package"


def unpacked(archive: Path) -> Path:
    """Return the directory that holds the package of an archive, unpacked if that has not been done before.

    Parameters
    ----------
    archive
        The file; its name tells what is in it.

    Returns
    -------
    pathlib.Path
        Below `XDG_CACHE_HOME` or `~/.cache`; where that cannot be written, below the worker's own directory.

    Raises
    ------
    OSError
        If neither can be written.
    """
    problem: OSError | None = None
    for place in _places():
        home = place / archive.stem
        try:
            if not home.is_dir():
                _unpack(archive, home)
        except OSError as error:
            problem = error
            continue
        return home / PACKAGE
    assert problem is not None
    raise problem


def _places() -> Iterator[Path]:
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "trellis" / "sent"
    yield Path.cwd() / "trellis-sent"


def _unpack(archive: Path, home: Path) -> None:
    """Unpack an archive wholly or not at all; several workers may do it at once."""
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = tempfile.mkdtemp(dir=home.parent)
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(fresh, [name for name in packed.namelist() if name.startswith(f"{PACKAGE}/")])
        os.rename(fresh, home)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not home.is_dir():  # nor has another worker made it
            raise


if __name__ == "trellis":
    sys.path.insert(0, str(unpacked(Path(__file__).parents[1])))
    del sys.modules[__name__]
    importlib.invalidate_caches()
    importlib.import_module(__name__)
