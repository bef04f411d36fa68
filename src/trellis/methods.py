"""The algorithms and constructions by name: which there are, and which go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

from trellis.arguments import size_in_bytes
from trellis.errors import UsageError, did_you_mean
from trellis.limits import DEFAULT_MAX_TRENDS
from trellis.plan.choice import JOIN, OF_SEQUENCES, RANKS, with_algorithm
from trellis.plan.papers import NAMED
from trellis.plan.plan import Plan
from trellis.plan.settings import AlgorithmSettings
from trellis.plan.sizes import USUAL, Sizes
from trellis.plan.spec import AUTO

SPARK = "spark"
ALGORITHMS = (AUTO, RANKS, JOIN, *NAMED, *OF_SEQUENCES)
OF_NAMED = ("dynamic", "dynamic-range", "parallel")
CONSTRUCTIONS = (AUTO, *OF_NAMED, SPARK)
OPTIMIZERS = (AUTO, "exhaustive", "bnb-paper", "bnb", "greedy")


@dataclass(frozen=True)
class Methods:
    """How results are to be found.

    Attributes
    ----------
    algorithm
        Trends: `ranks` (what `auto` takes), `join` (the ABI paper's Algorithm 2, on Spark), or a name of
        `trellis.plan.papers`. Fixed sequences: `walk` (what `auto` takes), `tree` or `condensed`.
    construction
        How the graph is built: `auto`; for named algorithms `dynamic`, `dynamic-range` or `parallel`; for `join` by
        `spark`.
    anchors
        How many anchors `anchor` takes.
    memory_limit
        What matches so far, or what is held in their place, may take before a query is refused: a number of bytes, or
        a text such as `2G` or `512MB`; by default 1 GB, of graphs of trends 2 GB, and of what finds trends by their
        ranks 4 GB. For a named algorithm, what the partial trends that it stores may take; by default all there is.
    optimizer
        How the plan of `h-cet` is chosen.
    sizes
        The sizes at which operators change their way; results do not depend on them.
    """

    algorithm: str = AUTO
    construction: str = AUTO
    anchors: int | None = None
    memory_limit: int | str | None = None
    optimizer: str = AUTO
    sizes: Sizes = USUAL

    def settings(self, max_trends: int = DEFAULT_MAX_TRENDS) -> AlgorithmSettings:
        """Return the settings of the algorithm, as a plan carries them."""
        limit = None if self.memory_limit is None else size_in_bytes(self.memory_limit, "the memory limit")
        return AlgorithmSettings(self.anchors, limit, self.optimizer, self.construction, max_trends=max_trends)


def methods_of(methods: Methods | None, by_name: Mapping[str, Any], called: Callable[..., Any]) -> Methods:
    """Return methods that are given in one object, or field by field.

    Parameters
    ----------
    methods, by_name
        The object, or fields by name.
    called
        The function that was called; its own options are named where there is no such field.

    Raises
    ------
    UsageError
        If they are given in both ways, or there is no such field.
    """
    if methods is None and not by_name:
        return Methods()
    known = [field.name for field in fields(Methods)]
    for name in by_name:
        if name not in known:
            *options, last = [p.name for p in signature(called).parameters.values() if p.kind is p.KEYWORD_ONLY]
            every = f"Options are {', '.join(options)} and {last}."
            hint = did_you_mean(name, (*options, last, *known), every)
            raise UsageError(f"{called.__name__}() has no option `{name}`", hint)
    if methods is None:
        return Methods(**by_name)
    if by_name:
        raise UsageError(f"methods= and {', '.join(by_name)}= are given together", "Put all of them into methods=.")
    if not isinstance(methods, Methods):
        raise UsageError(f"methods is of the type {type(methods).__name__}", "Give trellis.Methods(algorithm=...).")
    return methods


def check_methods(methods: Methods, engine: str) -> None:
    """Refuse methods that do not exist, do not run on an engine, or have no effect.

    Parameters
    ----------
    methods
        The methods that the user chose.
    engine
        `local` or `spark`.

    Raises
    ------
    UsageError
        If there is no such name, a number is none, or these do not go together.
    """
    algorithm, construction = methods.algorithm, methods.construction
    _check_name("algorithm", algorithm, ALGORITHMS)
    _check_name("construction", construction, CONSTRUCTIONS)
    _check_name("optimizer", methods.optimizer, OPTIMIZERS)
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
    if construction in OF_NAMED and algorithm not in NAMED:
        raise UsageError(
            f"the construction `{construction}` builds the graph of a named algorithm, not of `{algorithm}`",
            f"Ask for one of the algorithms {', '.join(NAMED)} too, or leave the construction out.",
        )
    _check_settings(methods)


def _check_settings(methods: Methods) -> None:
    """Refuse settings that are wrong, or that the algorithm has no use for."""
    if methods.memory_limit is not None:
        size_in_bytes(methods.memory_limit, "the memory limit")
    anchors = methods.anchors
    if anchors is not None and not _is_number_from_one(anchors):
        raise UsageError(f"there cannot be {anchors!r} anchors", "Give a whole number from 1 on.")
    given = {"anchors": anchors is not None, "optimizer": methods.optimizer != AUTO}
    for setting, is_given in given.items():
        users = [name for name, named in NAMED.items() if setting in named.uses]
        if is_given and methods.algorithm not in users:
            raise UsageError(
                f"the algorithm `{methods.algorithm}` has no use for {setting}",
                f"Ask for algorithm {' or '.join(users) or 'auto'}, or leave {setting} out.",
            )


def _is_number_from_one(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def with_methods(plan: Plan, methods: Methods, max_trends: int = DEFAULT_MAX_TRENDS) -> Plan:
    """Return a plan that says how results are found; refuse an algorithm that is not for such a query."""
    settings, sizes = methods.settings(max_trends), methods.sizes
    if settings.memory_limit is not None and methods.algorithm not in NAMED:
        sizes = sizes.within(settings.memory_limit)
    plan = replace(plan, sizes=sizes)
    if (plan.operator.algorithm, plan.operator.settings) == (methods.algorithm, settings):
        return plan  # as it is chosen already
    return with_algorithm(plan, methods.algorithm, settings)


def _check_name(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        names = f"{', '.join(known[:-1])} and {known[-1]}"
        near = did_you_mean(name, known)
        raise UsageError(f"there is no {what} `{name}`", " ".join(filter(None, [near, f"There are {names}."])))
