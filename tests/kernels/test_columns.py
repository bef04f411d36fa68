"""Columns of rows, and whole numbers of many words."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest

from trellis.kernels.count import wide
from trellis.kernels.list import columns
from trellis.kernels.list.wide import SPARE


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_taken_by_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, 6)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.uint32)
    positions = rng.integers(0, 9, offsets[-1]).astype(np.uint32)
    words, shared = rng.integers(-9, 9, 9), rng.integers(0, 3, 6).astype(np.int32)
    rows = [positions[a:b].tolist() for a, b in pairwise(offsets)]
    taken = [np.empty(6, np.int64) for _ in range(3)]
    columns.take_ends(words, positions, offsets, *taken)
    assert taken[0].tolist() == [len(row) for row in rows]
    assert [taken[i].tolist() for i in (1, 2)] == [[words[row[end]] for row in rows] for end in (0, -1)]
    columns.take_lengths(offsets, shared[:0], taken[0])
    assert taken[0].tolist() == lengths.tolist()
    columns.take_lengths(offsets, shared, taken[0])
    assert taken[0].tolist() == (lengths + shared).tolist()
    values, bound = np.empty(len(positions), np.int64), rng.integers(0, 3, (2, 9)).astype(np.int32)
    columns.take_words(words, positions, values)
    assert values.tolist() == [words[place] for place in positions]
    both = np.empty((2, len(positions)), np.int32)
    columns.take_bound(bound[0], bound[1], positions, both[0], both[1])
    assert both.tolist() == bound[:, positions].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_taken_by_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [b"abcdefghijklmnopqrstuvwxyz"[: rng.integers(0, 26)] for _ in range(5)]
    places = rng.integers(0, 5, 8)
    wanted = [texts[place] for place in places]
    offsets, ends = np.append(0, np.cumsum([len(text) for text in texts])), np.empty(9, np.int64)
    assert columns.text_ends(offsets, places.astype(np.uint32), ends) == sum(map(len, wanted))
    assert ends.tolist() == [0, *np.cumsum([len(text) for text in wanted])]
    source = np.frombuffer(b"".join(texts) + bytes(SPARE), np.uint8)
    taken = np.zeros(ends[-1] + SPARE, np.uint8)
    columns.take_text(source, offsets, places.astype(np.uint32), taken)
    assert taken[: ends[-1]].tobytes() == b"".join(wanted)


def test_rows_are_labelled() -> None:
    first, group, number = np.array([7, 2**63 - 2, 0], np.uint64), np.array([2, 0, 5]), np.array([2, 3, 1])
    ranks, groups = np.empty(6, np.int64), np.empty(6, np.int64)
    columns.label_rows(first, group, number, ranks, groups)
    assert ranks.tolist() == [7, 8, 2**63 - 2, 2**63 - 1, columns.NO_RANK, 0]
    assert groups.tolist() == [2, 2, 0, 0, 0, 5]
    columns.count_up(40, ranks)
    assert ranks.tolist() == [*range(40, 46)]


PRIMES = [2**58 - 27, 2**58 - 57, 2**58 - 63]


def test_residues_are_multiplied_and_put_together() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, PRIMES[0], (2, 50), dtype=np.uint64)
    products = np.empty(50, np.uint64)
    wide.multiply_residues(a, b, np.uint64(PRIMES[0]), np.uint64(2**58 - PRIMES[0]), products)
    assert products.tolist() == [int(x) * int(y) % PRIMES[0] for x, y in zip(a, b, strict=True)]
    numbers = [0, 1, 2**64, prod(PRIMES) - 1, *(int(x) * int(y) for x, y in zip(a, b, strict=True))]
    residues = np.array([[number % prime for number in numbers] for prime in PRIMES], np.uint64)
    inverses = np.array([[pow(p, -1, q) if p != q else 0 for q in PRIMES] for p in PRIMES], np.uint64)
    words = np.empty((len(numbers), 3), np.uint64)
    wide.words_of_residues(residues, np.array(PRIMES, np.uint64), inverses, words)
    assert [sum(int(word) << 64 * i for i, word in enumerate(row)) for row in words] == numbers


def test_numbers_are_written_as_digits() -> None:
    numbers = [0, 9, 10**9, 10**9 - 1, 2**64, 10**38 - 1, 10**38, 2**192 - 1]
    words = np.array([[n >> 64 * i & 2**64 - 1 for i in range(3)] for n in numbers], np.uint64)
    ends, texts = np.empty(len(numbers) + 1, np.int32), np.empty(60 * len(numbers), np.uint8)
    decimals, known = np.zeros((len(numbers), 2), np.uint64), np.empty(len(numbers), np.bool_)
    used = wide.write_digits(words, ends, texts, decimals, known)
    assert texts[:used].tobytes().decode() == "".join(map(str, numbers))
    assert ends.tolist() == [0, *np.cumsum([len(str(number)) for number in numbers])]
    assert known.tolist() == [number < 10**38 for number in numbers]
    small = [number for number in numbers if number < 10**38]
    assert [int(low) + (int(high) << 64) for low, high in decimals[known]] == small
