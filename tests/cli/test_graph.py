"""`trellis graph`: lines of output, a summary of what was bad, and nothing half-written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.cases import assert_mistake, names_in, run
from trellis.io.generate.social import lines_of, social, write_social
from trellis.papers.debs2016 import communities, posts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a social network that the command made."""
    folder = tmp_path_factory.mktemp("graph") / "social"
    done = run(
        "generate", "social", "--events", "2000", "--users", "60", "--rate", "200", "--seed", "5", "--out", folder
    )
    assert done.code == 0, done.err
    return folder


def files(folder: Path, *names: str) -> list[str]:
    return [part for name in names for part in (f"--{name}", str(folder / f"{name}.dat"))]


def test_generated_files_are_those_of_the_function(folder: Path) -> None:
    tables = social(2000, 5, users=60, rate=200.0)
    assert names_in(folder) == ["_trellis.json", "comments.dat", "friendships.dat", "likes.dat", "posts.dat"]
    for name, table in tables.items():
        assert (folder / f"{name}.dat").read_bytes() == lines_of(table)
        assert table["ts"].to_pylist() == sorted(table["ts"].to_pylist())
    assert sum(table.num_rows for table in tables.values()) == 2000
    pairs = list(zip(*(tables["friendships"][name].to_pylist() for name in ("user", "other")), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert all(a != b for a, b in pairs)


@pytest.mark.parametrize("events", [0, 1, 2, 3, 10])
def test_small_networks(events: int, tmp_path: Path) -> None:
    tables = social(events, users=2)
    write_social(tables, str(tmp_path / "x"))
    found = posts(tmp_path / "x" / "posts.dat", tmp_path / "x" / "comments.dat")
    assert not any(number for name, number in found.bad.items() if "malformed" in name or "order" in name)


def test_lines_go_to_stdout(folder: Path) -> None:
    done = run("graph", "posts", *files(folder, "posts", "comments"))
    found = posts(folder / "posts.dat", folder / "comments.dat")
    assert done.code == 0, done.err
    assert done.out.encode() == found.output
    assert found.lines > 10
    assert f"{found.lines:,}" in done.err


def test_lines_go_to_a_file(folder: Path, tmp_path: Path) -> None:
    given = files(folder, "comments", "likes", "friendships")
    target = tmp_path / "lines.txt"
    options = ["--k", "2", "--d", "86400", "--community", "component", "--out", str(target)]
    done = run("graph", "communities", *given, *options, "--json")
    names = ("friendships", "comments", "likes")
    found = communities(*(folder / f"{name}.dat" for name in names), k=2, d=86400, community="component")
    assert done.code == 0, done.err
    assert target.read_bytes() == found.output
    told = json.loads(done.out)
    assert told["results"] == str(found.lines)
    assert (told["bad"], told["late"], told["sources"]) == (found.bad, found.late, found.events)
    assert_mistake(run("graph", "communities", *given, *options), "exists", "--overwrite")
    assert run("graph", "communities", *given, *options, "--overwrite", "--quiet").out == ""
    assert names_in(tmp_path) == ["lines.txt"]
    (tmp_path / "link").symlink_to(target)
    linked = run("graph", "communities", *given, *options[:-1], str(tmp_path / "link"), "--overwrite")
    assert_mistake(linked, f"is a link to {target}")
    assert target.read_bytes() == found.output
    os.mkfifo(tmp_path / "pipe")
    piped = run("graph", "communities", *given, *options[:-1], str(tmp_path / "pipe"), "--overwrite")
    assert_mistake(piped, "is not a plain file")
    assert (tmp_path / "pipe").is_fifo()


def test_what_is_bad_is_told(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "posts.dat"
    bad.write_bytes((folder / "posts.dat").read_bytes() + b"2010-01-01|1|2\nnonsense\n")
    given = ["--posts", str(bad), *files(folder, "comments"), "--out", str(tmp_path / "out")]
    done = run("graph", "posts", *given, "--changes", "events")
    assert done.code == 0
    assert "2 malformed posts, left out" in done.err
    assert "lines" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--k", "0"], "--k"), (["--changes", "some"], "--changes"), (["--json"], "--out"),
        (["--overwrite"], "--overwrite is for --out"), (["--out", "."], "directory"), (["--out", "no/x"], "no/x"),
    ],
)  # fmt: skip
def test_mistakes(folder: Path, options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_mistake(run("graph", "posts", *files(folder, "posts", "comments"), *options), said)
    assert names_in(tmp_path) == []


def test_a_missing_file(folder: Path, tmp_path: Path) -> None:
    given = ["--posts", str(tmp_path / "none.dat"), *files(folder, "comments"), "--out", str(tmp_path / "out")]
    assert_mistake(run("graph", "posts", *given), "none.dat is not there")
    given[1] = str(folder)
    assert_mistake(run("graph", "posts", *given), "cannot be read")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("target", ["social", "file"])
def test_a_network_is_replaced_only_if_asked(folder: Path, target: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "social").mkdir()
    command = ("generate", "social", "--events", "10", "--out", tmp_path / target)
    assert_mistake(run(*command), "is a file" if target == "file" else "--overwrite")
    if target == "social":
        assert run(*command, "--overwrite").code == 0
    assert names_in(tmp_path) == ["file", "social"]
