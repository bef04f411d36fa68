"""Views of variables: which events of a variable of a repeated group a condition speaks of.

Inside of an iteration a condition speaks of the events of that iteration. Beside variables that are not complete before
the group it speaks of the events of all iterations, in HAVING always; `g[i-1].a`, FIRST(g).a and `g[k].a` are events of
another iteration. Each of these is a view: it takes the events of its variable, or those that another view had in the
iteration before, and is emptied where an iteration of certain groups begins. Where a condition compares more than all
events of one variable with what comes later, what it names in an iteration is gathered when that is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.bound import (
    AtIteration,
    BoundQuery,
    Column,
    Condition,
    Value,
    columns_of,
    with_columns,
)
from trellis.language.groups import RepeatedGroup, is_repeated, walk_paths


@dataclass(frozen=True)
class View:
    """The events of a variable, or the iterations of a group, that terms look at.

    Attributes
    ----------
    name
        Its name in terms: that of the variable where it is of the iteration that goes on.
    variable
        The variable whose events it takes; None where it counts iterations.
    group
        The group whose iterations it counts, whose iteration before it is of, or of which it takes one; or -1.
    path, level
        The groups around the variable, outermost first, and how many of them empty it where they begin anew.
    source
        The view whose events, of the iteration before, it has; else empty.
    only
        The number of the one iteration of the group whose events it takes; 0 for all.
    """

    name: str
    variable: str | None
    group: int
    path: tuple[int, ...]
    level: int
    source: str = ""
    only: int = 0

    @property
    def presence(self) -> bool:
        """Whether it only tells that there is an iteration of its group."""
        return self.variable is None and self.group in self.path

    @property
    def emptied_by(self) -> frozenset[int]:
        """The groups whose iterations empty it when they begin."""
        return frozenset(self.path[: self.level])

    @property
    def replaced_by(self) -> frozenset[int]:
        """The groups whose iterations empty it, or give it other events."""
        return self.emptied_by | ({self.group} if self.source else frozenset())


class ViewedCondition(NamedTuple):
    """A condition in which variables have the names of views, these, and those that must be complete.

    `gathered` are, of one that speaks of iterations that go on, the views of what it gathers of those before, for each
    of some groups that are repeated apart. `before` are the conditions for these, one for each choice of groups: those
    of its `over` are of iterations before, and the views of these have names of their own in it. `waits` are the groups
    whose iterations are over before what a NOT inside of them forbids can be compared.
    """

    condition: Condition
    views: tuple[View, ...]
    awaited: tuple[View, ...] = ()
    gathered: tuple[View, ...] = ()
    over: tuple[View, ...] = ()
    before: tuple[ViewedCondition, ...] = ()
    waits: frozenset[int] = frozenset()


Key = tuple[str, AtIteration | None]


class _Gather(NamedTuple):
    """A group of whose iterations that are over a condition gathers what it names, and those inside of it."""

    view: View
    keys: list[Key]
    inner: list[_Gather]

    @property
    def views(self) -> Iterator[View]:
        """Its view and those of the groups inside."""
        yield self.view
        for one in self.inner:
            yield from one.views


def _cuts(gathers: list[_Gather]) -> list[tuple[_Gather, ...]]:
    """Return the choices of groups whose iterations are over, none inside of another."""
    ways = ([(one,), *_cuts(one.inner)] for one in gathers)
    return [sum(way, ()) for way in product(*ways)]


def named(text: str) -> str:
    """Return the name of the variable or group of a view."""
    return text.partition("\n")[0]


def view_text(name: str) -> str:
    """Return a view in words."""
    var, _, rest = name.partition("\n")
    if not rest:
        return var
    return f"{var} of the iteration before" if rest.startswith("before") else f"{var} of other iterations"


class Views:
    """The views of a query's conditions; `forbidden` are what NOTs forbid, with the groups around each."""

    def __init__(self, bound: BoundQuery, forbidden: Mapping[str, tuple[int, ...]]) -> None:
        self._paths = {v.name: v.groups for v in bound.variables} | dict(forbidden)
        self._groups = {group.label: i for i, group in enumerate(bound.groups) if group.label is not None}
        self._around: tuple[RepeatedGroup, ...] = bound.groups
        self._absent = {v.name for v in bound.variables if v.absent} | {*forbidden}
        self._before = frozenset(_stand_before(bound.pattern))

    def of_condition(self, condition: Condition) -> ViewedCondition:
        """Return a conjunct of WHERE with the names of views.

        Raises
        ------
        UsageError
            If it compares one iteration, of a group that goes on, with what comes later.
        """
        columns = [*columns_of(condition.value)]
        if not self._around or all(not self._path_of(c.var) for c in columns):
            return ViewedCondition(condition, tuple(self._view(c.var, 0) for c in columns if c.var not in self._absent))
        levels: dict[Key, int] = {}
        gathers = self._gathers(condition.text, columns, _keys(columns), 0, levels)
        found = self._gathered(condition, levels, gathers) if gathers else self._viewed(condition, levels)
        absent = (self._scope(key)[level:] for key, level in levels.items() if key[0] in self._absent)
        return found._replace(waits=frozenset(group for path in absent for group in path))

    def of_result(self, condition: Condition) -> ViewedCondition:
        """Return a condition of HAVING with the names of views: it speaks of all iterations."""
        return self._viewed(condition, dict.fromkeys(_keys(columns_of(condition.value)), 0))

    def _viewed(self, condition: Condition, levels: dict[Key, int]) -> ViewedCondition:
        views: dict[Key, View] = {}
        more: list[View] = []
        for (name, at), level in levels.items():
            if name in self._absent:
                continue
            views[name, at] = self._view(name, level) if at is None else self._at(name, at)
            if at is not None:
                more += self._beside(name, at)
        counted = (views[_key(c)] for c in columns_of(condition.value) if c.function == "COUNT" and _key(c) in views)
        present = [_presence(view) for view in counted if view.level]
        last = [self._counter(at.group) for _, at in views if at is not None and at.which is s.Which.LAST]
        value = _renamed(condition.value, {key: view.name for key, view in views.items()})
        every = tuple(dict.fromkeys([*views.values(), *more, *present, *last]))
        return ViewedCondition(replace(condition, value=value), every, tuple(dict.fromkeys(last)))

    def _path_of(self, name: str) -> tuple[int, ...]:
        """Return the groups around a variable, or around a group whose iterations are counted."""
        if name in self._groups:
            return self._around[self._groups[name]].path[:-1]
        return self._paths.get(name, ())

    def _scope(self, key: Key) -> tuple[int, ...]:
        """Return the groups of whose iteration that goes on something speaks."""
        name, at = key
        path = self._path_of(name)
        if at is None:
            return path
        return path[: path.index(at.group) + (at.which is s.Which.EARLIER)]

    def _view(self, name: str, level: int) -> View:
        path = self._path_of(name)
        own = name if level == len(path) else f"{name}\n{level}"
        if name in self._groups:
            return View(own, None, self._groups[name], path, level)
        return View(own, name, -1, path, level)

    def _at(self, name: str, at: AtIteration) -> View:
        """Return the view of another iteration."""
        path = self._paths[name]
        level = path.index(at.group)
        inner = self._view(name, level + 1)
        if at.which is s.Which.LAST:  # asked when there are no more iterations
            return inner
        if at.which is s.Which.EARLIER:
            return View(f"{name}\nbefore {at.group}", name, at.group, path, level, source=inner.name)
        number = at.nth or 1
        return View(f"{name}\n{number} of {at.group}", name, at.group, path, level, only=number)

    def _beside(self, name: str, at: AtIteration) -> list[View]:
        """Return the views that one of another iteration is made with."""
        if at.which is s.Which.EARLIER:
            return [self._view(name, self._paths[name].index(at.group) + 1)]
        return [] if at.which is s.Which.LAST else [self._counter(at.group)]

    def _counter(self, group: int) -> View:
        """Return the view that counts the iterations of a group."""
        return counter(group, self._around[group].path[:-1])

    def _gathers(
        self, text: str, columns: list[Column], keys: list[Key], start: int, levels: dict[Key, int]
    ) -> list[_Gather]:
        """Return the groups of whose iterations several events are gathered; write the levels of all that is named.

        `start` is the number of groups around them.
        """
        groups: dict[int, int] = {}
        for key in keys:
            levels[key] = level = self._level(key, columns, start)
            path = self._scope(key)
            if level < len(path) and not self._is_alone(key, columns, path[level]):
                groups[path[level]] = level
        found = []
        for group, level in groups.items():
            inside = [key for key in keys if group in self._scope(key)]
            own = [column for column in columns if group in self._scope(_key(column))]
            inner = self._gathers(text, own, inside, level + 1, levels)
            paths = [self._scope(inside[0])[: level + 1]]
            gathered = {key for one in inner for key in one.keys}
            paths += [self._scope(key)[: max(levels[key], level + 1)] for key in inside if key not in gathered]
            path = max(paths, key=len)
            if any(path[: len(other)] != other for other in paths) or any(key[0] in self._absent for key in inside):
                raise apart(text, (key[0] for key in inside))
            found.append(_Gather(View(f"{text}\ngathered {group}", None, group, path, level), inside, inner))
        return found

    def _gathered(self, condition: Condition, levels: dict[Key, int], gathers: list[_Gather]) -> ViewedCondition:
        """Return a condition on several events of each iteration of groups, beside what comes later."""
        found = self._viewed(condition, levels)
        names = {key: self._key_view(key, levels).name for key in levels}
        every = tuple(view for one in gathers for view in one.views)
        alone = sum(len(one.keys) for one in gathers) == len(levels)  # of two that are over one was before the other
        cuts = [cut for cut in _cuts(gathers) if cut and not (alone and cut == tuple(gathers))]
        before = tuple(self._before_of(condition, found, names, cut)._replace(gathered=every) for cut in cuts)
        return found._replace(gathered=every, before=before)

    def _before_of(
        self, condition: Condition, viewed: ViewedCondition, names: dict[Key, str], over: tuple[_Gather, ...]
    ) -> ViewedCondition:
        """Return a condition for iterations of some groups that are over."""
        of = {key: f"{one.view.name}\n{names[key]}" for one in over for key in one.keys}
        outside = {name for key, name in names.items() if key not in of}
        own, groups = {names[key] for key in of}, {one.view.group for one in over}
        left = (v for v in viewed.views if v.name in outside or (v.name not in own and not groups & v.emptied_by))
        value = _renamed(condition.value, {k: text for k, text in (names | of).items() if k[0] not in self._absent})
        views = tuple(one.view for one in over)
        return ViewedCondition(replace(condition, value=value), (*left, *views), viewed.awaited, over=views)

    def _key_view(self, key: Key, levels: dict[Key, int]) -> View:
        name, at = key
        return self._view(name, levels[key]) if at is None else self._at(name, at)

    def _level(self, key: Key, columns: list[Column], start: int) -> int:
        """Return how many groups empty a variable's view: those around it, as long as the others are known before."""
        path = self._scope(key)
        for level, group in [*enumerate(path)][start:]:
            others = (c for c in columns if group not in self._scope(_key(c)))
            if not all(self._is_known(_key(other), group) for other in others):
                return level
        return len(path)

    def _is_alone(self, key: Key, columns: list[Column], group: int) -> bool:
        """Return whether a condition names of a group the events of one variable, and all of them."""
        inside = [c for c in columns if group in self._scope(_key(c))]
        return key[1] is None and all(_key(c) == key and not c.function and c.which is s.Which.EACH for c in inside)

    def _is_known(self, key: Key, group: int) -> bool:
        """Return whether a variable outside of a group has all its events before each of the group's iterations.

        Of the first iteration it is enough that it comes first: what both have in it is asked with its own events.
        """
        name, at = key
        if at is not None and at.which is s.Which.EARLIER and at.group in self._around[group].path[:-1]:
            return True
        if at is not None and at.group == group and (at.nth or 1) == 1 and at.which is not s.Which.LAST:
            return True
        return at is None and (name, group) in self._before and name not in self._absent


def apart(text: str, names: Iterable[str]) -> UsageError:
    """Return the error of a condition on what is repeated apart, where it cannot be gathered."""
    both = " and ".join(dict.fromkeys(f"`{named(name)}`" for name in names))
    return UsageError(
        f"`{text}` compares {both}, which are repeated apart from one another, with what comes later",
        "Compare variables of one group, or put what they are compared with before it.",
    )


def counter(group: int, around: tuple[int, ...]) -> View:
    """Return the view that counts the iterations of a group inside of others."""
    return View(f"{group}\niterations", None, group, around, len(around))


def _presence(view: View) -> View:
    """Return the view that has an event where there is an iteration in which a view counts: else nothing is asked."""
    group = view.path[view.level - 1]
    return View(f"{group}\niteration", None, group, view.path[: view.level], view.level)


def _key(column: Column) -> Key:
    return column.var, column.at


def _keys(columns: Iterable[Column]) -> list[Key]:
    return [key for key in dict.fromkeys(map(_key, columns)) if key[0]]


def _renamed(value: Value, names: dict[Key, str]) -> Value:
    return with_columns(value, lambda column: replace(column, var=names.get(_key(column), column.var), at=None))


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
