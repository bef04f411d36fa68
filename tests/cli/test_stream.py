"""`trellis stream`: mistakes that are found before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import run

QUERY = "PATTERN T+ t[] WHERE [g] WITHIN 10 s SLIDE 5 s"


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["in"], "no query was given"),
        ([QUERY, "nowhere"], "nowhere is not there"),
        ([QUERY, "in", "--flush"], "--flush is for the end of the input"),
        ([QUERY, "in", "--out", "in/out"], "lie in one another"),
        ([QUERY, "in", "--checkpoint", "."], "lie in one another"),
        ([QUERY, "in", "--checkpoint", "out"], "are the same directory"),
        ([QUERY, "in", "--watermark", "soon"], "the watermark `soon` is not a duration"),
        ([QUERY, "in", "--watermark", "5 moons"], "the watermark `5 moons` has no unit of time"),
        ([QUERY, "in", "--max-ahead", "-1 s"], "the guard --max-ahead `-1 s` is not a duration"),
        ([QUERY, "PATTERN T+ t[] WHERE u.x > 1", "in"], "the query `query-2`"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], wrong: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    given = {"--out": "out", "--checkpoint": "cp", "--watermark": "1 s"}
    more = [part for option, value in given.items() if option not in arguments for part in (option, value)]
    done = run("stream", *arguments, *more)
    assert done.code == 2, done.err
    assert wrong in done.err
    assert not (tmp_path / "out").exists()
