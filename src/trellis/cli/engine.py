"""The engine of a command: this process, or a Spark session that is silent and goes away with the command."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trellis.cli.console import silence
from trellis.cli.options import Engine, EngineOptions
from trellis.errors import UsageError

PATIENCE = 8.0  # seconds for Spark to stop after Ctrl-C; then the JVM goes with this process


@contextmanager
def started(options: EngineOptions) -> Iterator[Any]:
    """Give a Spark session, or None for the local engine; stop it in the end if it was started here."""
    settings = options.settings
    if options.engine is Engine.LOCAL:
        if options.master is not None or settings:
            raise UsageError("--master and --conf are for Spark", "Leave them out, or use --engine spark.")
        yield None
        return
    from trellis.spark.session import get_session, stop_session

    with silence():
        session = get_session(options.master, settings)
    try:
        yield session
    except KeyboardInterrupt:
        stopping = threading.Thread(target=stop_session, args=(session,), daemon=True)
        stopping.start()
        stopping.join(PATIENCE)
        raise
    except BaseException:
        stop_session(session)
        raise
    else:
        stop_session(session)
