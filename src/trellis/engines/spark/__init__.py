"""The Spark engine: sessions, sources, the split, batches, streams and graphs on Spark."""

from importlib.util import find_spec

from trellis.errors import UsageError

if find_spec("pyspark") is None:
    raise UsageError(
        "Spark is not installed here, and this needs it",
        "Install it with `pip install 'trellis-cep[spark]'`, or run in this process: engine=\"local\" in Python, "
        "--engine local on the command line.",
    )
