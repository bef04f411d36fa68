"""Vertex programs on Spark give what they give in this process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.graphs.test_vertex import Flips
from trellis.api.pipeline import execute as anywhere
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
)

pytestmark = pytest.mark.spark


def random_edges(number: int, vertices: int, seed: int = 3, text: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, vertices, (2, number))
    columns: Any = [[f"v{v}" for v in end.tolist()] for end in ends] if text else list(ends)
    return pa.table({"source": columns[0], "target": columns[1], "weight": rng.integers(1, 9, number) / 2})


def both(spark: SparkSession, program: VertexProgram, table: pa.Table, **more: Any) -> None:
    here = anywhere(program, table, **more)
    there = anywhere(program, spark.createDataFrame(table), **more)
    wanted = here.to_dict()
    if isinstance(program, PageRank):
        wanted = pytest.approx(wanted, rel=1e-12)  # the sums of blocks are summed in any order
    assert there.to_dict() == wanted
    if isinstance(program, PageRank | ShortestPaths | Flips):  # others are found here without rounds
        assert (there.rounds, there.scheduled) == (here.rounds, here.scheduled)


def test_the_same_answers_here_and_there(spark: SparkSession) -> None:
    both(spark, ShortestPaths("v3", "v4", weighted=True), random_edges(40, 12, text=True), weight="weight")


@pytest.mark.slow
@pytest.mark.parametrize("directed", [True, False])
def test_all_programs_give_the_same(spark: SparkSession, directed: bool) -> None:
    table = random_edges(60, 25, text=True)
    both(spark, PageRank(tolerance=1e-2), table, weight="weight", directed=directed)
    both(spark, Components(), table.slice(0, 18), directed=directed)
    both(spark, Cores(), table, directed=directed)
    both(spark, Triangles(), random_edges(60, 20), directed=directed)
    both(spark, Cliques("v7"), table, directed=directed)


@pytest.mark.slow
def test_graphs_that_cannot_be(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table({"source": [1, 2], "target": [2, 3], "name": ["a", "b"]}))
    vertices = spark.createDataFrame(pa.table({"id": [1, 2]}))
    with pytest.raises(DataError, match="the edge from 2 to 3 ends at 3, which is not a vertex"):
        anywhere(Components(), frame, vertices=vertices)
    with pytest.raises(UsageError, match="no column `sorce`"):
        anywhere(Components(), frame, source="sorce")
    with pytest.raises(DataError, match="different types"):
        anywhere(Components(), frame, target="name")
    with pytest.raises(UsageError, match="has no vertex 'x'"):
        anywhere(ShortestPaths("x"), frame)
    with pytest.raises(NotConverged, match="Flips has not converged after 7 rounds"):
        anywhere(Flips(), spark.createDataFrame(pa.table({"source": [1, 2], "target": [2, 1]})))
    missing = spark.createDataFrame(pa.table({"source": pa.array([1, None]), "target": [1, 2]}))
    with pytest.raises(DataError, match="`source` is NULL in 1 rows"):
        anywhere(Components(), missing)
    alone = spark.createDataFrame(pa.table({"id": [1, 2, 3, 4]}))
    assert anywhere(Components(), frame, vertices=alone).to_dict() == {1: 1, 2: 1, 3: 1, 4: 4}
    nothing = frame.limit(0)
    assert anywhere(PageRank(), nothing).to_dict() == {}
