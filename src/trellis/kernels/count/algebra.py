"""Algebras of the passes: numbers of paths as floats, logarithms or residues; shortest and longest lengths.

A pass over events (`trellis.kernels.count.passes`) is written once and compiled for each algebra. `gather` takes up the
value of one more successor, `settle` ends that, `add` joins two settled values, and `step` gives the value of an event
from what was gathered and whether a path may end there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

NO_PATH = 1 << 60  # the shortest length where there is no path


class Floats(NamedTuple):
    """Numbers of paths: exact below 2**53, rounded above, inf where they are too large."""

    zero: float = 0.0
    one: float = 1.0


class Logs(NamedTuple):
    """Binary logarithms of numbers of paths of any size."""

    zero: float = -np.inf
    one: float = 0.0


class Modulo(NamedTuple):
    """Numbers of paths modulo a prime, of which 64 can be added before one remainder is taken: see `modulo`.

    The prime is `2**bits - rest`, with a small rest. So what stands above the lowest `bits` of a sum can be folded into
    these, times `rest`, which takes a fraction of the time of a division.
    """

    prime: np.uint64
    bits: np.uint64
    rest: np.uint64
    zero: np.uint64 = np.uint64(0)
    one: np.uint64 = np.uint64(1)


def modulo(prime: int) -> Modulo:
    """Return the algebra of a prime that is a little below a power of two, at most 2**58."""
    bits = prime.bit_length()
    rest = 2**bits - prime
    assert bits <= 58, "64 residues must fit 64 bits"
    assert rest < 2 ** (bits - 7), "what is folded must be less than two primes"
    return Modulo(np.uint64(prime), np.uint64(bits), np.uint64(rest))


def wrapping() -> Modulo:
    """Return the algebra of numbers modulo 2**64: nothing is taken away, and folding leaves a sum as it is."""
    return Modulo(np.uint64(0), np.uint64(32), np.uint64(1 << 32))


class Lengths(NamedTuple):
    """The least or the greatest number of events on a path: see `lengths`.

    `turn` is -1 or 0: with their bits turned by it, the greater of two lengths is the one that counts. So there is one
    type of both, and passes are compiled once.
    """

    turn: int
    zero: int
    one: int = 1


def lengths(greatest: bool) -> Lengths:
    """Return the algebra of the greatest lengths, 0 where there is no path, or the least ones, there `NO_PATH`."""
    return Lengths(0, 0) if greatest else Lengths(-1, NO_PATH)


def gather(algebra, total, value):
    """Take up the value of one more successor."""
    raise NotImplementedError


def settle(algebra, total):
    """Return a settled value of what was gathered."""
    raise NotImplementedError


def add(algebra, a, b):
    """Join two settled values."""
    raise NotImplementedError


def times(algebra, a, b):
    """Return the number of paths of which each is one of `a` and then one of `b`; not of lengths."""
    raise NotImplementedError


def step(algebra, gathered, ends):
    """Return the value of an event, from the settled value of its successors and whether a path may end here."""
    raise NotImplementedError


@register_jitable
def add_logs(a, b):
    """Return the binary logarithm of a sum from those of its terms."""
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    high, low = (a, b) if a > b else (b, a)
    return high + np.log2(1.0 + np.exp2(low - high))


def scale(algebra, weight, value):
    """Return a value times a weight; only numbers modulo a prime have weights."""
    raise NotImplementedError


def _of(algebra, *classes):
    return isinstance(algebra, types.BaseNamedTuple) and algebra.instance_class in classes


@overload(gather)
def _gather(algebra, total, value):
    if _of(algebra, Floats, Modulo):
        return lambda algebra, total, value: total + value
    if _of(algebra, Logs):
        return lambda algebra, total, value: add_logs(total, value)
    return lambda algebra, total, value: total if (total ^ algebra.turn) > (value ^ algebra.turn) else value


@overload(settle)
def _settle(algebra, total):
    if _of(algebra, Modulo):

        def remainder(algebra, total):
            high = total >> algebra.bits
            folded = total - (high << algebra.bits) + high * algebra.rest
            return folded - algebra.prime if folded >= algebra.prime else folded

        return remainder
    return lambda algebra, total: total


@overload(add)
def _add(algebra, a, b):
    if _of(algebra, Modulo):

        def modular(algebra, a, b):
            total = a + b
            return total - algebra.prime if total >= algebra.prime else total

        return modular
    return lambda algebra, a, b: gather(algebra, a, b)


@register_jitable
def _times_small(a, b, prime):
    """Return a product modulo a prime, of a factor below it and one below 2**29: floats give its quotient, nearly."""
    rest = a * b - np.uint64(np.float64(a) * np.float64(b) / np.float64(prime)) * prime
    if rest >> np.uint64(63):
        rest += prime
    return rest - prime if rest >= prime else rest


@overload(times)
def _times(algebra, a, b):
    if _of(algebra, Modulo):

        def modular(algebra, a, b):
            prime, few = algebra.prime, np.uint64(29)
            if prime == 0:
                return a * b
            high = _times_small(_times_small(a, b >> few, prime), np.uint64(1) << few, prime)
            low = _times_small(a, b & ((np.uint64(1) << few) - np.uint64(1)), prime)
            return add(algebra, high, low)

        return modular
    if _of(algebra, Logs):
        return lambda algebra, a, b: a + b
    return lambda algebra, a, b: 0.0 if a == 0.0 or b == 0.0 else a * b


@overload(scale)
def _scale(algebra, weight, value):
    if _of(algebra, Modulo):
        return lambda algebra, weight, value: weight * value % algebra.prime
    return lambda algebra, weight, value: value


@overload(step)
def _step(algebra, gathered, ends):
    if _of(algebra, Lengths):

        def length(algebra, gathered, ends):
            if ends and (algebra.turn != 0 or gathered == algebra.zero):
                return algebra.one
            return algebra.zero if gathered == algebra.zero else gathered + 1

        return length

    def number(algebra, gathered, ends):
        return add(algebra, gathered, algebra.one) if ends else gathered

    return number
