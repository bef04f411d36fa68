"""The DEBS 2016 queries as operators that anyone could write (examples/graphs), beside the kernels."""

from __future__ import annotations

import datetime as dt
import runpy
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import Peer, Row, Table, best_of, step
from trellis.graphs import run as run_pipeline
from trellis.io.generate.social import social, write_social
from trellis.papers.debs2016 import communities, posts

EXAMPLES = Path(__file__).parents[1] / "examples" / "graphs"
HALF_A_DAY = 12 * 3600
TIME = pa.timestamp("us", "UTC")
OF_POSTS = pa.schema(
    [("ts", TIME), ("id", pa.int64()), ("kind", pa.string()), ("post", pa.int64()), ("user", pa.int64()),
     ("name", pa.string())]
)  # fmt: skip
OF_COMMUNITIES = pa.schema(
    [("ts", TIME), ("id", pa.int64()), ("kind", pa.string()), ("comment", pa.int64()), ("name", pa.int64()),
     ("text", pa.string()), ("a", pa.int64()), ("b", pa.int64())]
)  # fmt: skip


def run(quick: bool) -> list[Table]:
    number = 500 if quick else 5_000
    step("making a social network")
    network = social(number, 1)
    with tempfile.TemporaryDirectory() as folder:
        write_social(network, f"{folder}/files")
        files = {name: Path(f"{folder}/files/{name}.dat").read_bytes() for name in network}
    rows = [_posts(network, files, quick), _communities(network, files, quick)]
    note = (
        "Both give the same lines, which is checked. The kernels read files, the operators a table of the same events."
    )
    return [Table(f"The queries as operators, over {number:,} events", rows, [note])]


def _posts(network: dict[str, pa.Table], files: dict[str, bytes], quick: bool) -> Row:
    module = runpy.run_path(str(EXAMPLES / "debs_posts.py"))
    table = post_events(network)

    def operators() -> pa.Table:
        return run_pipeline(
            table, module["SPLITTER"], module["PostScore"], module["best_posts"](3), event_id="id"
        ).table

    kernel = best_of("posts, kernel", lambda: posts(files["posts"], files["comments"], k=3), quick=quick)
    assert lines(operators(), "best") == posts(files["posts"], files["comments"], k=3).output
    timing = best_of("posts, operators", operators, quick=quick, runs=1, warm=lambda: None)
    return _row("the best posts", table, timing, kernel)


def _communities(network: dict[str, pa.Table], files: dict[str, bytes], quick: bool) -> Row:
    module = runpy.run_path(str(EXAMPLES / "debs_communities.py"))
    table = community_events(network)
    given = [files[name] for name in ("friendships", "comments", "likes")]

    def operators() -> pa.Table:
        operator, merger = module["communities"](HALF_A_DAY), module["largest_communities"](3)
        return run_pipeline(table, module["SPLITTER"], operator, merger, event_id="id").table

    kernel = best_of("communities, kernel", lambda: communities(*given, k=3, d=HALF_A_DAY), quick=quick)
    assert lines(operators(), "texts") == communities(*given, k=3, d=HALF_A_DAY).output
    timing = best_of("communities, operators", operators, quick=quick, runs=1, warm=lambda: None)
    return _row("the largest communities", table, timing, kernel)


def _row(name: str, table: pa.Table, timing: Any, kernel: Any) -> Row:
    rate = table.num_rows / timing.wall
    return Row(f"{name} by operators: {rate:,.0f} events/s", timing, peers=[Peer("the kernel", kernel)])


def post_events(network: dict[str, pa.Table]) -> pa.Table:
    """Return posts and comments, each with the post that it belongs to; comments on what is not there are left out."""
    rows = [{**row, "kind": kind} for kind in ("post", "comment") for row in network[f"{kind}s"].to_pylist()]
    rows.sort(key=lambda row: row["ts"])  # of one time posts are first
    post_of: dict[int, int] = {}
    found: list[dict[str, Any]] = []
    for row in rows:
        above = row["post"] if row["kind"] == "post" else int(row["replied_comment"] or row["replied_post"])
        if row["kind"] == "post" or above in post_of:
            own = row["post" if row["kind"] == "post" else "comment"]
            post_of[own] = own if row["kind"] == "post" else post_of[above]
            found.append({**row, "post": post_of[own]})
    return _table(found, OF_POSTS)


def community_events(network: dict[str, pa.Table]) -> pa.Table:
    """Return friendships, comments and likes; a comment has a number of its own, a like of none tells only the time."""
    kinds = ("friendship", "comment", "like")
    rows = [{**row, "kind": kind} for kind in kinds for row in network[f"{kind}s"].to_pylist()]
    rows.sort(key=lambda row: row["ts"])  # of one time friendships are first, then comments
    number_of: dict[int, int] = {}
    found: list[dict[str, Any]] = []
    for row in rows:
        made = {"ts": row["ts"], "kind": "other"}
        if row["kind"] == "comment":
            number_of[row["comment"]] = len(found)
            made |= {"kind": "comment", "comment": len(found), "name": row["comment"], "text": row["text"]}
        elif row["kind"] == "friendship":
            made |= {"kind": "friendship", "a": row["user"], "b": row["other"]}
        elif row["comment"] in number_of:
            made |= {"kind": "like", "comment": number_of[row["comment"]], "a": row["user"]}
        found.append(made)
    return _table(found, OF_COMMUNITIES)


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return events that are in order, with ids."""
    for number, row in enumerate(rows):
        row |= {"id": number, "ts": dt.datetime.strptime(row["ts"], "%Y-%m-%dT%H:%M:%S.%f%z")}
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def lines(found: pa.Table, column: str) -> bytes:
    """Return results as the challenge writes them."""
    texts = zip(found["time"].to_pylist(), found[column].to_pylist(), strict=True)
    return "".join(
        f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}+0000,{text}\n" for time, text in texts
    ).encode("latin-1")
