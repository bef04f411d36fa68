"""Numbers in Prometheus's text format, as prometheus.io/docs/instrumenting/exposition_formats writes it."""

from __future__ import annotations

import pytest

from trellis.engines.spark.stream.watch import address_of
from trellis.errors import UsageError
from trellis.streams.exposition import COUNTER, GAUGE, Metric, exposition


def test_the_text_format_and_addresses() -> None:
    labelled = {(("path", 'C:\\DIR\n"x"'),): 1.5, (("path", ""),): 3.0}
    text = exposition(
        [
            Metric("a_total", "how many\nof them", COUNTER, {(): 7}),
            Metric("b", "b", GAUGE, labelled),
            Metric("c", "c", GAUGE),
        ]
    )
    assert text == (
        "# HELP a_total how many\\nof them\n# TYPE a_total counter\na_total 7\n"
        '# HELP b b\n# TYPE b gauge\nb{path="C:\\\\DIR\\n\\"x\\""} 1.5\nb{path=""} 3\n'
    )
    assert address_of("9109") == ("127.0.0.1", 9109)
    assert address_of("0.0.0.0:80") == ("0.0.0.0", 80)
    for wrong in ("http", "70000", "localhost:"):
        with pytest.raises(UsageError, match="no port"):
            address_of(wrong)
