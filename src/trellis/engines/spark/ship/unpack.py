"""The stand-in that Spark's workers import as `trellis` where it was sent to them: unpacks the package, and gives way.

In the archive that `ship.ship` makes, this file is `trellis/__init__.py`, `trellis.caches` lies beside it, and the
package lies in the folder `PACKAGE`. It is unpacked because Numba keeps what it compiles for files only, and to a
place that stays, so that a machine compiles a kernel once and not in each application.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from trellis.caches import cache_directory, is_trusted, temporary_directory

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
        Below the user's caches; without them below the worker's own directory; where others may write there, in a
        directory that goes away with this process.

    Raises
    ------
    OSError
        If none can be written.
    """
    for find in (lambda: cache_directory("sent"), _own_directory):
        place = find()
        if place is None:
            continue
        home = place / archive.stem
        with suppress(OSError):
            if not home.is_dir():
                _unpack(archive, home)
            if is_trusted(home):
                return home / PACKAGE
    home = temporary_directory() / archive.stem
    _unpack(archive, home)
    return home / PACKAGE


def _own_directory() -> Path | None:
    """Return a directory in the worker's, if nobody else may write there."""
    place = Path.cwd() / "trellis-sent"
    try:
        place.mkdir(0o700, exist_ok=True)
        return place if is_trusted(place) else None
    except OSError:
        return None


def _unpack(archive: Path, home: Path) -> None:
    """Unpack an archive wholly or not at all; several workers may do it at once."""
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
    del sys.modules[__name__], sys.modules[f"{__name__}.caches"]
    importlib.invalidate_caches()
    importlib.import_module(__name__)
