"""Vertex programs on Spark give what they give in this process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.graphs.test_vertex import Flips
from trellis.errors import DataError, UsageError
from trellis.graphs import (
    Cliques,
    Components,
    Cores,
    NotConverged,
    PageRank,
    ShortestPaths,
    Triangles,
    VertexProgram,
    edge_list,
    execute,
)
from trellis.spark.vertices import execute as on_spark

pytestmark = pytest.mark.spark


def random_edges(number: int, vertices: int, seed: int = 3, text: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, vertices, (2, number))
    columns: Any = [[f"v{v}" for v in end.tolist()] for end in ends] if text else list(ends)
    return pa.table({"source": columns[0], "target": columns[1], "weight": rng.integers(1, 9, number) / 2})


def both(spark: SparkSession, program: VertexProgram, table: pa.Table, **more: Any) -> None:
    here = execute(program, edge_list(table, **more))
    there = on_spark(program, spark.createDataFrame(table), **more)
    assert there.to_dict() == here.to_dict()
    assert (there.rounds, there.scheduled) == (here.rounds, here.scheduled)


def test_the_same_answers_here_and_there(spark: SparkSession) -> None:
    table = random_edges(60, 25, text=True)
    both(spark, PageRank(tolerance=1e-2), table)
    both(spark, Components(), table.slice(0, 20))
    both(spark, Triangles(), table)
    both(spark, Cliques("v7"), table)
    both(spark, ShortestPaths("v3", "v4", weighted=True), random_edges(60, 25, text=True), weight="weight")
