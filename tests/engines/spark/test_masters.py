"""Addresses where nothing answers are told at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from trellis.engines.spark.session.masters import check_master
from trellis.errors import UsageError


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which something answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> Iterator[int]:
    """A port that is taken, but at which nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_what_answers_is_accepted(port: int, closed: int) -> None:
    check_master(f"spark://127.0.0.1:{port}")
    check_master(f"spark://127.0.0.1:{closed},127.0.0.1:{port}")
    check_master(f"sc://127.0.0.1:{port}/;user_id=me")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://127.0.0.1:1"])
def test_others_are_not_asked(master: str) -> None:
    check_master(master)


def test_what_does_not_answer_is_refused(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(UsageError, match=f"no Spark master answers at spark://127.0.0.1:{closed}\nCheck that it runs"):
        check_master(f"spark://127.0.0.1:{closed}")
    with pytest.raises(UsageError, match=f"no Spark Connect server answers at sc://127.0.0.1:{closed}"):
        check_master(f"sc://127.0.0.1:{closed}")
    with pytest.raises(UsageError, match="the port of spark://head:port is no port number"):
        check_master("spark://head:port")
