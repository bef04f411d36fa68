"""FlinkCEP's own tests as queries: the list on the page is whole, each query gives what FlinkCEP's test expects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trellis
from trellis.errors import BindError
from trellis.language import syntax as s

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "from-flink.md"
EVENT = re.compile(r"([a-z]+)(\d+)(?::(\d+))?(?:@(\d+))?")
APPLICABLE = 217  # of 220: three ask when a buffer is freed


@dataclass(frozen=True)
class FlinkTest:
    """A test of FlinkCEP's: its class and name, the pattern with its clauses, events, and results."""

    of: str
    name: str
    query: str
    events: str = ""
    results: str = ""

    @property
    def text(self) -> str:
        return f"PATTERN {self.query.removeprefix('! ')} REPORT any"

    @property
    def cell(self) -> str:
        """How the page tells the query."""
        if self.query.startswith("- "):
            return f"cannot be said: {self.query[2:]}"
        return f"`{self.query[2:]}` is refused, as there" if self.query.startswith("! ") else f"`{self.query}`"

    @property
    def table(self) -> pa.Table:
        rows = []
        for place, event in enumerate(self.events.split()):
            match = EVENT.fullmatch(event)
            assert match is not None, event
            name, number, price, time = match.groups()
            rows.append({
                "id": name + number, "name": name, "kind": name.upper(), "price": int(price or 0),
                "ts": place if time is None else int(time), "seq": place,
            })  # fmt: skip
        return pa.Table.from_pylist(rows)


def flink_tests() -> list[FlinkTest]:
    found, of = [], ""
    for line in (HERE / "flink_cases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            of = line[3:]
        elif line and not line.startswith("#"):
            found.append(FlinkTest(of, *(part.strip() for part in re.split(r" \|(?: |$)", line))))
    return found


TESTS = flink_tests()
SAID = [one for one in TESTS if not one.query.startswith("- ")]
RUN = [one for one in SAID if not one.query.startswith("! ")]


def name_of(one: FlinkTest) -> str:
    return f"{one.of}.{one.name}"


def test_the_page_lists_every_test() -> None:
    rows = re.findall(r"^\| (test\w+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(one.name, one.cell) for one in TESTS]


def test_nearly_all_can_be_said() -> None:
    page = PAGE.read_text(encoding="utf-8")
    buffers = sum("buffer is freed" in one.query for one in TESTS)
    assert len(TESTS) - buffers == APPLICABLE
    assert f"{len(SAID)} of the {APPLICABLE} applicable" in page
    assert len(SAID) >= 205


@pytest.mark.parametrize("one", RUN, ids=name_of)
def test_gives_what_flink_expects(one: FlinkTest) -> None:
    query = trellis.query(one.text)
    typed = not {leaf.type for leaf in s.leaves(query.syntax.pattern)} <= {"E", None}
    trends = query.detect(one.table, time=("ts", "seq"), event_id="id", type="kind" if typed else None)
    found = sorted(ids(query.syntax, row) for row in trends.to_arrow().to_pylist())
    if one.results.startswith("*"):
        assert len(set(found)) == len(found) == int(one.results[1:])
    else:
        assert found == sorted(result.strip() for result in one.results.split(",") if result.strip())


def ids(query: s.QuerySyntax, row: dict[str, Any]) -> str:
    """Write the events of a result: those of its columns of ids, one after another."""
    names = [item.expression.var for item in query.returns if isinstance(item.expression, s.VariableReference)]
    columns = names or (["events"] if "events" in row else list(row)[list(row).index("end_time") + 1 :])
    parts = [row[name] for name in columns if row[name] is not None]
    return " ".join(event for part in parts for event in (part if isinstance(part, list) else [part]))


@pytest.mark.parametrize("one", [one for one in SAID if one not in RUN], ids=name_of)
def test_is_refused_where_flink_throws(one: FlinkTest) -> None:
    with pytest.raises(BindError, match="which some results do not have"):
        trellis.query(one.text).plan()
