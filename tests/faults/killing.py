"""Processes of a cluster that are found and killed while a command runs on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tests.engines.spark.cluster import Cluster, wait_until


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that live."""
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def descendants(pid: int) -> Iterator[int]:
    """Yield all that a process and those below it have started."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def python_workers(pid: int) -> list[int]:
    """Return the Python processes that run tasks below a process: what the daemon of PySpark has forked."""
    daemons = [one for one in descendants(pid) if "pyspark.daemon" in command_of(one)]
    return [one for daemon in daemons for one in children(daemon)]


def kill_python_worker(cluster: Cluster, worker: str, seconds: float = 60) -> None:
    """Kill the Python that works for the executor of a worker, as soon as there is one."""
    pid = cluster.processes[worker].pid
    for one in wait_until(f"Python of {worker}", lambda: python_workers(pid), seconds):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def tasks_of(cluster: Cluster, worker: str) -> int:
    """Return how many tasks the executors of a worker have finished so far, of all that ever ran there."""
    return cluster.executor_log(worker).count("Finished task")


def after_tasks(cluster: Cluster, worker: str, number: int, ended: Callable[[], bool], seconds: float = 200) -> None:
    """Wait until a worker has finished so many tasks more, or the command has ended."""
    before = tasks_of(cluster, worker)
    wait_until(f"tasks of {worker}", lambda: tasks_of(cluster, worker) >= before + number or ended(), seconds)
