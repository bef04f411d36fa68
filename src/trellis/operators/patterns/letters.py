"""Letters, which the automaton of a pattern reads: variables with the iterations that their events begin.

Two matches with the same events and variables that are cut into iterations differently are two; so an event that begins
an iteration is another letter than one that goes on with it. Letters are numbered in the order of the variables, and
those of a variable by how many of the groups around it begin, the fewest first: this is the order of results. Where no
group is repeated, letters are the variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trellis.errors import TrellisError
from trellis.operators.batch import LEVEL
from trellis.plan.remainders import Guard, LazyAutomaton, Leaf, Letter, Loop, Transition, items_of
from trellis.plan.views import View
from trellis.properties import cached_property

MOST_BITS = 60  # letters, views, registers and groups are bits of a word


@dataclass(frozen=True)
class Alphabet:
    """The letters, views and groups of a pattern.

    Attributes
    ----------
    variables
        The numbers of the variables that take events, and the groups around each.
    letters, views
        In the order of their numbers; the view of each variable's own iteration has the number of the variable.
    absent
        The variables of NOT, whose numbers follow those of letters, with the groups around each.
    """

    variables: Mapping[str, int]
    paths: Mapping[str, tuple[int, ...]]
    letters: tuple[Letter, ...]
    views: tuple[View, ...]
    absent: tuple[str, ...]

    @cached_property
    def numbers(self) -> dict[Letter, int]:
        """The number of each letter."""
        return {letter: i for i, letter in enumerate(self.letters)}

    @cached_property
    def view_numbers(self) -> dict[str, int]:
        """The number of each view."""
        return {view.name: i for i, view in enumerate(self.views)}

    @cached_property
    def absent_numbers(self) -> dict[str, int]:
        """The number of each variable of NOT."""
        return {name: len(self.letters) + i for i, name in enumerate(self.absent)}

    @property
    def codes(self) -> list[int]:
        """For each letter the number of its variable, and how many iterations it begins; see `PathBatch`."""
        return [self.variables[letter.variable] | letter.begins << LEVEL for letter in self.letters]

    def letter(self, transition: Transition) -> int:
        """Return the number of the letter that a transition reads."""
        return self.numbers[Letter(transition.variable, len(transition.begun))]

    def begun(self, letter: Letter) -> tuple[int, ...]:
        """Return the groups of which a letter begins an iteration."""
        path = self.paths[letter.variable]
        return path[len(path) - letter.begins :]

    def takes(self, letter: Letter, view: View) -> bool:
        """Return whether the event of a letter is one of a view, in one iteration at least."""
        if view.source:
            return False
        return view.group in self.begun(letter) if view.variable is None else view.variable == letter.variable

    def view(self, name: str) -> View:
        """Return a view by its name."""
        return self.views[self.view_numbers[name]]

    def takers(self, name: str) -> list[int]:
        """Return the letters whose events are those of a view."""
        view = self.views[self.view_numbers[name]]
        return [i for i, letter in enumerate(self.letters) if self.takes(letter, view)]

    def open_views(self, lazy: LazyAutomaton, state: int) -> int:
        """Return the views that may take events before they are emptied, as bits."""
        levels: dict[str | int, int] = {}  # of variables and groups: what is emptied by no more groups takes events
        for item, outer in items_of(lazy.remainder(state)):
            if isinstance(item, Guard) or (isinstance(item, Leaf) and item.is_over):
                continue
            key = item.variable if isinstance(item, Leaf) else item.group
            path = self.paths[item.variable] if isinstance(item, Leaf) else self._around(item)
            level = len(path) if outer is None else path.index(outer.group)
            levels[key] = max(levels.get(key, 0), level)
        return sum(
            1 << i
            for i, view in enumerate(self.views)
            if not view.source and view.level <= levels.get(view.variable or view.group, -1)
        )

    def _around(self, loop: Loop) -> tuple[int, ...]:
        path = next(path for path in self.paths.values() if loop.group in path)
        return path[: path.index(loop.group)]


def make_alphabet(
    transitions: Iterable[Transition], variables: Mapping[str, int], paths: Mapping[str, tuple[int, ...]],
    absent: tuple[str, ...], views: Iterable[View],
) -> Alphabet:  # fmt: skip
    """Return the letters that transitions read, and the views that conditions look at.

    `paths` are the groups around each variable, those of NOT too.
    """
    read = {Letter(one.variable, len(one.begun)) for one in transitions}
    read |= {Letter(name, 0) for name in variables if name not in {letter.variable for letter in read}}
    letters = sorted(read, key=lambda letter: (variables[letter.variable], letter.begins))
    own = [View(name, name, -1, paths[name], len(paths[name])) for name in variables]
    found = Alphabet(variables, paths, tuple(letters), tuple(dict.fromkeys([*own, *views])), absent)
    if len(letters) + len(absent) > MOST_BITS:
        raise TrellisError(
            f"the pattern has {len(variables) + len(absent)} variables; conditions beyond neighbours take at most "
            f"{MOST_BITS}, and fewer in repeated groups",
            "Split the query into several.",
        )
    if len(found.views) > MOST_BITS:
        raise TrellisError(
            f"the conditions look at variables and iterations of groups in {len(found.views)} ways; "
            f"at most {MOST_BITS} fit",
            "Use fewer conditions on several events of repeated groups, or split the query into several.",
        )
    return found
