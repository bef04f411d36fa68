"""Exact whole numbers of any size from passes modulo primes, by the Chinese remainder theorem."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from trellis.operators.threads import made_on_threads

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
    tables = list(made_on_threads(residues, primes, threads))
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


def multiply_modulo(a: Residues, b: Residues, prime: int) -> Residues:
    """Return products of residues modulo a prime below 2**32, or one a little below 2**58."""
    p = np.uint64(prime)
    if prime.bit_length() <= 32:
        return a * b % p
    from trellis.kernels.count.wide import multiply_residues

    found = np.empty(len(a), np.uint64)
    multiply_residues(np.ascontiguousarray(a), np.ascontiguousarray(b), p, np.uint64((1 << LARGE) - prime), found)
    return found
