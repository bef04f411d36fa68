"""The questions behind features: each query asked PER EVENT, and the names and kinds of the numbers that it gives."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from trellis.api.query import Query
from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.bound import COUNTING, BoundQuery, NamedOutput
from trellis.language.outputs import exact
from trellis.language.parser import parse
from trellis.language.printer import name_text, to_query_text
from trellis.language.schema import Kind

STANDARD = "COUNT(*) AS count, SHARE AS share, MAX(LENGTH) AS longest, BEGINS AS begins, ENDS AS ends"
OF_PARTITION = "COUNT(*) AS partition_count, MAX(LENGTH) AS partition_longest"
NUMBERS = (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.UNKNOWN)


class FeatureKind(StrEnum):
    """How a number becomes a feature, and how those of an event's windows become one."""

    COUNT = "count"  # added up, then the logarithm of 1 more
    SUM = "sum"  # added up, then the logarithm of 1 more than its size, with its sign
    LEAST = "least"
    GREATEST = "greatest"
    MEAN = "mean"  # of one window


@dataclass(frozen=True)
class Feature:
    """A column of features.

    Attributes
    ----------
    name
        The name of the feature.
    column
        The column of the query's answer that it is made of.
    kind
        How it is made.
    exact
        Whether a column with all digits stands beside it.
    of_partition
        Whether it tells of the whole partition, and not of an event.
    absent
        The value of an event that is in no result.
    """

    name: str
    column: str
    kind: FeatureKind
    exact: bool
    of_partition: bool = False
    absent: float = 0.0


@dataclass(frozen=True)
class FeatureQuery:
    """A query as features ask it: of each event, and of its partition; `text` is the query as it was given."""

    name: str
    text: str
    per_event: Query
    per_partition: Query | None

    def features(self, bound: BoundQuery, of_partition: bool) -> list[Feature]:
        """Return the features that the bound query gives, of events or of partitions."""
        return [_feature(self.name, named, of_partition, bound) for named in bound.aggregates]


def feature_queries(
    queries: Mapping[str, Any] | Sequence[Any] | Any, attributes: Sequence[str], per_partition: bool
) -> list[FeatureQuery]:
    """Return the queries of features by name: a dictionary's own names, else `q1`, `q2` and so on.

    Raises
    ------
    UsageError
        If a query chooses among its results, or there is none.
    """
    if isinstance(queries, str | os.PathLike | Query):
        queries = [queries]
    named = dict(queries) if isinstance(queries, Mapping) else {f"q{i}": q for i, q in enumerate(queries, 1)}
    if not named:
        raise UsageError("features need a query", 'Give one, as TrendFeatures({"rising": "PATTERN ..."}).')
    return [_feature_query(str(name), query, attributes, per_partition) for name, query in named.items()]


def _feature_query(name: str, given: Any, attributes: Sequence[str], per_partition: bool) -> FeatureQuery:
    query = given if isinstance(given, Query) else Query(given)
    syntax = query.syntax
    for clause, there in (
        ("ORDER BY", syntax.order_by), ("LIMIT", syntax.limit is not None), ("OFFSET", syntax.offset),
        ("GROUP BY", syntax.group_by),
    ):  # fmt: skip
        if there:
            raise UsageError(
                f"the query `{name}` has {clause}, and features tell of all trends through an event",
                f"Leave {clause} out.",
            )
    plain = replace(syntax, returns=(), aggregates=(), per_event=None)
    items = syntax.aggregates or _items(query, STANDARD, attributes)
    per = syntax.per_event or s.PerEvent()
    whole = None
    if per_partition:
        whole = Query(to_query_text(replace(plain, aggregates=_items(query, OF_PARTITION, ()))))
    return FeatureQuery(name, query.text, Query(to_query_text(replace(plain, aggregates=items, per_event=per))), whole)


def _items(query: Query, standard: str, attributes: Sequence[str]) -> tuple[s.Item, ...]:
    """Return the items of AGGREGATE that features have unless the query says its own."""
    variables = [v.name for v in query.plan().bound.variables if not v.absent] if attributes else []
    of_values = [
        f"{function}({name_text(variable)}.{name_text(attribute)})"
        for variable in variables
        for attribute in attributes
        for function in ("SUM", "MIN", "MAX")
    ]
    return parse(f"PATTERN E+ e[] AGGREGATE {', '.join([standard, *of_values])} PER EVENT").aggregates


def _feature(query: str, named: NamedOutput, of_partition: bool, bound: BoundQuery) -> Feature:
    function, name = named.output.function, f"{query}_{named.name}"
    if named.output.type.kind not in NUMBERS:
        raise UsageError(
            f"`{named.name}` of the query `{query}` is {named.output.type.described()}, and models take numbers",
            "Leave it out of AGGREGATE, or compute a number of it.",
        )
    if function in COUNTING:
        return Feature(f"{query}_log_{named.name}", named.name, FeatureKind.COUNT, True, of_partition)
    if function == "SUM":
        return Feature(f"{query}_log_{named.name}", named.name, FeatureKind.SUM, exact(named.output), of_partition)
    if function == "AVG":
        size, slide = bound.window.size, bound.window.slide
        if size is not None and slide is not None and size > slide:
            raise UsageError(
                f"`{named.name}` of the query `{query}` is a mean, and an event is in several of its windows",
                "Use SUM and COUNT, or WITHIN without SLIDE.",
            )
        return Feature(name, named.name, FeatureKind.MEAN, False, of_partition, math.nan)
    kind = FeatureKind.LEAST if function == "MIN" else FeatureKind.GREATEST
    absent = 0.0 if function == "SHARE" or named.output.column is None else math.nan
    return Feature(name, named.name, kind, False, of_partition, absent)
