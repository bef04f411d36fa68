"""Ranks of any size in arrays: whole numbers as rows of 64-bit words, without a Python number for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from trellis.errors import UsageError

Words = NDArray[np.uint64]
WORD = 64
LOW = (1 << WORD) - 1


class Ranks(Sequence[int]):
    """Whole numbers that are not negative; `words` has a row for each, the lowest 64 bits first."""

    def __init__(self, words: Words) -> None:
        self.words = words

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranks:
        """Return numbers as ranks."""
        if isinstance(numbers, Ranks):
            return numbers
        if isinstance(numbers, range) and numbers.stop < 1 << 63:
            return cls(np.arange(numbers.start, numbers.stop, numbers.step).astype(np.uint64).reshape(-1, 1))
        values = [index(n) for n in numbers]
        width = max(1, -(-max(values, default=0).bit_length() // WORD))
        data = b"".join(n.to_bytes(8 * width, "little") for n in values)
        return cls(np.frombuffer(data, "<u8").reshape(len(values), width).astype(np.uint64, copy=False))

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, which: int) -> int: ...
    @overload
    def __getitem__(self, which: slice) -> Ranks: ...
    def __getitem__(self, which: int | slice) -> int | Ranks:
        """Return one of them as a number, or some."""
        if isinstance(which, slice):
            return Ranks(self.words[which])
        return _number(self.words[which].tolist())

    def __iter__(self) -> Iterator[int]:
        return map(_number, self.words.tolist())

    def minus(self, number: int) -> Ranks:
        """Return them with a number subtracted that none is below."""
        if not number:
            return self
        result, borrow = np.empty_like(self.words), np.zeros(len(self), np.uint64)
        for i, word in enumerate(_words(number, self.words.shape[1])):
            mine = self.words[:, i]
            lower = mine - word
            result[:, i] = lower - borrow
            borrow = ((mine < word) | (lower < borrow)).astype(np.uint64)
        return Ranks(result)

    def first_at_least(self, number: int, begin: int = 0) -> int:
        """Return the place, from `begin` on, of the first that is not below a number; they are in rising order."""
        if number > LOW:
            return begin + _first_at_least(self[begin:], number)
        alone = len(self) if self.words.shape[1] == 1 else begin + _first_at_least(self[begin:], LOW + 1)
        return begin + int(np.searchsorted(self.words[begin:alone, 0], np.uint64(number)))

    def limbs(self, bits: int, number: int) -> NDArray[np.int64]:
        """Return them as rows of so many limbs of so many bits, the lowest first."""
        mask = np.uint64((1 << bits) - 1)
        limbs = np.zeros((len(self), number), np.int64)
        for i in range(number):
            word, shift = divmod(i * bits, WORD)
            if word >= self.words.shape[1]:
                break
            part = self.words[:, word] >> np.uint64(shift)
            if shift + bits > WORD and word + 1 < self.words.shape[1]:
                part |= self.words[:, word + 1] << np.uint64(WORD - shift)
            limbs[:, i] = part & mask
        return limbs

    def shown(self) -> NDArray[np.int64]:
        """Return those that fit 63 bits as they are, the others as -1."""
        large = (self.words[:, 0] >> np.uint64(63)).astype(np.bool_) | self.words[:, 1:].any(axis=1)
        return np.where(large, -1, self.words[:, 0].astype(np.int64))


def numbers_of(numbers: Sequence[int], largest: int) -> NDArray[Any]:
    """Return numbers as an array to compute with as far as a largest one: of int64, or of objects."""
    return np.array(numbers, np.int64 if largest < 1 << 62 else np.object_)


def ranks_of(numbers: NDArray[Any]) -> Ranks:
    """Return the numbers of such an array as ranks."""
    if numbers.dtype == np.int64:
        return Ranks(numbers.astype(np.uint64).reshape(-1, 1))
    return Ranks.of(numbers.tolist())


def draw(total: int, number: int, seed: int) -> Ranks:
    """Return distinct numbers below `total`, every set of them equally likely, in rising order; all if there are few.

    They depend on nothing but the arguments.
    """
    if number < 0:
        raise UsageError(f"a sample of {number} cannot be drawn")
    if number >= total:
        return Ranks(np.arange(total, dtype=np.uint64).reshape(-1, 1))
    if 2 * number > total:  # those that stay behind are fewer
        chosen = np.ones(total, np.bool_)
        chosen[draw(total, total - number, seed).words[:, 0]] = False
        return Ranks(np.flatnonzero(chosen).astype(np.uint64).reshape(-1, 1))
    source = np.random.Philox(np.random.SeedSequence([seed < 0, abs(index(seed))]))
    words = _below(total, number, source)
    while True:
        order = _distinct(words)
        if len(order) >= number:
            last = np.partition(order, number - 1)[number - 1] if number else -1
            return Ranks(words[order[order <= last]])
        words = np.concatenate([words, _below(total, number - len(order), source)])


def _below(total: int, number: int, source: np.random.Philox) -> Words:
    """Return about so many numbers below `total`, one after another as they are drawn."""
    bits = (total - 1).bit_length()
    width = max(1, -(-bits // WORD))
    likely = total / (1 << bits) if bits < 1000 else (total >> (bits - 64)) / (1 << 64)
    tries = int(number / likely * 1.01) + 64
    words = source.random_raw(tries * width).reshape(tries, width)
    words[:, -1] &= np.uint64((1 << (bits - (width - 1) * WORD)) - 1)
    below, equal = np.zeros(tries, np.bool_), np.ones(tries, np.bool_)
    for i, word in reversed(list(enumerate(_words(total - 1, width)))):
        below |= equal & (words[:, i] < word)
        equal &= words[:, i] == word
    return words[below | equal]


def _distinct(words: Words) -> NDArray[np.int64]:
    """Return the places of numbers in rising order, of equal ones the first place only."""
    leading = words[:, -1]
    if words.shape[1] > 1:
        free = WORD - int(leading.max(initial=0)).bit_length()
        if free:
            leading = leading << np.uint64(free) | words[:, -2] >> np.uint64(WORD - free)
    order = np.argsort(leading)
    ordered = leading[order]
    if (ordered[1:] != ordered[:-1]).all():
        return order
    order = np.lexsort(words.T)
    ordered = words[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[fresh]


def _number(words: list[int]) -> int:
    number = 0
    for word in reversed(words):
        number = number << WORD | word
    return number


def _words(number: int, width: int) -> Words:
    return np.array([number >> (WORD * i) & LOW for i in range(width)], np.uint64)


def _first_at_least(ranks: Ranks, number: int) -> int:
    begin, end = 0, len(ranks)
    while begin < end:
        middle = (begin + end) // 2
        if ranks[middle] < number:
            begin = middle + 1
        else:
            end = middle
    return begin
