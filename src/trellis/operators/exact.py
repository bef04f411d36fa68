"""Exact whole numbers of any size from passes modulo primes, by the Chinese remainder theorem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

Residues = NDArray[np.uint64]


SMALL, LARGE = 31, 58  # bits of the primes: products of two residues fit 64 bits, or sums of 64 residues


@cache
def prime_below(bits: int, index: int) -> int:
    """Return the prime number `index` below 2**bits, counted downwards from 0."""
    candidate = 2**bits - 1 if index == 0 else prime_below(bits, index - 1) - 2
    while not _is_prime(candidate):
        candidate -= 2
    return candidate


def _is_prime(n: int) -> bool:
    """Miller and Rabin's test, exact below 3 * 10**23 with these bases."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def primes_for(bits: int, size: int = SMALL) -> list[int]:
    """Return enough primes of `size` bits for signed numbers whose magnitude has at most `bits` bits."""
    primes: list[int] = []
    product = 1
    while product.bit_length() <= bits + 1:
        primes.append(prime_below(size, len(primes)))
        product *= primes[-1]
    return primes


def reconstruct(
    bits: int, residues: Callable[[int], Residues], signed: bool = False, size: int = SMALL, threads: int = 1
) -> list[list[int]]:
    """Return the exact numbers behind an array of residues, row by row.

    Parameters
    ----------
    bits
        A bound on the size of every number.
    residues
        Gives, for a prime, the numbers modulo it: an array of two dimensions.
    signed
        Whether numbers may be negative.
    size
        The bits of the primes: `SMALL`, or `LARGE` where residues are only added.
    threads
        How many primes are worked on at once.
    """
    primes = primes_for(bits, size)
    if threads > 1 and len(primes) > 1:
        with ThreadPoolExecutor(threads) as pool:
            tables = list(pool.map(residues, primes))
    else:
        tables = [residues(p) for p in primes]
    product = 1
    for p in primes:
        product *= p
    parts = [product // p * pow(product // p, -1, p) for p in primes]
    return [_combined([table[row] for table in tables], parts, product, signed) for row in range(len(tables[0]))]


def _combined(tables: list[Residues], parts: list[int], product: int, signed: bool) -> list[int]:
    numbers = np.zeros(len(tables[0]), object)
    for table, part in zip(tables, parts, strict=True):
        numbers += table.astype(object) * part
    numbers %= product
    if signed:
        numbers = np.where(numbers > product // 2, numbers - product, numbers)
    found: list[int] = numbers.tolist()
    return found


class WideNumbers(Sequence[int]):
    """Whole numbers below 2**116, none of them negative, as two words each: no object for any of them.

    Parameters
    ----------
    low, high
        The lower 64 bits of each number, and the others.
    """

    def __init__(self, low: Residues, high: Residues | None = None) -> None:
        self.low = low
        self.high = np.zeros_like(low) if high is None else high

    @classmethod
    def of_residues(cls, residues: Callable[[int], Residues], threads: int = 1) -> WideNumbers:
        """Return the numbers behind an array of residues modulo the two largest primes of `LARGE` bits."""
        p, q = primes = [prime_below(LARGE, index) for index in (0, 1)]
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            a, b = pool.map(residues, primes)
        apart = (b + np.uint64(2 * q) - a) % np.uint64(q)  # p is less than twice q
        times = multiply_modulo(apart, np.full(len(apart), pow(p, -1, q), np.uint64), q)
        high, low = _product(times, p)
        total = low + a
        return cls(total, high + (total < low))

    def __len__(self) -> int:
        return len(self.low)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return self.taken(place).tolist()
        return (int(self.high[place]) << 64) | int(self.low[place])

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """Return the numbers."""
        if not self.high.any():
            return self.low.tolist()
        return [(high << 64) | low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]

    def taken(self, rows: NDArray[np.int64] | slice) -> WideNumbers:
        """Return some of the numbers."""
        return WideNumbers(self.low[rows], self.high[rows])

    def words(self) -> Residues:
        """Return the words of each number one after another, the lower one first."""
        return np.stack([self.low, self.high], axis=1)


def _product(a: Residues, factor: int) -> tuple[Residues, Residues]:
    """Return the words of products with a number below 2**64, the higher one first."""
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    b_high, b_low = np.uint64(factor >> 32), np.uint64(factor & (2**32 - 1))
    a_high, a_low = a >> half, a & low
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> half)
    other = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (other >> half), (other << half) | (lowest & low)


def multiply_modulo(a: Residues, b: Residues, prime: int) -> Residues:
    """Return products of residues modulo a prime below 2**32, or one a little below 2**58."""
    p = np.uint64(prime)
    if prime.bit_length() <= 32:
        return a * b % p
    half, rest = np.uint64(LARGE // 2), np.uint64((1 << LARGE) - prime)
    low = np.uint64((1 << (LARGE // 2)) - 1)

    def shifted(x: Residues) -> Residues:
        """Return residues times 2**29: what goes beyond 2**58 comes back `rest` times."""
        return ((x >> half) * rest + ((x & low) << half)) % p

    high = (a >> half) * (b >> half) % p
    middle = ((a >> half) * (b & low) + (a & low) * (b >> half)) % p
    return (shifted(shifted(high)) + shifted(middle) + (a & low) * (b & low)) % p
