"""Graphs in event streams: split, operate on each part with a graph at hand, merge; and vertex programs."""

from trellis.graphs.arrays import EdgeList, edge_list
from trellis.graphs.engine import NotConverged, Result, execute
from trellis.graphs.events import Event, duration
from trellis.graphs.graph import Change, Graph, GraphStore
from trellis.graphs.merger import Combination, Merger, TopK
from trellis.graphs.operator import Operator
from trellis.graphs.program import VertexProgram
from trellis.graphs.programs import Cliques, Components, Cores, PageRank, ShortestPaths, Triangles
from trellis.graphs.run import run
from trellis.graphs.splitter import Partition, Splitter
from trellis.graphs.windows import all_of, any_of, between, count_windows, periodic, sequence, time_windows

__all__ = [
    "Change",
    "Cliques",
    "Combination",
    "Components",
    "Cores",
    "EdgeList",
    "Event",
    "Graph",
    "GraphStore",
    "Merger",
    "NotConverged",
    "Operator",
    "PageRank",
    "Partition",
    "Result",
    "ShortestPaths",
    "Splitter",
    "TopK",
    "Triangles",
    "VertexProgram",
    "all_of",
    "any_of",
    "between",
    "count_windows",
    "duration",
    "edge_list",
    "execute",
    "periodic",
    "run",
    "sequence",
    "time_windows",
]
