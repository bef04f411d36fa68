"""Problems of the Python of Spark's workers, found in the text of Spark's exception and said in a sentence."""

from __future__ import annotations

import re

from trellis.errors import UsageError

NEEDED = ("numba", "numpy", "pyarrow")
"""The packages that a worker needs besides those of Python and Spark; Trellis itself is sent to it."""

_NEEDED = f"{', '.join(NEEDED[:-1])} and {NEEDED[-1]}"
_WHERE = "The README says how to run on a cluster, and what an executor needs."
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '((?!trellis\.)[^'.]+)", re.MULTILINE)
_UNFIT = re.compile(r"^ImportError: ((?!.*trellis).+)$", re.MULTILINE)
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?(\d+\.\d+)[^\n]*?(\d+\.\d+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)".*?: (?:error=\d+, )?(.+)')
_NO_PYTHON = re.compile(r"reading the port number from pyspark\.daemon's stdout")


def lacking(problem: BaseException) -> UsageError | None:
    """Return the error about a package or version that workers lack, if a job of Spark's failed for that.

    Parameters
    ----------
    problem
        What Spark raised.

    Returns
    -------
    trellis.errors.UsageError or None
        What is wrong and what to do.
    """
    said = str(problem)
    if found := _VERSIONS.search(said):
        what = f"Spark's workers run Python {found[1]}, and this is Python {found[2]}"
        return UsageError(what, _name("another one"))
    if found := _MISSING.search(said):
        return UsageError(f"the Python of Spark's workers has no package `{found[1]}`", _missing_hint(found[1]))
    if found := _UNFIT.search(said):
        what = f"a package of the Python of Spark's workers is too old or broken: {found[1].rstrip('.')}"
        return UsageError(what, f"Install {_NEEDED} there in the versions that are here. {_WHERE}")
    if found := _NO_PROGRAM.search(said):
        return UsageError(f"Spark's workers cannot run `{found[1]}`: {found[2]}", _name("the Python they have"))
    if _NO_PYTHON.search(said):
        return UsageError("the Python of Spark's workers does not start", _name("one that does"))
    return None


def _missing_hint(package: str) -> str:
    if package == "trellis":
        return _name("this Python", "Install it there, or name")
    return f"Install {_NEEDED} there, or send an environment that has them along. {_WHERE}"


def _name(which: str, beginning: str = "Name") -> str:
    return f"{beginning} {which}, by PYSPARK_PYTHON or --conf spark.pyspark.python. {_WHERE}"
