"""Makes plans, and chooses the operator of each: the one place that decides how results are found.

The registry `OPERATORS` is gone through from the top: the first operator that goes by the algorithm that was asked for
and takes the query is the one. What only the events can tell (values that overflow, indexes that values forbid) is
stated beside it, with the operator that then takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from trellis.errors import UsageError
from trellis.language.bound import BoundQuery, ConditionKind, WindowKind
from trellis.language.once import once
from trellis.language.syntax import Report, Select
from trellis.plan import spec as o
from trellis.plan.automaton import build_automaton
from trellis.plan.carried import pattern_texts
from trellis.plan.extremes import Attributes, with_each_event
from trellis.plan.index_cost import cost_text, index_text
from trellis.plan.join import fixed_join, join_texts, least_bound
from trellis.plan.papers import NAMED
from trellis.plan.plan import Plan, is_one_kleene, read_columns
from trellis.plan.positions import position_graph
from trellis.plan.registers import check_so_far
from trellis.plan.rewrites import with_bounds, with_equal_neighbours, with_neighbours
from trellis.plan.sequence import depth_of_walk, fixed_sequence, sequence_texts
from trellis.plan.settings import AlgorithmSettings
from trellis.plan.spec import AUTO, OperatorSpec

RANKS, JOIN = "ranks", "join"
WALK, TREE, CONDENSED = OF_SEQUENCES = "walk", "tree", "condensed"  # how matches of fixed sequences are found
DEFAULTS = (AUTO, RANKS, JOIN)  # names that leave the choice to the plan
OTHER = "Leave the algorithm out, or change the query."

_UNCHOSEN = OperatorSpec("", "", "")


def make_plan(bound: BoundQuery, algorithm: str = AUTO, settings: AlgorithmSettings | None = None) -> Plan:
    """Return the plan of a bound query.

    Parameters
    ----------
    bound
        The query.
    algorithm
        The algorithm that is asked for, by name; by default the plan chooses.
    settings
        What is set of a named algorithm.

    Raises
    ------
    UsageError
        If the algorithm is not for such a query.
    """
    bound = with_equal_neighbours(with_neighbours(with_bounds(bound)))
    by_kind = {kind: tuple(c for c in bound.conditions if c.kind is kind) for kind in ConditionKind}
    constant, adjacent = by_kind[ConditionKind.CONSTANT], by_kind[ConditionKind.ADJACENT]
    other = by_kind[ConditionKind.ACROSS] + by_kind[ConditionKind.REST]
    automaton = build_automaton(bound.pattern)
    check_so_far(bound, automaton)
    plan = Plan(
        bound=bound,
        automaton=automaton,
        constant=constant,
        adjacent=adjacent,
        other=other,
        columns=read_columns(bound),
        keep_failing=Select.CONTIGUOUS in (bound.select, *automaton.policies),
        one_kleene=is_one_kleene(bound),
        positions=position_graph(automaton, bound, adjacent, other),
        sequence=fixed_sequence(automaton, bound, constant, other),
        join=fixed_join(bound),
        operator=_UNCHOSEN,
    )
    return with_algorithm(plan, algorithm, settings or AlgorithmSettings())


def pattern_plan(bound: BoundQuery) -> Plan:
    """Return the plan of a query with the operator that takes every pattern."""
    plan = make_plan(bound)
    return replace(plan, operator=of_patterns(plan))


@once
def plan_by_events(plan: Plan) -> tuple[Plan, Attributes] | None:
    """Return the plan that asks of each event what another asks of the greatest and least values; None for others.

    It means the same where the attributes that come with it are not NULL.
    """
    bound, attributes = with_each_event(plan.bound, plan.automaton)
    if not attributes or plan.algorithm != AUTO:
        return None
    return replace(pattern_plan(bound), columns=plan.columns, sizes=plan.sizes), attributes


def of_patterns(plan: Plan) -> OperatorSpec:
    """Return the operator that takes every pattern, with what was asked for."""
    return _pattern(plan, o.AUTO).requested(plan.algorithm, plan.settings)


def with_algorithm(plan: Plan, algorithm: str, settings: AlgorithmSettings) -> Plan:
    """Return the plan with the operator of an algorithm.

    Raises
    ------
    UsageError
        If the algorithm is not for such a query.
    """
    return replace(plan, operator=_choose(plan, algorithm).requested(algorithm, settings))


@dataclass(frozen=True)
class Entry:
    """An operator in the registry.

    Attributes
    ----------
    algorithms
        The algorithms by which it goes.
    refusal
        Says why it does not take a query, if it does not.
    spec
        Describes it for a query that it takes.
    """

    algorithms: tuple[str, ...]
    refusal: Callable[[Plan, str], UsageError | None]
    spec: Callable[[Plan, str], OperatorSpec]


def _choose(plan: Plan, algorithm: str) -> OperatorSpec:
    refusal: UsageError | None = None
    for entry in OPERATORS:
        if algorithm in entry.algorithms:
            refusal = entry.refusal(plan, algorithm)
            if refusal is None:
                return _with_few(plan, entry.spec(plan, algorithm), algorithm)
    raise refusal or AssertionError(f"no operator goes by the name of {algorithm}")


def _with_few(plan: Plan, spec: OperatorSpec, algorithm: str) -> OperatorSpec:
    """Let a walk find the matches of a fixed sequence in few events, if the operator that was chosen is another."""
    if plan.sequence is None or spec.name not in (o.PATTERNS, o.JOINS) or algorithm not in DEFAULTS:
        return spec
    if _refuse_per_event(plan) is not None:
        return spec
    return replace(spec, few=OperatorSpec(o.SEQUENCES, WALK, "events are few", sequence_texts(plan.sequence)))


# --- One Kleene variable ----------------------------------------------------------------------------------------


def _refuse_trends(plan: Plan, algorithm: str) -> UsageError | None:
    return None if plan.one_kleene else UsageError("the pattern is not one Kleene variable", OTHER)


def _trends(plan: Plan, algorithm: str) -> OperatorSpec:
    how = {"successors": index_text(plan), "counting": cost_text(plan)}
    reason = "one Kleene variable, each of whose events is compared with its neighbours only"
    bound = plan.bound
    indexed = bound.select is Select.ANY and bound.report is not Report.MAXIMAL and plan.relation.kind
    edges = OperatorSpec(o.TRENDS, o.EDGES, reason, how)
    if not indexed:
        return edges
    return OperatorSpec(o.TRENDS, o.INDEX, reason, how, otherwise=edges, unless="the values allow no index")


def _refuse_named(plan: Plan, algorithm: str) -> UsageError | None:
    bound, named = plan.bound, NAMED[algorithm]
    why = None
    if not plan.one_kleene:
        why = "finds the trends of one Kleene variable, and this pattern is another"
    elif bound.select is not Select.ANY:
        why = f"takes SELECT {Select.ANY} only"
    elif bound.window.kind is WindowKind.SPAN:
        why = "works on windows, and WITHIN without SLIDE is a span"
    elif bound.having or bound.filters:
        why = "takes no HAVING"
    elif bound.limit_per:
        why = "takes no LIMIT PER item"
    elif bound.after_match is not None:
        why = "takes no AFTER MATCH"
    elif bound.per_event is not None:
        why = "takes no AGGREGATE PER EVENT"
    elif bound.report not in named.reports:
        modes = " or ".join(str(mode) for mode in Report if mode in named.reports)
        why = f"takes REPORT {modes} only"
    return None if why is None else UsageError(f"the algorithm `{algorithm}` {why}", OTHER)


def _named(plan: Plan, algorithm: str) -> OperatorSpec:
    trends = _trends(plan, algorithm)
    return OperatorSpec(o.NAMED, algorithm, "the algorithm was asked for", trends.how)


# --- Fixed sequences --------------------------------------------------------------------------------------------

OVERFLOW = "a value that a condition computes overflows"


def _refuse_sequence(plan: Plan, algorithm: str) -> UsageError | None:
    if plan.sequence is None:
        return UsageError(
            f"the algorithm `{algorithm}` is for fixed sequences such as SEQ(A a, B b), whose conditions compare two "
            "variables each",
            "Leave the algorithm out.",
        )
    if algorithm in (TREE, CONDENSED) and any(plan.sequence.absent):
        return UsageError(f"the algorithm `{algorithm}` takes no NOT", "Leave the algorithm out, or use walk.")
    if algorithm in DEFAULTS and plan.positions is not None and plan.positions.indexable:
        return UsageError("an index for each step counts without going far", OTHER)
    if algorithm in DEFAULTS and _binds_fewer(plan):
        return UsageError("sums over candidates bind fewer variables than a walk", OTHER)
    return _refuse_per_event(plan)


def _refuse_per_event(plan: Plan) -> UsageError | None:
    if plan.bound.per_event is None:
        return None
    return UsageError("AGGREGATE PER EVENT goes over a graph of the matches, in both directions of time", OTHER)


def _binds_fewer(plan: Plan) -> bool:
    """Return whether a join counts a long sequence with fewer variables bound; candidates without partners are many."""
    sequence, join = plan.sequence, plan.join
    if sequence is None or join is None or plan.bound.window.kind is not WindowKind.WHOLE or any(sequence.absent):
        return False
    return not sequence.partition and least_bound(join) < depth_of_walk(sequence) > 1


def _sequence(plan: Plan, algorithm: str) -> OperatorSpec:
    assert plan.sequence is not None
    reason = "a fixed sequence whose conditions compare two variables each, not neighbours only"
    return _by_walk_or_tree(plan, algorithm, (o.SEQUENCES, o.TREE_PLAN), reason, sequence_texts(plan.sequence))


def _by_walk_or_tree(
    plan: Plan, algorithm: str, names: tuple[str, str], reason: str, how: dict[str, str]
) -> OperatorSpec:
    """Describe the operator that walks, or the one that goes by a tree plan, if that was asked for."""
    asked = algorithm in OF_SEQUENCES
    return OperatorSpec(
        names[algorithm in (TREE, CONDENSED)],
        algorithm if asked else WALK,
        "the algorithm was asked for" if asked else reason,
        how,
        otherwise=_pattern(plan, algorithm),
        unless=OVERFLOW,
    )


def _refuse_join(plan: Plan, algorithm: str) -> UsageError | None:
    join = plan.join
    if join is None:
        return UsageError(
            f"the algorithm `{algorithm}` is for fixed sequences such as SEQ(A a, B b), and for AND and OR of such, "
            f"under SELECT {Select.ANY}",
            "Leave the algorithm out.",
        )
    if algorithm in (TREE, CONDENSED):
        what = "NOT" if any(arm.gaps for arm in join.arms) else "OR" if len(join.arms) > 1 else ""
        if what:
            return UsageError(f"the algorithm `{algorithm}` takes no {what}", "Leave the algorithm out, or use walk.")
    if algorithm in DEFAULTS and plan.positions is not None and plan.positions.indexable:
        return UsageError("an index for each step counts without going far", OTHER)
    return _refuse_per_event(plan)


def _join(plan: Plan, algorithm: str) -> OperatorSpec:
    assert plan.join is not None
    reason = "a pattern without repetition: its variables are joined, in the order of time that it asks for"
    return _by_walk_or_tree(plan, algorithm, (o.JOINS, o.JOIN_TREE), reason, join_texts(plan.join))


# --- Any pattern ------------------------------------------------------------------------------------------------


def _takes_all(plan: Plan, algorithm: str) -> UsageError | None:
    return None


def _pattern(plan: Plan, algorithm: str) -> OperatorSpec:
    search = OperatorSpec(
        o.PATTERNS, o.SEARCH, "the pattern or its conditions look farther than neighbours", pattern_texts(plan, None)
    )
    graph = plan.positions
    if graph is None:
        return search
    how = pattern_texts(plan, graph)
    edges = OperatorSpec(o.PATTERNS, o.EDGES, "conditions look at neighbours and the first event only", how)
    if graph.anchored and not graph.indexable:
        edges = replace(edges, otherwise=search, unless=OVERFLOW)
    if not graph.indexable:
        return edges
    return OperatorSpec(
        o.PATTERNS, o.INDEX, "conditions look at neighbours only", how, otherwise=edges,
        unless="the values of a step allow no index",
    )  # fmt: skip


OPERATORS = (
    Entry(tuple(NAMED), _refuse_named, _named),
    Entry(DEFAULTS, _refuse_trends, _trends),
    Entry((*DEFAULTS, *OF_SEQUENCES), _refuse_sequence, _sequence),
    Entry((*DEFAULTS, *OF_SEQUENCES), _refuse_join, _join),
    Entry(DEFAULTS, _takes_all, _pattern),
)
