"""Rows that are listed as words of events are those that are taken from positions: text ids have no other way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.plan.sizes import Sizes

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
PAIR = "PATTERN SEQ(A {0}, B+ {1}[], C {2}) WHERE {1}[i].price > {1}[i-1].price WITHIN 12 SLIDE 4"
QUERIES = {
    "whole": RISING,
    "any": f"{RISING} WITHIN 9 SLIDE 3 REPORT any",
    "span": f"{RISING} WITHIN 9",
    "lengths": f"{RISING} HAVING LENGTH >= 3 AND LENGTH <= 5",
    "partition": f"{RISING} AND [key] WITHIN 20 SLIDE 10",
    "letters": PAIR.format("a", "b", "c"),
    "names": PAIR.format("first", "b", "at_last"),
    "a search": PAIR.format("a", "b", "c").replace("WITHIN", "AND c.price > a.price WITHIN"),
}


def events(n: int = 60) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table({
        "ts": np.sort(rng.integers(0, n // 2, n)), "id": rng.permutation(n) + 10**12, "price": rng.integers(0, 12, n),
        "key": rng.choice(["x", "y"], n), "type": rng.choice(["A", "B", "C"], n),
    })  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_words_and_positions_give_the_same_rows(name: str, threads: int) -> None:
    sizes = Sizes(word_values=500, first_rows=32, large_rows=64)
    table = events()
    place = table.schema.get_field_index("id")
    texts = table.set_column(place, "id", table["id"].cast(pa.string()))
    kind = {"type": "type"} if "SEQ" in QUERIES[name] else {}
    query = trellis.query(QUERIES[name])
    words, by_text = (query.detect(some, event_id="id", sizes=sizes, **kind) for some in (table, texts))
    total = words.count()
    assert total > 100
    for ranks in (None, range(total // 3, total // 3 + 90)):
        if ranks is not None and len(words.counts()) > 1:
            continue
        ours = pa.Table.from_batches(words.batches(threads=threads, ranks=ranks), words.schema)
        theirs = pa.Table.from_batches(by_text.batches(threads=threads, ranks=ranks), by_text.schema)
        at = theirs.schema.get_field_index("events")
        theirs = theirs.set_column(at, "events", theirs["events"].cast(pa.list_(pa.int64())))
        assert ours.num_rows == (total if ranks is None else 90)
        ours.validate(full=True)
        assert ours.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize("name", ["whole", "any", "span"])
def test_the_compact_form_has_the_same_words(name: str) -> None:
    found = trellis.query(QUERIES[name]).detect(events(), event_id="id")
    rows, last = [], []
    for batch in found.batches(compact=True):
        for row in batch.to_pylist():
            last = last[: row.pop("shared")] + row.pop("new")
            rows.append({**row, "events": last})
    assert rows == found.to_arrow().to_pylist()
