"""So many drawn cases are compared with the oracle as CONTRIBUTING.md says, by the numbers that the tests ask for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
EVERY_RUN, ALL = 1_500, 20_000  # by `make test`, and by `make test-all`
ASKED = re.compile(r"^(?:examples\(|settings\(.*max_examples=)([\d_]+)")
OF_A_HUNDRED = 30  # that the profile of `make test` tries; see `profiles`


def drawn(path: Path) -> tuple[int, int]:
    """Return how many cases the tests of a file ask for that are not slow, and how many the slow ones do."""
    quick = slow = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = [ast.unparse(one) for one in node.decorator_list]
        asked = sum(int(number) for text in marks for number in ASKED.findall(text))
        if any("mark.slow" in text for text in marks):
            slow += asked
        else:
            quick += asked
    return quick, slow


def test_as_many_drawn_cases_are_compared_with_the_oracle_as_the_pages_say() -> None:
    compared = [path for path in TESTS.rglob("test_*.py") if "oracle" in path.read_text(encoding="utf-8")]
    numbers = [*map(drawn, sorted(compared))]
    quick, slow = map(sum, zip(*numbers, strict=True))
    assert quick * OF_A_HUNDRED // 100 >= EVERY_RUN
    assert quick + slow >= ALL
