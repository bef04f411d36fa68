"""A standalone cluster of Spark's on this machine: a master and workers in processes of their own, and their Python."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from trellis.engines.spark.session.failures import NEEDED
from trellis.engines.spark.session.session import find_java

SPARK_HOME = Path(pyspark.__file__).parent
SITE = SPARK_HOME.parent
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICKLY = ("--conf", f"spark.driver.extraJavaOptions={QUICK_START}")
"""What a command is given so that a JVM that lives for some seconds compiles little."""
CONF = {
    "spark.cores.max": 2,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "600m",
    "spark.scheduler.minRegisteredResourcesRatio": 1.0,  # both workers take part
    "spark.shuffle.io.maxRetries": 1,
    "spark.shuffle.io.retryWait": "1s",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",  # many small tasks
}


def workers_python(directory: Path) -> Path:
    """Make a Python that has what the README says an executor needs: not Trellis, and not what only a driver uses."""
    return python_with(directory, {*NEEDED, "llvmlite"})


def python_with(directory: Path, packages: Iterable[str]) -> Path:
    """Make a Python that has some of the packages of this one, and nothing else; return its path."""
    venv.create(directory, symlinks=True)
    (target,) = directory.glob("lib/python*/site-packages")
    for entry in SITE.iterdir():
        if entry.name.removesuffix(".libs") in packages:
            (target / entry.name).symlink_to(entry)
    return directory / "bin" / "python"


def _end_with_parent() -> None:
    """Have the kernel kill this process if the one that started it is killed itself."""
    set_signal_of_parents_death = 1
    ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL)


def wait_until(what: str, found: Callable[[], Any], seconds: float = 60) -> Any:
    """Ask until there is an answer, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = found()
        if answer:
            return answer
        time.sleep(0.02)
    raise TimeoutError(f"{what}: not within {seconds} seconds")


@dataclass
class Cluster:
    """Processes with their logs in a directory, which all end with it."""

    directory: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    master: str = ""

    def start(self, name: str, *command: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own; what it says goes to a log of its name."""
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=self.environment | environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        self.processes[name] = process
        return process

    def start_java(self, name: str, main: str, *arguments: str) -> None:
        self.start(name, SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.{main}", *arguments)

    def start_worker(self, name: str, cores: int = 1, memory: str = "700m") -> None:
        """Start a worker, whose executors leave their logs below its name."""
        web, has = ("--webui-port", "0"), ("--cores", str(cores), "--memory", memory)
        host, work = ("--host", "127.0.0.1"), ("--work-dir", str(self.directory / f"{name}-work"))
        self.start_java(name, "deploy.worker.Worker", *host, *web, *has, *work, self.master)

    def start_connect(self, name: str, master: str, conf: dict[str, Any], **environment: str) -> str:
        """Start a Spark Connect server, and return its address."""
        settings = {"spark.connect.grpc.binding.port": 0, "spark.ui.enabled": "false", **CONF, **conf}
        given = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
        server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
        submit = (SPARK_HOME / "bin" / "spark-submit", "--master", master)
        self.start(name, *submit, *given, *server, SPARK_DAEMON_MEMORY="1g", **environment)
        return f"sc://127.0.0.1:{self.said(name, r'Spark Connect server started at: .*:([0-9]+)')}"

    def kill(self, name: str) -> None:
        """Kill a process and all that it has started, as if its machine had died."""
        with suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait(30)

    def said(self, name: str, pattern: str) -> str:
        """Wait until a process says something, and return the group of it."""
        process = self.processes[name]
        found = wait_until(pattern, lambda: re.search(pattern, self.log(name)) or process.poll() is not None)
        assert not isinstance(found, bool), f"{name} has ended"
        return str(found[1])

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def executor_log(self, worker: str) -> str:
        logs = (self.directory / f"{worker}-work").glob("app-*/*/stderr")
        return "".join(path.read_text(errors="replace") for path in logs)

    @property
    def sent(self) -> Path:
        """Where the workers unpack what is sent to them."""
        return self.directory / "cache" / "trellis" / "sent"

    @property
    def environment(self) -> dict[str, str]:
        """What the processes see: no Python path, and a cache of their own."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "JAVA_HOME": str(find_java()),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LAUNCHER_OPTS": QUICK_START,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.directory / "scratch"),
            "XDG_CACHE_HOME": str(self.directory / "cache"),
        }


@contextmanager
def running_cluster(directory: Path, workers: Iterable[str] = ("one", "two")) -> Iterator[Cluster]:
    """Start a master and workers."""
    with processes(directory) as cluster:
        cluster.start_java("master", "deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        cluster.master = cluster.said("master", r"Starting Spark master at (spark://\S+)")
        for name in workers:
            cluster.start_worker(name)
        yield cluster


@contextmanager
def processes(directory: Path) -> Iterator[Cluster]:
    """End all processes in the end; after an error show the ends of their logs."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(directory)
    try:
        yield cluster
    except BaseException as problem:
        for name in cluster.processes:
            problem.add_note(f"--- the end of {directory / name}.log\n{cluster.log(name)[-2000:]}")
        raise
    finally:
        for name in cluster.processes:
            cluster.kill(name)


def trellis_command(*arguments: str, conf: dict[str, Any]) -> list[str]:
    """Return the command line of Trellis, as a user has it."""
    settings = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
    return [sys.executable, "-m", "trellis.cli.main", *arguments, *settings]
