"""`trellis` and `python -m trellis`: the command line, which Ctrl-C ends quietly while it is being loaded, too."""

from __future__ import annotations

import os
import signal
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # else whoever started this chose another
        signal.signal(signal.SIGINT, _end_at_once)
    from trellis.cli.main import main as run

    signal.signal(signal.SIGINT, usual)
    run()


def _end_at_once(*_: Any) -> None:
    """End without a word: nothing was begun, and an exception would appear in the middle of some import."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
