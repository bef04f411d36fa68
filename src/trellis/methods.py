"""The algorithms and constructions by name: which there are, and which go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trellis.errors import UsageError, did_you_mean
from trellis.plan.plan import Plan
from trellis.plan.sequence import sequence_of

AUTO, RANKS, JOIN, SPARK = "auto", "ranks", "join", "spark"
WALK, TREE, CONDENSED = OF_SEQUENCES = "walk", "tree", "condensed"
ALGORITHMS = (AUTO, RANKS, JOIN, *OF_SEQUENCES)
CONSTRUCTIONS = (AUTO, SPARK)


def check_methods(algorithm: str, construction: str, engine: str) -> None:
    """Refuse an algorithm or construction that does not exist, or does not run on an engine.

    Parameters
    ----------
    algorithm
        How results are found. Trends: `ranks` (what `auto` takes) or `join`, the ABI paper's Algorithm 2. Fixed
        sequences: `walk` (what `auto` takes), `tree`, a tree plan, or `condensed`, one with condensed composition.
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


def with_algorithm(plan: Plan, algorithm: str) -> Plan:
    """Return a plan that says how results are found; refuse what is for sequences where the pattern is none."""
    sequence = sequence_of(plan) if algorithm in OF_SEQUENCES else None
    if algorithm in (TREE, CONDENSED) and sequence is not None and any(sequence.absent):
        raise UsageError(f"the algorithm `{algorithm}` takes no NOT", "Leave the algorithm out, or use walk.")
    if algorithm in OF_SEQUENCES and sequence is None:
        raise UsageError(
            f"the algorithm `{algorithm}` is for fixed sequences such as SEQ(A a, B b), whose conditions compare two "
            "variables each",
            "Leave the algorithm out.",
        )
    return replace(plan, algorithm=algorithm)


def _check_name(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        names = f"{', '.join(known[:-1])} and {known[-1]}"
        near = did_you_mean(name, known)
        raise UsageError(f"there is no {what} `{name}`", " ".join(filter(None, [near, f"There are {names}."])))
