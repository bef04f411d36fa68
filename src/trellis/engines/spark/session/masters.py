"""Whether anything answers where a session is to run: Spark itself asks for minutes, and does not say for what."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from trellis.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PORTS = {"spark": 7077, "sc": 15002}
_PATIENCE = 10.0  # seconds


def check_master(master: str) -> None:
    """Refuse the address of a standalone master or a Spark Connect server where nothing answers.

    Parameters
    ----------
    master
        `spark://HOST:PORT`, or several hosts with commas between them, or `sc://HOST:PORT/;...`; others are not
        looked at.

    Raises
    ------
    UsageError
        If none of the hosts takes a connection, or a port is no number.
    """
    scheme = master.partition("://")[0]
    if scheme not in _PORTS or (scheme == "sc" and getproxies()):  # a proxy would have to be asked
        return
    if not any(map(_answers, _places(master, scheme))):
        what = "Spark master" if scheme == "spark" else "Spark Connect server"
        raise UsageError(f"no {what} answers at {master}", "Check that it runs there, and that it can be reached.")


def is_connect(session: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def refuse_connect(session: SparkSession, what: str, instead: str) -> None:
    """Refuse a session of Spark Connect for what this process does with each batch of a stream: there it cannot.

    `what` says whose batches these are, `instead` what works.
    """
    if is_connect(session):
        raise UsageError(
            f"{what} writes each batch from this process, which Spark Connect does not let a client do",
            f"Run it with --master spark://HOST:PORT, yarn, k8s://... or local[*]{instead}.",
        )


def _places(master: str, scheme: str) -> Iterator[tuple[str, int]]:
    for place in master.partition("://")[2].split(","):
        address = urlsplit(f"//{place.partition('/')[0]}")
        try:
            yield address.hostname or "", address.port or _PORTS[scheme]
        except ValueError:
            raise UsageError(f"the port of {master} is no port number") from None


def _answers(place: tuple[str, int]) -> bool:
    with suppress(OSError, UnicodeError), socket.create_connection(place, _PATIENCE):
        return True
    return False
