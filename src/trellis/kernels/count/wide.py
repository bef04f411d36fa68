"""Whole numbers of many words: put together from residues, multiplied modulo a prime, and written as digits."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.jit import njit

BITS = 58  # the primes are a little below 2**BITS
HALF = 29
NINE = 1_000_000_000
MOST_HIGH, MOST_LOW = np.uint64(10**38 >> 64), np.uint64(10**38 & (2**64 - 1))


@register_jitable
def _fold(number, prime, rest):
    """Return the remainder of a number of 64 bits by a prime, which is `rest` below 2**BITS."""
    high = number >> np.uint64(BITS)
    folded = number - (high << np.uint64(BITS)) + high * rest
    return folded - prime if folded >= prime else folded


@register_jitable
def _raised(number, prime, rest):
    """Return a residue times 2**HALF: what goes beyond 2**BITS comes back `rest` times."""
    half, low = np.uint64(HALF), np.uint64((1 << HALF) - 1)
    return _fold((number >> half) * rest + ((number & low) << half), prime, rest)


@register_jitable
def _times(a, b, prime, rest):
    """Multiply two residues."""
    half, low = np.uint64(HALF), np.uint64((1 << HALF) - 1)
    high = _fold((a >> half) * (b >> half), prime, rest)
    middle = _fold((a >> half) * (b & low) + (a & low) * (b >> half), prime, rest)
    both = _raised(_raised(high, prime, rest), prime, rest) + _raised(middle, prime, rest)
    return _fold(both + (a & low) * (b & low), prime, rest)


@njit(cache=True, nogil=True)
def multiply_residues(a, b, prime, rest, products):
    """Set the products of residues modulo a prime that is `rest` below 2**58."""
    for i in range(a.shape[0]):
        products[i] = _times(a[i], b[i], prime, rest)


@njit(cache=True, nogil=True)
def words_of_residues(residues, primes, inverses, words):
    """Set the words of the numbers behind residues, the lowest first, by Garner's algorithm.

    Parameters
    ----------
    residues : uint64 (primes, numbers)
        Each number modulo each prime.
    primes : uint64 (primes,)
        Falling, all a little below 2**58.
    inverses : uint64 (primes, primes)
        `inverses[j, k]` is the inverse of prime `j` modulo prime `k`, for j < k.
    words : uint64 (numbers, words)
        What is filled; no number needs more.
    """
    count, full = primes.shape[0], np.uint64(1) << np.uint64(BITS)
    digits = np.zeros(count, np.uint64)
    half, low = np.uint64(32), np.uint64((1 << 32) - 1)
    for i in range(words.shape[0]):
        for k in range(count):
            prime = primes[k]
            rest, digit = full - prime, residues[k, i]
            for j in range(k):
                other = digits[j] - prime if digits[j] >= prime else digits[j]
                apart = digit - other if digit >= other else digit + prime - other
                digit = _times(apart, inverses[j, k], prime, rest)
            digits[k] = digit
        own = words[i]
        own[:] = 0
        for k in range(count - 1, -1, -1):
            carry, b_high, b_low = digits[k], primes[k] >> half, primes[k] & low
            if k == count - 1:
                own[0] = carry
                continue
            for w in range(own.shape[0]):
                a_high, a_low = own[w] >> half, own[w] & low
                lowest = a_low * b_low
                middle = a_high * b_low + (lowest >> half)
                other = a_low * b_high + (middle & low)
                product = (other << half) | (lowest & low)
                total = product + carry
                carry = a_high * b_high + (middle >> half) + (other >> half) + np.uint64(total < product)
                own[w] = total


@njit(cache=True, nogil=True)
def write_digits(words, ends, texts, decimals, known):
    """Write the digits of numbers one behind another, and those below 10**38 as decimals of 128 bits.

    Parameters
    ----------
    words : uint64 (numbers, words)
        The words of each number, the lowest first.
    ends : int32 (numbers + 1,)
        Becomes where the digits of each number end, after a 0.
    texts : uint8
        Becomes the digits, as characters; it has room for 20 of each word.
    decimals : uint64 (numbers, 2)
        Becomes the numbers that are below 10**38.
    known : bool (numbers,)
        Becomes whether they are.
    """
    size = 2 * words.shape[1]
    limbs, parts = np.zeros(size, np.uint64), np.zeros(size + size // 8 + 2, np.uint64)
    nine, half, low = np.uint64(NINE), np.uint64(32), np.uint64((1 << 32) - 1)
    used = np.int64(0)
    ends[0] = 0
    for i in range(words.shape[0]):
        top = 0
        for w in range(words.shape[1]):
            limbs[2 * w], limbs[2 * w + 1] = words[i, w] & low, words[i, w] >> half
            if words[i, w]:
                top = 2 * w + 2
        first = words[i, 0]
        second = words[i, 1] if words.shape[1] > 1 else np.uint64(0)
        known[i] = top <= 4 and (second < MOST_HIGH or (second == MOST_HIGH and first < MOST_LOW))
        if known[i]:
            decimals[i, 0], decimals[i, 1] = first, second
        number = 0
        while top > 0:
            carry = np.uint64(0)
            for w in range(top - 1, -1, -1):
                value = (carry << half) | limbs[w]
                limbs[w] = value // nine
                carry = value - limbs[w] * nine
            parts[number] = carry
            number += 1
            while top > 0 and limbs[top - 1] == 0:
                top -= 1
        if number == 0:
            parts[0], number = np.uint64(0), 1
        head, digits = parts[number - 1], 1
        ten = np.uint64(10)
        while head >= ten:
            head, digits = head // ten, digits + 1
        for p in range(number - 1, -1, -1):
            value, wide = parts[p], digits if p == number - 1 else 9
            for d in range(wide - 1, -1, -1):
                rest = value // ten
                texts[used + d] = np.uint8(48) + np.uint8(value - rest * ten)
                value = rest
            used += wide
        ends[i + 1] = used
    return used
