"""docs/how-a-query-runs.md is so: its files and functions exist, and are called in the order of its tables."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import trellis
from trellis.archive import Archive
from trellis.cli.main import app
from trellis.plan.sizes import Sizes

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trellis"
TEXT = (ROOT / "docs" / "how-a-query-runs.md").read_text(encoding="utf-8")
HOP = re.compile(r"^\| [^|]+ \| `([a-z_0-9/]+\.py)` \| (`[^|]+`) \|$", re.MULTILINE)
Hop = tuple[str, str]


def hops_of(section: str) -> list[Hop]:
    """The files and functions of a section's tables, in their order."""
    return [(file, name) for file, names in HOP.findall(section) for name in re.findall(r"`([^`]+)`", names)]


SECTIONS = {title: hops_of(body) for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)}


def names_in(file: str) -> set[str]:
    """The functions, classes and methods that a file defines."""
    found: set[str] = set()
    for node in ast.parse((SOURCE / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


# --- Files and functions exist ----------------------------------------------------------------------------------


def test_the_page_walks_the_five_ways() -> None:
    walks = [title for title, hops in SECTIONS.items() if hops]
    assert walks == [
        "trellis count", "detect(...).to_pandas()", "A sequence with a Kleene variable", "The same on Spark",
        "trellis stream", "trellis archive find",
    ]  # fmt: skip


@pytest.mark.parametrize("hop", sorted({hop for hops in SECTIONS.values() for hop in hops}), ids=": ".join)
def test_files_and_functions_exist(hop: Hop) -> None:
    file, name = hop
    assert (SOURCE / file).is_file(), f"{file} is not there"
    assert name in names_in(file), f"{file} has no {name}"


def test_files_in_the_prose_exist() -> None:
    for file in re.findall(r"`([a-z_0-9/]+\.py)`", TEXT):
        assert (SOURCE / file).is_file(), file


def test_the_drawing_is_that_of_the_script_and_shows_rooms() -> None:
    spec = importlib.util.spec_from_file_location("draw", ROOT / "docs" / "drawings" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    draw: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    for name, drawn in draw.RUN_PICTURES.items():
        assert f"(drawings/{name})" in TEXT
        kept = (ROOT / "docs" / "drawings" / name).read_text(encoding="utf-8")
        assert kept == drawn(), "run python docs/drawings/draw.py"
    for rooms, _, _ in draw.FLOORS:
        for room in rooms:
            assert (SOURCE / room / "__init__.py").is_file(), room


# --- They are called in this order ------------------------------------------------------------------------------


@contextmanager
def calls() -> Iterator[dict[Hop, int]]:
    """Note the functions of the package that are called, each with its place among the first calls."""
    seen: dict[Hop, int] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # the body of a class that is imported is none
        if event == "call" and is_function and code.co_filename.startswith(str(SOURCE)):
            name = code.co_qualname.removesuffix(".__init__")
            seen.setdefault((str(Path(code.co_filename).relative_to(SOURCE)), name), len(seen))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


def check(hops: list[Hop], run: Callable[[], Any]) -> None:
    """Run something, and see that it calls the hops of the page in their order; kernels are compiled and not seen."""
    with calls() as seen:
        run()
    wanted = [hop for hop in hops if not hop[0].startswith("kernels/")]
    missing = [hop for hop in wanted if hop not in seen]
    assert not missing, f"never called: {missing}"
    assert "\n".join(map(": ".join, sorted(wanted, key=seen.__getitem__))) == "\n".join(map(": ".join, wanted))


def command(*arguments: str) -> Callable[[], None]:
    def run() -> None:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output

    return run


MANY = Sizes(few_rows=0)  # as if there were many
RISING = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > s[i-1].price"
EVENTS = pa.table(
    {
        "time": list(range(1, 9)),
        "kind": [*"ABBCABBC"],
        "name": ["x"] * 8,
        "price": [1.0, 2.0, 3.0, 4.0, 2.0, 5.0, 4.0, 6.0],
    }
)


def test_the_way_of_count(tmp_path: Path) -> None:
    file = tmp_path / "trades.parquet"
    many = pa.concat_tables([EVENTS] * 25)  # few are counted on their graph
    pq.write_table(many.set_column(0, "time", pa.array(range(200))), file)
    check(SECTIONS["trellis count"], command("count", RISING, str(file), "--engine", "local"))


def test_the_way_of_to_pandas() -> None:
    frame: pd.DataFrame = EVENTS.to_pandas()
    check(SECTIONS["detect(...).to_pandas()"], lambda: trellis.query(RISING).detect(frame, sizes=MANY).to_pandas())


def test_the_way_of_a_sequence() -> None:
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE a.price < c.price AND b[i].price > a.price"
    check(
        SECTIONS["A sequence with a Kleene variable"],
        lambda: trellis.query(text).detect(EVENTS, type="kind", sizes=MANY).to_pandas(),
    )


def test_the_way_of_archive_find(tmp_path: Path) -> None:
    place = str(tmp_path / "history")
    Archive.build(EVENTS, place, time="time", type="kind", leaf=2)
    hops = SECTIONS["trellis archive find"]
    exactly = hops.index(("archive/exact.py", "needed"))
    find = ("archive", "find", "PATTERN SEQ(A a, B b)", "--archive", place)
    check(hops[:exactly], command(*find))
    check(hops[exactly:], command(*find, "--exact"))
