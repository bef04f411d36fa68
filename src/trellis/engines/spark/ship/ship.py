"""Trellis for Spark's executors: the package as one file, sent along with a session that runs elsewhere."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from weakref import WeakSet

from pyspark.sql import SparkSession

from trellis import caches, errors
from trellis.caches import temporary_directory
from trellis.engines.spark.session.masters import is_connect
from trellis.engines.spark.ship import unpack
from trellis.errors import UsageError

_ROOT = Path(__file__).parents[3]  # the package
_LEFT_OUT = ("__pycache__", "cli")
_NOT_NAMED = "python3"  # that Spark takes where nobody says which
_HAS_TRELLIS = "from importlib.util import find_spec as f; assert f('trellis') and f('numba') and f('pyarrow')"
_served: WeakSet[SparkSession] = WeakSet()


def ship(session: SparkSession) -> None:
    """Send this very Trellis to the workers of a session, once, unless they are on this machine anyway.

    The executors then need the packages that Trellis builds on, but not Trellis, and what runs there is what runs
    here, even if they have another version of it. On Spark Connect it belongs to the session, else to the application.
    """
    if session in _served:
        return
    if _is_own_server(session):
        _check_python_of_server()
    elif is_connect(session) or not _is_local(session):  # whose workers may have another Python
        before = list(sys.path)
        session.addArtifacts(str(package(temporary_directory())), pyfile=True)
        sys.path[:] = before  # Spark puts the file there too, for nothing
    _name_python(session)
    _served.add(session)


def _name_python(session: SparkSession) -> None:
    """Have workers on this machine run this Python, where nobody named one: the `python3` of the PATH may be another.

    That of workers elsewhere is for whoever starts the session to say; on Spark Connect, for the server.
    """
    context = getattr(session, "_sc", None)
    is_here = str(session.conf.get("spark.master", "")).startswith("local")
    if context is not None and is_here and "PYSPARK_PYTHON" not in os.environ and context.pythonExec == _NOT_NAMED:
        context.pythonExec = sys.executable or _NOT_NAMED


def package(directory: str | os.PathLike[str]) -> Path:
    """Write Trellis into a file that `spark-submit --py-files` and `addArtifacts(pyfile=True)` take.

    Returns
    -------
    pathlib.Path
        The file. Its name has the version and a digest of what is in it.
    """
    content = _zipped()
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = Path(directory) / f"trellis-{digest}.zip"
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as fresh:
        fresh.write(content)
    os.chmod(fresh.name, 0o644)
    os.replace(fresh.name, path)
    return path


def _zipped() -> bytes:
    """Return the archive; the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for first, module in (("__init__", unpack), ("caches", caches), ("errors", errors)):
            archive.writestr(zipfile.ZipInfo(f"trellis/{first}.py"), Path(str(module.__file__)).read_bytes())
        for path in sorted(_ROOT.rglob("*")):
            name = path.relative_to(_ROOT)
            if path.is_file() and not any(part in _LEFT_OUT or part.startswith(".") for part in name.parts):
                info = zipfile.ZipInfo(f"{unpack.PACKAGE}/trellis/{name.as_posix()}")
                archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _is_own_server(session: SparkSession) -> bool:
    """Whether the session is of a Spark Connect server that Spark has started for this process."""
    return is_connect(session) and "SPARK_LOCAL_REMOTE" in os.environ and _is_local(session)


def _is_local(session: SparkSession) -> bool:
    master = str(session.conf.get("spark.master", ""))
    return master.startswith("local") and not master.startswith("local-cluster")


def _check_python_of_server() -> None:
    """Refuse a server on this machine whose workers run a Python without Trellis: it cannot be given another one.

    Raises
    ------
    trellis.errors.UsageError
        The server was started without PYSPARK_PYTHON, and the `python3` of the PATH has no Trellis.
    """
    if "PYSPARK_PYTHON" in os.environ:
        return
    python = shutil.which(_NOT_NAMED)
    if python is None or Path(python).parent == Path(sys.executable).parent:
        return
    if subprocess.run([python, "-c", _HAS_TRELLIS], capture_output=True).returncode:
        what = f"the workers of this Spark Connect server run {python}, which has no Trellis"
        raise UsageError(what, f"Set PYSPARK_PYTHON={sys.executable} before the session starts.")
