"""The algorithms and constructions by name: which there are, and which go together."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.errors import UsageError, did_you_mean

AUTO, RANKS, JOIN, SPARK = "auto", "ranks", "join", "spark"
ALGORITHMS = (AUTO, RANKS, JOIN)
CONSTRUCTIONS = (AUTO, SPARK)


def check_methods(algorithm: str, construction: str, engine: str) -> None:
    """Refuse an algorithm or construction that does not exist, or does not run on an engine.

    Parameters
    ----------
    algorithm
        How trends are listed: `ranks` (what `auto` takes) or `join`, the ABI paper's Algorithm 2.
    construction
        How the attribute index of `join` is built: in kernels (`auto`), or by Spark's own operations (`spark`).
    engine
        `local` or `spark`.

    Raises
    ------
    UsageError
        If there is no such name, or these do not go together.
    """
    _check_name("algorithm", algorithm, ALGORITHMS)
    _check_name("construction", construction, CONSTRUCTIONS)
    if algorithm == JOIN and engine != "spark":
        raise UsageError(
            "the algorithm `join` joins data frames of Spark, and the query runs in this process",
            "Use engine spark, or leave the algorithm out.",
        )
    if construction == SPARK and algorithm != JOIN:
        raise UsageError(
            "the construction `spark` builds the index for the algorithm `join`",
            "Ask for algorithm join too, or leave the construction out.",
        )


def _check_name(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        names = f"{', '.join(known[:-1])} and {known[-1]}"
        near = did_you_mean(name, known)
        raise UsageError(f"there is no {what} `{name}`", " ".join(filter(None, [near, f"There are {names}."])))
