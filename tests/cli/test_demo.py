"""`trellis demo`: the guided tour."""

from __future__ import annotations

import re

import pytest

from tests.cli.cases import run_local, run_process
from trellis.cli.demo import sparkline


def test_sparkline() -> None:
    assert sparkline([1, 2, 3, 8]) == "▁▂▃█"
    assert sparkline([5, 5]) == "▁▁"


def test_the_tour_on_the_local_engine() -> None:
    done = run_local("demo", "--no-progress")
    assert done.code == 0
    assert done.err == ""
    assert_tour(done.out)


@pytest.mark.spark
@pytest.mark.slow
def test_the_tour_on_spark() -> None:
    done = run_process("demo")
    assert done.code == 0
    assert done.err == ""
    assert_tour(done.out)
    assert _without_times(done.out) == _without_times(run_local("demo").out).replace("engine local", "engine spark")


def assert_tour(text: str) -> None:
    assert re.search(r" A\d{3} → A\d{3} → ", text)
    assert "▁" in text
    assert "Listing them is refused" in text
    (count,) = re.findall(r"1 window, (\d+) \(about", text)
    assert int(count) >= 10**20
    assert text.count("trends, in") == 4
    (places,) = re.findall(r"(\d+) places where it may be", text)
    (sequences,) = re.findall(r"are needed: (\d+) sequence", text)
    assert int(sequences) > 0
    assert int(places) > 0
    (changes,) = re.findall(r"(\d+) changes, in", text)
    assert int(changes) > 10
    assert "Try next: " in text


def _without_times(text: str) -> str:
    return re.sub(r"in \d+\.\d s", "", text)
