"""Caches: what others may have written is not believed, and without a home there are none."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cases import COMMAND, RISING, Done, names_in, without_notice
from trellis import caches
from trellis.engines.spark.ship.shared import load, save
from trellis.errors import DataError
from trellis.language.parser import parse

PYTHON = "".join(map(str, sys.version_info[:2]))
PARSE = f"from trellis.language.parser import parse; print(parse({RISING!r}))"
COMPILE = """
import numpy as np
from trellis.kernels.graph import neighbours as gas

out = np.zeros(1, np.int64)
gas.h_index(np.array([3, 3, 3]), np.array([0, 3]), out)
print(out[0])
"""


class Evil:
    """Leaves a file behind when it is read as a pickle."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


def planted(file: Path, mark: Path) -> None:
    """Write what runs when it is read as the tables of the grammar were kept once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\n" + pickle.dumps(Evil(mark)))


def run_in(directory: Path, *command: str, **environment: str | None) -> Done:
    """Run a program in a directory; a variable that is None is not there."""
    env = {k: v for k, v in (dict(os.environ) | environment).items() if v is not None}
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=300, check=False)
    return Done(done.returncode, done.stdout, without_notice(done.stderr))


@pytest.mark.parametrize("home", ["~", ".", ""])
def test_without_a_home_nothing_is_read_or_made_in_the_working_directory(tmp_path: Path, home: str) -> None:
    here, mark = tmp_path / "here", tmp_path / "mark"
    here.mkdir()
    done = run_in(here, *COMMAND, "explain", RISING, HOME=home, XDG_CACHE_HOME=None)
    assert (done.code, done.err) == (0, "")
    assert names_in(here) == []
    planted(here / home / ".cache" / "trellis" / f"grammar-{PYTHON}.lark", mark)
    before = sorted(here.rglob("*"))
    assert run_in(here, *COMMAND, "explain", RISING, HOME=home, XDG_CACHE_HOME="~/.cache").code == 0
    assert not mark.exists()
    assert sorted(here.rglob("*")) == before


def test_a_cache_that_others_may_write_is_told_and_not_used(tmp_path: Path) -> None:
    cache, mark = tmp_path / "cache", tmp_path / "mark"
    planted(cache / "trellis" / f"grammar-{PYTHON}.lark", mark)
    (cache / "trellis").chmod(0o777)
    done = run_in(tmp_path, *COMMAND, "explain", RISING, XDG_CACHE_HOME=str(cache))
    assert done.code == 0
    assert f"others may write into {cache / 'trellis'}" in done.err.replace("\n", " ")
    assert done.err.count("warning: ") == 1
    assert not mark.exists()
    assert not list(cache.rglob("*.json"))


def test_the_tables_of_the_parser_are_plain_and_private(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run_in(tmp_path, *COMMAND, "explain", RISING, XDG_CACHE_HOME=str(cache)).code == 0
    (file,) = (cache / "trellis" / "grammar").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.read_bytes().split(b"\n")[2].startswith(b'{"data":{')
    made, wanted = file.stat().st_ino, Done(0, f"{parse(RISING)}\n", "")

    def parsed() -> Done:
        return run_in(tmp_path, sys.executable, "-c", PARSE, XDG_CACHE_HOME=str(cache))

    assert parsed() == wanted
    assert file.stat().st_ino == made, "it was read, not made anew"
    for damage in (b"", file.read_bytes()[:-9], file.read_bytes().replace(b"query", b"quert")):
        file.write_bytes(damage)
        assert parsed() == wanted
    file.unlink()
    file.symlink_to(tmp_path / "other")
    assert parsed() == wanted
    assert not file.is_symlink()


def test_compiled_code_that_others_may_have_written_does_not_run(tmp_path: Path) -> None:
    compiled, cache, mark = tmp_path / "compiled", tmp_path / "cache", tmp_path / "mark"
    places = {"NUMBA_CACHE_DIR": str(compiled), "XDG_CACHE_HOME": str(cache)}
    assert run_in(tmp_path, sys.executable, "-c", COMPILE, **places).out == "3\n"
    kept = sorted(compiled.rglob("*.nbc"))
    assert kept, "where the user says, and private"
    assert compiled.stat().st_mode & 0o777 == 0o700
    for file in kept:
        file.write_bytes(pickle.dumps(Evil(mark)))
    compiled.chmod(0o777)
    done = run_in(tmp_path, sys.executable, "-c", COMPILE, **places)
    assert not mark.exists()
    assert (done.out, "others may write into" in done.err) == ("3\n", True)
    assert list((cache / "trellis" / "numba").rglob("*.nbc"))


def test_numba_never_makes_a_directory_called_tilde(tmp_path: Path) -> None:
    script = f"{COMPILE}print(gas.h_index.stats.cache_path)"
    here = tmp_path / "here"
    here.mkdir()
    done = run_in(here, sys.executable, "-c", script, HOME="~", XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None)
    result, place = done.out.splitlines()
    assert (result, names_in(here)) == ("3", [])
    assert Path(place).is_absolute()
    assert not Path(place).exists(), "it went away with the process"


def test_a_saved_slice_that_somebody_else_may_have_written_is_not_read(tmp_path: Path) -> None:
    file, mark = tmp_path / "slice", tmp_path / "mark"
    assert save([1, 2], file) == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600
    assert load(file) == [1, 2]
    with pytest.raises(FileExistsError):
        save([3], file)
    save(Evil(mark), tmp_path / "evil")
    (tmp_path / "link").symlink_to(tmp_path / "evil")
    with pytest.raises(DataError, match="is a link"):
        load(tmp_path / "link")
    (tmp_path / "evil").chmod(0o622)
    with pytest.raises(DataError, match="others may write it"):
        load(tmp_path / "evil")
    assert not mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = caches.cache_directory("numba")
    assert made == tmp_path / "cache" / "trellis" / "numba"
    for place in (made, made.parent, tmp_path / "cache"):
        os.chown(place, 12345, 0)
        with pytest.warns(UserWarning, match=f"others may write into {place}"):
            assert caches.cache_directory("numba") is None
        os.chown(place, 0, 0)
    save([1], tmp_path / "slice")
    os.chown(tmp_path / "slice", 12345, 0)
    with pytest.raises(DataError, match="belongs to somebody else"):
        load(tmp_path / "slice")


def test_where_no_cache_can_be_made_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert caches.cache_directory("numba") is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    assert caches.cache_directory("numba") is None
    assert not (tmp_path / "nowhere").exists()
