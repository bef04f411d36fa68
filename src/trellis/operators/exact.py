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
ADDED = 1 << (64 - LARGE)  # large residues that 64 bits hold the sum of


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
    """Whole numbers of any size, none of them negative, as words of 64 bits: no object for any of them.

    Parameters
    ----------
    words : uint64, of two dimensions
        The words of each number, the lowest first.
    """

    def __init__(self, words: Residues) -> None:
        self.words = words

    @classmethod
    def of_residues(cls, bits: int, residues: Callable[[int], Residues], threads: int = 1) -> WideNumbers:
        """Return the numbers, of so many bits at most, behind arrays of residues modulo primes of `LARGE` bits."""
        from trellis.kernels.count.wide import words_of_residues  # late, as below: most counts go without

        primes = primes_for(bits, LARGE)
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            tables = np.stack(list(pool.map(residues, primes)))
        inverses = np.array([[pow(p, -1, q) if p != q else 0 for q in primes] for p in primes], np.uint64)
        words = np.empty((tables.shape[1], (LARGE * len(primes) + 63) // 64), np.uint64)
        words_of_residues(tables, np.array(primes, np.uint64), inverses, words)
        return cls(words[:, : max(2, (bits + 63) // 64)])

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return self.taken(place).tolist()
        return int.from_bytes(self.words[place].astype("<u8").tobytes(), "little")

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """Return the numbers."""
        if not self.words[:, 1:].any():
            return self.words[:, 0].tolist()
        return [self[i] for i in range(len(self))]

    def taken(self, rows: NDArray[np.int64] | slice) -> WideNumbers:
        """Return some of the numbers."""
        return WideNumbers(self.words[rows])


def multiply_modulo(a: Residues, b: Residues, prime: int) -> Residues:
    """Return products of residues modulo a prime below 2**32, or one a little below 2**58."""
    p = np.uint64(prime)
    if prime.bit_length() <= 32:
        return a * b % p
    from trellis.kernels.count.wide import multiply_residues

    found = np.empty(len(a), np.uint64)
    multiply_residues(np.ascontiguousarray(a), np.ascontiguousarray(b), p, np.uint64((1 << LARGE) - prime), found)
    return found
