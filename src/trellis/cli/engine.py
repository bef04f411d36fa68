"""The engine of a command: this process, or a Spark session that is silent and goes away with the command."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from trellis.cli.console import silence, with_details
from trellis.cli.options import EngineChoice, EngineOptions, EventOptions, SparkOptions
from trellis.errors import UsageError
from trellis.methods import Methods
from trellis.plan.choice import JOIN

PATIENCE = 8.0  # seconds for Spark to stop after an error; then the JVM goes with this process


def chosen_engine(options: EngineOptions, events: EventOptions, methods: Methods | None = None) -> EngineOptions:
    """Return where to run.

    What is small runs in this process, where Spark would take longer to start than to work. Spark runs the rest, and
    whatever looks like its own: settings of Spark, its algorithm, directories that it wrote, other storage.
    """
    from trellis.io.sources import are_small

    if options.engine is not None:
        return options
    join = methods is not None and methods.algorithm == JOIN
    spark = options.master is not None or bool(options.conf) or join or events.table is not None
    tables = [list(events.paths)] if events.paths else list(events.tables.values())
    here = not spark and are_small(tables, events.input_format)
    return replace(options, engine=EngineChoice.LOCAL if here else EngineChoice.SPARK)


@contextmanager
def started(options: SparkOptions) -> Iterator[Any]:
    """Give a Spark session, or None for the local engine; stop it in the end if it was started here.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, whatever Spark made of it.
    """
    settings = options.settings
    if isinstance(options, EngineOptions) and options.engine is EngineChoice.LOCAL:
        if options.master is not None or settings:
            raise UsageError("--master and --conf are for Spark", "Leave them out, or use --engine spark.")
        with _without_pandas():
            yield None
        return
    from trellis.engines.spark.session.failures import in_driver
    from trellis.engines.spark.session.progress import job_progress
    from trellis.engines.spark.session.session import stop_session

    session = _session(options.master, settings)
    with noticed_interrupts() as interrupted, with_details(lambda: str(job_progress(session) or "")):
        try:
            with in_driver():  # wherever the JVM ended
                yield session
        except BaseException:
            stopping = threading.Thread(target=stop_session, args=(session,), daemon=True)
            stopping.start()
            stopping.join(PATIENCE)
            if interrupted.is_set():
                raise KeyboardInterrupt from None
            raise
    stop_session(session)


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Keep pyarrow from importing pandas, which takes longer than a small file does.

    Whatever pyarrow makes an array of, it asks first whether it comes from pandas; without pandas nothing does.
    """
    if "pandas" in sys.modules:
        yield
        return
    sys.meta_path.insert(0, _NO_PANDAS)
    try:
        yield
    finally:
        sys.meta_path.remove(_NO_PANDAS)


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


_NO_PANDAS = _NoPandas()


def _session(master: str | None, settings: dict[str, str]) -> Any:
    from trellis.engines.spark.session.session import get_session

    before = _children()
    try:
        with silence(), _ended_by_signals(before) as ended:
            session = get_session(master, settings)
    except KeyboardInterrupt:
        _kill(_children() - before)
        raise
    except Exception:
        if ended():
            sys.exit(128 + ended())
        raise
    if ended():
        _kill(_children() - before)
        sys.exit(128 + ended())
    return session


@contextmanager
def _ended_by_signals(before: set[int]) -> Iterator[Callable[[], int]]:
    """Let SIGTERM and SIGHUP end the JVM that is being started; what waits for it then ends by itself.

    An exception in the midst of that would be raised wherever Python is just then, in code of others that prints it.
    """
    seen: list[int] = []
    over = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return

    def kill() -> None:
        while not over.wait(0.05):  # it may not be there yet
            _kill(_children() - before)

    def end(number: int, _: Any) -> None:
        if not seen:
            threading.Thread(target=kill, daemon=True).start()
        seen.append(number)

    usual = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield lambda: seen[0] if seen else 0
    finally:
        over.set()
        for number, handler in usual.items():
            signal.signal(number, handler)


def _kill(processes: set[int]) -> None:
    """End processes at once: a JVM that is left alone while it starts never ends."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _children() -> set[int]:
    """Return the processes that this one has started and that still run."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the command, in parentheses, may hold blanks.
            if int(status.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(status.parent.name))
    return found


@contextmanager
def noticed_interrupts(at_once: bool = True) -> Iterator[threading.Event]:
    """Give an event that Ctrl-C sets, besides what happens on it: at once, or only on the second.

    Spark cancels its jobs on it, and may fail with an error of its own.
    """
    noticed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noticed
        return
    usual = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: Any) -> None:
        passed_on = at_once or noticed.is_set()
        noticed.set()
        if passed_on and callable(usual):
            usual(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield noticed
    finally:
        signal.signal(signal.SIGINT, usual)
