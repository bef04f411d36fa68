"""The benchmarks: what Trellis claims of its speed and memory, measured beside its peers.

A benchmark is a module here with a function `run(quick)`; its first line says what it measures. `trellis bench NAME`
runs it. One that also takes `large` has larger sizes, for `--large`. A `Figure` is a figure of a paper.

    def run(quick: bool) -> list[Table]:
        table = prices(1_000 if quick else 1_000_000)
        ours = best_of("counting", lambda: RISING.detect(table, event_id="id").count(), quick=quick)
        plain = best_of("counting plainly", lambda: plainly(table), quick=quick)
        row = Row("count", ours, peers=[Peer("over all pairs", plain)], targets=[at_most(1.5, "s", ours.wall)])
        return [Table("One window", [row])]
"""

from benchmarks.measure import Timing, best_of, median_of, memory_of, step
from benchmarks.report import Figure, Limit, Peer, Row, Table, Target, at_least, at_most

__all__ = [
    "Figure",
    "Limit",
    "Peer",
    "Row",
    "Table",
    "Target",
    "Timing",
    "at_least",
    "at_most",
    "best_of",
    "median_of",
    "memory_of",
    "step",
]
