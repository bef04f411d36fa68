"""Views of variables: which events of a variable of a repeated group a condition speaks of.

Inside of an iteration a condition speaks of the events of that iteration. Beside variables that are not complete before
the group it speaks of the events of all iterations, in HAVING always. Each of these is a view: it takes the events of
its variable, and is emptied where an iteration of certain groups begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, Operation, Value, columns_of
from trellis.language.groups import RepeatedGroup, is_repeated, walk_paths


@dataclass(frozen=True)
class View:
    """The events of a variable, or the iterations of a group, that terms look at.

    Attributes
    ----------
    name
        Its name in terms: that of the variable where it is of one iteration.
    variable
        The variable whose events it takes; None where it counts iterations.
    group
        The group whose iterations it counts, or -1.
    path, level
        The groups around the variable, outermost first, and how many of them empty it where they begin anew.
    """

    name: str
    variable: str | None
    group: int
    path: tuple[int, ...]
    level: int

    @property
    def presence(self) -> bool:
        """Whether it only tells that there is an iteration of its group."""
        return self.variable is None and self.group in self.path

    @property
    def emptied_by(self) -> frozenset[int]:
        """The groups whose iterations empty it when they begin."""
        return frozenset(self.path[: self.level])

    @property
    def text(self) -> str:
        """The view in words."""
        if self.variable is None:
            return f"iterations of {self.name.partition(chr(10))[0]}"
        return self.variable if self.level == len(self.path) else f"{self.variable} of all iterations"


def named(text: str) -> str:
    """Return the name of the variable or group of a view."""
    return text.partition("\n")[0]


class Views:
    """The views of a query's conditions."""

    def __init__(self, bound: BoundQuery) -> None:
        self._paths = {v.name: v.groups for v in bound.variables}
        self._groups = {group.label: i for i, group in enumerate(bound.groups) if group.label is not None}
        self._around: tuple[RepeatedGroup, ...] = bound.groups
        self._absent = {v.name for v in bound.variables if v.absent}
        self._before = frozenset(_stand_before(bound.pattern))

    def of_condition(self, condition: Condition) -> tuple[Condition, tuple[View, ...]]:
        """Return a conjunct of WHERE with the names of views, and these.

        Raises
        ------
        UsageError
            If it compares one iteration, of a group that goes on, with what comes later.
        """
        columns = [*columns_of(condition.value)]
        if not self._around or all(not self._path(c) for c in columns):
            return condition, tuple(self._view(name, 0) for name in _names(columns) if name not in self._absent)
        levels = {name: self._level(name, columns, condition) for name in _names(columns)}
        return self._with_levels(condition, levels)

    def of_result(self, condition: Condition) -> tuple[Condition, tuple[View, ...]]:
        """Return a condition of HAVING with the names of views, and these: it speaks of all iterations."""
        return self._with_levels(condition, dict.fromkeys(_names([*columns_of(condition.value)]), 0))

    def _with_levels(self, condition: Condition, levels: dict[str, int]) -> tuple[Condition, tuple[View, ...]]:
        views = {name: self._view(name, level) for name, level in levels.items() if name not in self._absent}
        names = {name: view.name for name, view in views.items()}
        counted = (views[c.var] for c in columns_of(condition.value) if c.function == "COUNT" and c.var in views)
        present = dict.fromkeys(_presence(view) for view in counted if view.level)
        return replace(condition, value=_renamed(condition.value, names)), (*views.values(), *present)

    def _path(self, column: Column) -> tuple[int, ...]:
        return self._path_of(column.var)

    def _path_of(self, name: str) -> tuple[int, ...]:
        """Return the groups around a variable, or around a group whose iterations are counted."""
        if name in self._groups:
            return self._around[self._groups[name]].path[:-1]
        return self._paths.get(name, ())

    def _view(self, name: str, level: int) -> View:
        path = self._path_of(name)
        own = name if level == len(path) else f"{name}\n{level}"
        if name in self._groups:
            return View(own, None, self._groups[name], path, level)
        return View(own, name, -1, path, level)

    def _level(self, name: str, columns: list[Column], condition: Condition) -> int:
        """Return how many groups empty a variable's view: those around it, as long as the others are known before."""
        path = self._path_of(name)
        for level, group in enumerate(path):
            inside = [c for c in columns if group in self._path(c)]
            others = [c.var for c in columns if group not in self._path(c)]
            if all((other, group) in self._before and other not in self._absent for other in others):
                continue
            label = self._around[group].label
            told = f"the group `{label}`" if label else "a repeated group"
            if {c.var for c in inside} != {name}:
                both = " and ".join(f"`{var}`" for var in dict.fromkeys(c.var for c in inside))
                raise UsageError(
                    f"`{condition.text}` compares {both} of each iteration of {told} with `{named(others[0])}`, which "
                    "is not complete before it",
                    f"Put `{named(others[0])}` before the group, or compare one variable of the group with it.",
                )
            if any(c.function or c.which is not s.Which.EACH for c in inside):
                raise UsageError(
                    f"`{condition.text}` picks events of each iteration of {told} and compares them with "
                    f"`{named(others[0])}`, which is not complete before it",
                    f"Put `{named(others[0])}` before the group, or compare `{name}` itself: all of its events.",
                )
            return level
        return len(path)


def _presence(view: View) -> View:
    """Return the view that has an event where there is an iteration in which a view counts: else nothing is asked."""
    group = view.path[view.level - 1]
    return View(f"{group}\niteration", None, group, view.path[: view.level], view.level)


def _names(columns: Iterable[Column]) -> list[str]:
    return [name for name in dict.fromkeys(c.var for c in columns) if name]


def _renamed(value: Value, names: dict[str, str]) -> Value:
    if isinstance(value, Column):
        return replace(value, var=names.get(value.var, value.var))
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(_renamed(argument, names) for argument in value.arguments))
    return value


def _stand_before(pattern: s.Pattern) -> Iterator[tuple[str, int]]:
    """Yield each variable (and each label) with the groups before which it is complete."""
    numbers = {id(node): path[-1] for node, path in walk_paths(pattern) if is_repeated(node)}
    for node in s.walk(pattern):
        if not isinstance(node, s.Seq):
            continue
        known: list[str] = []
        for part in node.parts:
            inner = [*s.walk(part)]
            groups = {numbers[id(one)] for one in inner if id(one) in numbers}
            yield from ((name, group) for name in known for group in groups)
            known += [one.var for one in inner if isinstance(one, s.Single | s.Kleene)]
            known += [one.label for one in inner if isinstance(one, s.Group) and one.label is not None]
