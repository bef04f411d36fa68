"""The best trends by a mean, by searches for sums: Dinkelbach's method, for the k best.

A mean is `p / q` or more where the sum of `q * value - p` is 0 or more, and such a sum adds up along a trend. The worst
mean of the trends that are found by it is a bound for the next search, of those that are shown as better, until these
are fewer than are wanted: then they are known, and the others are shown as just this bound. Bounds are fractions whose
denominators are no greater than the longest trend, so that sums have few words and no mean lies between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite, nan, nextafter

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.best import nodes
from trellis.operators.batch import PathBatch
from trellis.operators.trends.keys import Mean, OrderWord, shown
from trellis.operators.trends.search import BestCandidates, BestSearch, SearchRuns
from trellis.operators.trends.tasks import TrendTasks
from trellis.properties import cached_property

LIMB = 31  # bits: the product of two fits 64
MASK = (1 << LIMB) - 1
LARGEST = nextafter(inf, 0)  # no mean of finite numbers is larger
BEYOND = 1 << nodes.WORD  # no word of a sum is as large


def best_by_mean(search: BestSearch, mean: Mean, tasks: Ints, bucket: Ints, limit: int) -> PathBatch | None:
    """Return the `limit` best paths of each bucket of tasks, in no order; None where links do not serve their sums.

    `search` compares by the keys before the mean; tasks and buckets are as `BestSearch.best` takes them.
    """
    found = []
    for chosen in _layers(search.space.tasks.chosen(tasks), bucket):
        paths = _MeanSearch(search, mean, tasks[chosen], bucket[chosen], limit).best()
        if paths is None:
            return None
        found.append(paths)
    return PathBatch.concat(found)


def _layers(tasks: TrendTasks, bucket: Ints) -> Iterator[Ints]:
    """Yield the places of tasks whose buckets share no events, those of a bucket together: an event has one bound."""
    new = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    begins, ends = np.minimum.reduceat(tasks.lo, new), np.maximum.reduceat(tasks.hi, new)
    layer, free = np.empty(len(new), np.int64), list[int]()
    for place in np.argsort(begins, kind="stable").tolist():
        own = next((i for i, end in enumerate(free) if end <= begins[place]), len(free))
        free[own : own + 1] = [int(ends[place])]
        layer[place] = own
    of_task = np.repeat(layer, np.diff(np.append(new, len(bucket))))
    for own in range(len(free)):
        yield np.flatnonzero(of_task == own)


@dataclass(frozen=True)
class _Lasts:
    """The last of the best paths of buckets: its words before the mean, and what the mean is shown as, for each.

    `better` are the numbers of paths that come before all such ones, `ahead` of those that do by the words alone.
    """

    bucket: Ints
    prefix: Ints
    mean: NDArray[np.float64]
    better: Ints
    ahead: Ints


class _MeanSearch:
    """Searches the best paths by keys of which the last is a mean, in buckets that share no events."""

    def __init__(self, search: BestSearch, mean: Mean, tasks: Ints, bucket: Ints, limit: int) -> None:
        self.search, self.mean, self.limit = search, mean, limit
        self.tasks, self.bucket = tasks, bucket
        self.before = len(search.keys.words)  # words before the mean
        self.longest = max(1, search.space.longest)
        self._reached = np.full(bucket[-1] + 1, -inf)  # the mean of which the paths above it are searched

    def best(self) -> PathBatch | None:
        """Return the best paths of each bucket."""
        bounds = dict.fromkeys(np.unique(self.bucket).tolist(), self._middle())
        known = list[PathBatch]()
        first = True
        while bounds:
            at = self._at(bounds)
            if not at.served:
                return None
            some = np.isin(self.bucket, list(bounds))
            found = at.candidates(self.tasks[some], self.bucket[some], self.limit)
            if not len(found.paths):
                break
            better, lasts, open_ = self._judge(found, first)
            known += [found.paths.take(better), self._tied(lasts)]
            bounds = {part: self._above(self._reached[part]) for part in open_.tolist()}
            first = False
        return PathBatch.concat(known)

    def _judge(self, candidates: BestCandidates, first: bool) -> tuple[Ints, _Lasts, Ints]:
        """Return the paths that are better than the last of the best in buckets where that is known, and these lasts.

        Besides, the buckets where paths are to be searched that are better than the worst of those candidates.
        """
        part, signs = candidates.runs.bucket[candidates.run], candidates.search.signs
        order = np.lexsort([*(candidates.words * signs).T[::-1], part])  # the worst of each bucket first
        part, words = part[order], candidates.words[order]
        begins = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
        counts = np.diff(np.append(begins, len(part)))
        own = np.repeat(np.arange(len(begins)), counts)
        same = (words[:, : self.before] == words[begins][own, : self.before]).all(axis=1)
        means, sums = self._means(candidates.paths.take(order)), words[:, self.before :]
        above = ~same | ((sums[:, 0] >= 0) == (signs[-1] > 0)) | (sums == 0).all(axis=1)
        # Fewer paths than are wanted are all; equal words are in the order of ranks, where none of them has a mean.
        whole = (counts < self.limit) | np.isnan(means[begins])
        worst = np.minimum.reduceat(np.where(same, means, inf), begins)
        ready = ~whole & (worst == LARGEST if first else ~np.logical_and.reduceat(above, begins) | (worst == LARGEST))
        rising = ~whole & ~ready
        bucket = part[begins]
        full = ready & (worst == LARGEST)
        self._reached[bucket[rising | full]] = worst[rising | full]
        better = whole[own] | (ready[own] & np.where(full[own], ~same, above))
        number, ahead = (np.add.reduceat(flags.astype(np.int64), begins) for flags in (better, ~same))
        lasts = _Lasts(bucket, words[begins][:, : self.before], self._reached[bucket], number, ahead)
        lasts = _Lasts(*(column[ready] for column in vars(lasts).values()))
        return order[better], lasts, bucket[rising]

    def _tied(self, lasts: _Lasts) -> PathBatch:
        """Return the first paths in rank order that are shown as good as the last one of a bucket: so many as miss."""
        if not len(lasts.bucket):
            return PathBatch.concat([])
        each = zip(lasts.bucket.tolist(), lasts.mean.tolist(), strict=True)
        at = self._at({part: self._above(nextafter(mean, -inf)) for part, mean in each})
        low, high = (np.zeros((self.bucket[-1] + 1, len(at.signs)), np.int64) for _ in range(2))
        limit, missing = (np.zeros(len(low), np.int64) for _ in range(2))
        low[lasts.bucket, : self.before] = high[lasts.bucket, : self.before] = lasts.prefix
        high[lasts.bucket, self.before] = self.mean.sign * BEYOND
        limit[lasts.bucket] = self.limit - lasts.ahead  # some of which are better
        missing[lasts.bucket] = self.limit - lasts.better
        order = np.flatnonzero(limit[self.bucket])
        paths, run = at.between(SearchRuns(self.tasks, self.bucket), order, low, high, limit)
        bucket = self.bucket[run]
        equal = np.flatnonzero(self._means(paths) == self._reached[bucket])
        bucket = bucket[equal]
        return paths.take(equal[np.arange(len(equal)) - np.searchsorted(bucket, bucket) < missing[bucket]])

    def _means(self, paths: PathBatch) -> NDArray[np.float64]:
        """Return the doubles that means of paths are shown as, times the sign, so that more is better; NaN for none."""
        begins, mean = paths.offsets[:-1], self.mean
        if not len(begins):
            return np.empty(0)
        counts = np.add.reduceat(mean.present[paths.positions].astype(np.int64), begins)
        sums = np.add.reduceat(np.where(mean.present[:, None], self._limbs, 0)[paths.positions], begins).tolist()
        totals = (sum(limb << LIMB * place for place, limb in enumerate(row)) for row in sums)
        each = zip(totals, counts.tolist(), strict=True)
        return np.array([shown(total, count, mean.unit, mean.sign) if count else nan for total, count in each])

    @cached_property
    def _limbs(self) -> Ints:
        """The numbers as limbs, the lowest first; the highest have the signs."""
        words = self.mean.numbers[:, ::-1]
        return np.stack([words & MASK, words >> LIMB], axis=2).reshape(len(words), -1)

    # --- Bounds ---------------------------------------------------------------------------------------------------

    def _middle(self) -> Fraction:
        """Return about the mean of all numbers, where to begin."""
        numbers = self.mean.numbers[self.mean.present & self.search.ok]
        with np.errstate(over="ignore"):
            about = float(np.ldexp(numbers[:, 0].mean(), nodes.WORD * (numbers.shape[1] - 1)))
        return fraction_from(Fraction(self.mean.sign * about if isfinite(about) else 0), self.longest, True)

    def _above(self, mean: float) -> Fraction:
        """Return the least mean, of numbers and times the sign, that is shown as better than one."""
        if mean == -inf:
            return fraction_from(Fraction(-LARGEST) / self.mean.unit, self.longest, True)
        better = nextafter(mean, inf)
        middle = (Fraction(mean) + Fraction(better)) / 2
        return fraction_from(middle / self.mean.unit, self.longest, float(middle) == better)

    def _at(self, bounds: Mapping[int, Fraction]) -> BestSearch:
        """Return the search by sums that are 0 or more, times the sign, where means are at least as good as bounds."""
        mean, size = self.mean, self.bucket[-1] + 1
        each = [bounds.get(part, Fraction(0)) for part in range(size)]
        denominators, numerators = [b.denominator for b in each], [mean.sign * b.numerator for b in each]
        bits = max(b.bit_length() for b in denominators) + mean.size
        bits = 1 + max(bits, max(abs(n).bit_length() for n in numerators) + self.longest.bit_length())
        count = 1 if bits < nodes.WORD else bits // nodes.WORD + 1
        factor, room = _table(denominators), self._limbs.shape[1]
        limbs = np.zeros((len(self._limbs), max(2 * count, room + factor.shape[1]) + 1), np.int64)
        of_event = self._bucket_of_events
        for i in range(room):
            for j in range(factor.shape[1]):
                product = self._limbs[:, i] * factor[of_event, j]
                limbs[:, i + j] += product & MASK
                limbs[:, i + j + 1] += product >> LIMB
        limbs -= _table(numerators, limbs.shape[1])[of_event]
        for i in range(limbs.shape[1] - 1):
            limbs[:, i + 1] += limbs[:, i] >> LIMB
            limbs[:, i] &= MASK
        limbs[:, 2 * count - 1] -= (limbs[:, -1] < 0).astype(np.int64) << LIMB
        limbs[~mean.present] = 0
        words = [limbs[:, 2 * w] + (limbs[:, 2 * w + 1] << LIMB) for w in range(count)][::-1]
        kinds = [nodes.HIGH] + [nodes.LOW] * (count - 1)
        own = (OrderWord(kind, mean.sign, each=word) for kind, word in zip(kinds, words, strict=True))
        keys = replace(self.search.keys, words=(*self.search.keys.words, *own), mean=None)
        return BestSearch(self.search.space, keys, self.search.ok, self.search.required)

    @cached_property
    def _bucket_of_events(self) -> Ints:
        found, tasks = np.zeros(len(self.search.ok), np.int64), self.search.space.tasks
        new = np.flatnonzero(np.append(True, self.bucket[1:] != self.bucket[:-1]))
        lo, hi = tasks.lo[self.tasks], tasks.hi[self.tasks]
        ranges = zip(np.minimum.reduceat(lo, new).tolist(), np.maximum.reduceat(hi, new).tolist(), strict=True)
        for part, (begin, end) in zip(self.bucket[new].tolist(), ranges, strict=True):
            found[begin:end] = part
        return found


def _table(numbers: list[int], width: int = 0) -> Ints:
    """Return whole numbers as limbs, the lowest first; the highest have the signs."""
    width = max(width, max(abs(n).bit_length() for n in numbers) // LIMB + 1)
    rows = [[*((n >> LIMB * i & MASK) for i in range(width - 1)), n >> LIMB * (width - 1)] for n in numbers]
    return np.array(rows, np.int64)


def fraction_from(bound: Fraction, most: int, closed: bool) -> Fraction:
    """Return the least fraction with a denominator up to `most` that is above a bound, or at it if that is closed.

    This is a walk down the tree of Stern and Brocot, many steps in one direction at a time.
    """
    number, of = bound.numerator, bound.denominator
    if closed and of <= most:
        return bound
    low, low_of, high, high_of = number // of, 1, number // of + 1, 1  # low / low_of <= bound < high / high_of
    while True:
        below, above = number * low_of - low * of, high * of - number * high_of
        steps = (most - high_of) // low_of
        if below:
            steps = min(steps, (above - 1) // below)
        high, high_of = high + steps * low, high_of + steps * low_of
        further = min((most - low_of) // high_of, below // (high * of - number * high_of))
        low, low_of = low + further * high, low_of + further * high_of
        if not steps and not further:
            return Fraction(high, high_of)
