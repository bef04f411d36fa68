"""Which events of a result a condition of repeated groups speaks of, in each iteration that it is asked of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from trellis.language.bound import AtIteration, BoundQuery, Column
from trellis.language.syntax import Which

Numbers = tuple[int, ...]  # of iterations, from 1, outermost first


class IterationPlaces:
    """The places of the events of each variable, in the iterations that a condition is asked of at the moment.

    Parameters
    ----------
    bound
        The query.
    variables, iterations
        The variable of each event of a result, and its iterations: `2.1`.
    """

    def __init__(self, bound: BoundQuery, variables: Sequence[str], iterations: Sequence[str]) -> None:
        self._numbers = [tuple(map(int, text.split("."))) if text else () for text in iterations]
        self._labels = [group.label for group in bound.groups]
        self._paths = {v.name: v.groups for v in bound.variables}
        self._all = {v.name: [i for i, name in enumerate(variables) if name == v.name] for v in bound.variables}
        for number, group in enumerate(bound.groups):
            if group.label is not None:  # COUNT(g): the first event of each iteration
                inside = [i for i, name in enumerate(variables) if number in self._paths[name]]
                depth = len(group.path)
                first = {self._numbers[i][:depth]: i for i in reversed(inside)}
                self._all[group.label], self._paths[group.label] = sorted(first.values()), group.path[:-1]
        self._around = [group.path for group in bound.groups]
        self._now: dict[int, Numbers] = {}  # the iteration of each group that is spoken of

    def choices(self, columns: Iterable[Column]) -> Iterator[None]:
        """Go through the iterations that a condition with these columns is asked of; `places` follows."""
        wanted: set[int] = set()
        for column in columns:
            path = self._paths[column.var]
            if column.at is not None:
                path = path[: path.index(column.at.group) + (column.at.which is Which.EARLIER)]
            wanted.update(path)
        inner = [g for g in wanted if not any(g in self._around[other][:-1] for other in wanted)]
        for chosen in product(*(self._iterations_of(group) for group in inner)):
            found: dict[int, Numbers] = {}
            fits = True
            for group, numbers in zip(inner, chosen, strict=True):
                for depth, outer in enumerate(self._around[group], 1):
                    fits &= found.setdefault(outer, numbers[:depth]) == numbers[:depth]
            if fits:
                self._now = found
                yield
        self._now = {}

    def _iterations_of(self, group: int) -> list[Numbers]:
        depth = len(self._around[group])
        inside = (i for name, path in self._paths.items() if group in path for i in self._all[name])
        return sorted({self._numbers[i][:depth] for i in inside})

    def places(self, name: str, at: AtIteration | None = None) -> list[int]:
        """Return the events of a variable, or the first ones of a group's iterations, that are spoken of."""
        path = self._paths[name]
        wanted: Numbers = next((self._now[g] for g in reversed(path) if g in self._now), ())
        found = self._all[name]
        if at is not None:
            depth = path.index(at.group)
            wanted = self._now[path[depth - 1]] if depth and path[depth - 1] in self._now else wanted[:depth]
            within = [numbers[depth] for numbers in self._iterations_of(at.group) if numbers[:depth] == wanted]
            before = self._now.get(at.group, (0,))[-1] - 1
            number = {Which.EARLIER: before, Which.FIRST: 1, Which.LAST: max(within, default=0)}.get(at.which, at.nth)
            wanted = (*wanted, int(number or 0))
        return [i for i in found if self._numbers[i][: len(wanted)] == wanted]

    def label(self, column: Column, place: int | None) -> str:
        """Return the iteration of an event, as it stands before the variable: `g[2].`."""
        path = self._paths[column.var]
        if place is None or not path or (self._labels[path[-1]] is None and len(path) == 1):
            return ""
        numbers = self._numbers[place]
        parts = zip((self._labels[group] for group in path), numbers, strict=False)
        return "".join(f"{label}[{number}]." for label, number in parts if label is not None)
