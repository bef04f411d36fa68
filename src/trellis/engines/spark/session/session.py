"""The Spark session: the one that is there, or a quiet local one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession

from trellis.caches import COMPILED, compiled_directory, temporary_directory
from trellis.engines.spark.session.jvm import exit_code
from trellis.engines.spark.session.masters import check_master
from trellis.errors import UsageError

OLDEST_JAVA = 17

_INSTALL_JAVA = (
    "Install one, for example with `sudo apt-get install openjdk-17-jre-headless`, "
    "or set JAVA_HOME to the one you have."
)
_INSTALL_CONNECT = "Install what it needs with `pip install 'pyspark[connect]'`."
_LOG4J = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.python.name = org.apache.spark.api.python.PythonGatewayServer
logger.python.level = error
logger.task.name = org.apache.spark.scheduler.TaskSetManager
logger.task.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
"""
_UTC = "-Duser.timezone=UTC"  # ORC tells times in the zone of the JVM
_GIGABYTE = 1 << 30

_MEMORY = "spark.driver.memory"

_ours: list[SparkSession] = []
_started_with: dict[str, str] = {}  # the settings of the JVM, which cannot tell them when it has ended


def get_session(master: str | None = None, conf: Mapping[str, Any] | None = None) -> SparkSession:
    """Return the active Spark session, or start one.

    Parameters
    ----------
    master
        Where to run a session that has to be started: `local[*]` without it; `sc://...` for Spark Connect. An
        active session stays where it is.
    conf
        Settings; they win over those of Trellis. An active session takes those that can change while it runs.

    Returns
    -------
    pyspark.sql.SparkSession
        One of our own is quiet, without a user interface, and in UTC.

    Raises
    ------
    UsageError
        If there is no Java, nothing answers at the master's address, Spark does not start, or a setting is refused.
    """
    settings = {key: _text(value) for key, value in (conf or {}).items()}
    active = _active()
    if active is not None:
        _apply(active, settings)
        return active
    session = _start(master or settings.get("spark.master", "local[*]"), settings)
    _ours.append(session)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop a session if Trellis started it; one that was there before goes on."""
    if session in _ours:
        _ours.remove(session)
        try:
            session.stop()
        except (Py4JError, OSError) as problem:
            if exit_code(problem) is None:
                raise


def heap_size() -> str | None:
    """Return how much memory the JVM may take, such as `4g`, as far as it is known."""
    try:
        told = SparkSession.active().conf.get(_MEMORY, None)
    except Exception:
        told = None  # it may have gone down with its memory
    return told or _started_with.get(_MEMORY)


def _active() -> SparkSession | None:
    """Return the session of this thread or, where it has none, of the process."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _apply(session: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        if key == "spark.master" or session.conf.get(key, None) == value:
            continue
        if not session.conf.isModifiable(key):
            raise UsageError(
                f"The setting {key} cannot change while Spark runs.", "Give it before the session is started."
            )
        session.conf.set(key, value)


# --- Starting one -----------------------------------------------------------------------------------------------


def _start(master: str, settings: Mapping[str, str]) -> SparkSession:
    check_master(master)
    if master.startswith("sc://"):
        return _created(SparkSession.builder.remote(master), settings, [])
    os.environ["JAVA_HOME"] = str(find_java())
    if "spark.pyspark.python" in settings:  # only spark-submit looks at it itself
        os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ[COMPILED] = str(compiled_directory() or "")
    builder = SparkSession.builder.master(master).appName("trellis")
    merged = {**_defaults(master), **settings}
    merged["spark.driver.extraJavaOptions"] = _java_options(settings)
    _started_with.update(merged)
    with _filtered_stderr() as said:
        session = _created(builder, merged, said)
    _silence_accumulators(session)
    return session


def _created(builder: SparkSession.Builder, settings: Mapping[str, str], said: list[str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkImportError as error:
        raise UsageError(f"Spark Connect does not start: {error.getMessage()}", _INSTALL_CONNECT) from None
    except (PySparkException, Py4JError, RuntimeError) as error:
        told = next((line for line in said if "Error: " in line or "Exception: " in line), None)
        raise UsageError(f"Spark does not start: {told or _first_line(error)}") from None


def _silence_accumulators(session: SparkSession) -> None:
    """Have no traceback printed by the thread that waits for accumulators when the JVM ends: whoever asks tells it."""
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _defaults(master: str) -> dict[str, str]:
    general = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.executor.extraJavaOptions": _UTC,
        "spark.sql.caseSensitive": "true",  # as names of columns are in queries
        "spark.sql.legacy.parquet.nanosAsLong": "true",  # or files with such times could not be read at all
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # a fifth of planning: every column notes who made it
    }
    return {**general, **_local_defaults(master)} if master.startswith("local") else general


def _local_defaults(master: str) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        _MEMORY: f"{_driver_megabytes()}m",
        f"spark.executorEnv.{COMPILED}": os.environ[COMPILED],
        "spark.sql.shuffle.partitions": str(2 * local_cores(master)),
    }


def local_cores(master: str) -> int:
    """Return how many tasks a local master runs at once."""
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    threads = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?", master)
    if threads and threads[1] == "*":
        return os.cpu_count() or 1
    return int(threads[1]) if threads and threads[1] else 1


def _driver_megabytes() -> int:
    """Return a quarter of the memory that is there, from 1 to 8 GB: Python needs the rest."""
    quarter = min(_limits()) // 4
    return max(_GIGABYTE, min(quarter, 8 * _GIGABYTE)) >> 20


def _limits() -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return
    if limit.isdigit():
        yield int(limit)


# --- Java -------------------------------------------------------------------------------------------------------


def find_java(homes: Iterable[Path] | None = None) -> Path:
    """Return the home of a Java that Spark can run on.

    Parameters
    ----------
    homes
        Where one may be. By default `JAVA_HOME` comes first, then the one that the set-up script remembered beside this
        Python, then the PATH, then `/usr/lib/jvm`.

    Raises
    ------
    UsageError
        If none is new enough.
    """
    too_old: list[int] = []
    for home in _java_homes() if homes is None else homes:
        version = _java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
        too_old += [] if version is None else [version]
    found = f"only Java {max(too_old)} was found" if too_old else "none was found"
    raise UsageError(f"Spark needs Java {OLDEST_JAVA} or newer, and {found}.", _INSTALL_JAVA)


def _java_homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    remembered = Path(sys.prefix, "java_home")
    if remembered.is_file():
        yield Path(remembered.read_text().strip())
    command = shutil.which("java")
    if command is not None:
        yield Path(command).resolve().parent.parent
    yield from sorted(Path("/usr/lib/jvm").glob("*"))


def _java_version(home: Path) -> int | None:
    """Return the major version of a Java, or None if there is none that runs."""
    try:
        told = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return int(version[1]) if version else None


def _java_options(settings: Mapping[str, str]) -> str:
    """Return the options of the JVM: the user's, and UTC and quiet logs unless these say otherwise."""
    given = settings.get("spark.driver.extraJavaOptions", "")
    options = [given] if "user.timezone" in given else [_UTC, given]
    if "log4j" not in given:
        file = temporary_directory() / "log4j2.properties"
        file.write_text(_LOG4J)
        options.append(f'-Dlog4j2.configurationFile="{file.as_uri()}"')
    return " ".join(options)


# --- What the JVM says on its own -------------------------------------------------------------------------------


@contextmanager
def _filtered_stderr() -> Iterator[list[str]]:
    """Let a JVM that is started inside write to stderr all but its warnings about itself.

    These come before any logging is set up (`Using incubator modules`), and no option turns them off.
    """
    try:
        real = os.dup(2)
    except OSError:
        yield []
        return
    said: list[str] = []
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_forward, args=(reading, os.dup(real), said), daemon=True).start()
    try:
        yield said
    finally:
        os.dup2(real, 2)
        os.close(real)


def _forward(source: int, target: int, said: list[str]) -> None:
    """Copy lines until all writers are gone, without those that begin with `WARNING:`; keep the first hundred."""
    with os.fdopen(source, "rb") as lines, os.fdopen(target, "wb", buffering=0) as out:
        for line in lines:
            if line.startswith(b"WARNING: "):
                continue
            out.write(line)
            if len(said) < 100:
                said.append(line.decode(errors="replace").strip())


def cores(session: SparkSession) -> int:
    """Return how many tasks can run at a time; on Spark Connect, which does not tell, how many a shuffle makes."""
    context = getattr(session, "_sc", None)
    return int(context.defaultParallelism if context else session.conf.get("spark.sql.shuffle.partitions") or 1)
