"""The tree of a history walked from the top beside bit slices: from which size, density and rarity on it wins."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from benchmarks import Peer, Row, Table, Timing, step
from trellis.archive import Archive
from trellis.archive.answers import LEAVES_WORTH_A_WALK, Answerer, QuestionOptions

NEARLY = 1.25  # times the quicker way
QUESTIONS = {
    "SEQ of a rare name": "SEQ(rare a, rare b)",
    "SEQ with a name that never comes": "SEQ(rare a, never b, w1 c)",
    "OR and AND": "SEQ(OR(rare a, never b), AND(rare c, rare d))",
    "NOT between rare names": "SEQ(rare a, NOT(w1 b), rare c)",
    "frequent names": "SEQ(w1 a, w2 b)",
}


def run(quick: bool) -> list[Table]:
    """Ask histories of several sizes for names that come so often in a million events, of few or many names."""
    tables, won = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in (20_000,) if quick else (400_000, 1_000_000, 4_000_000):
            for names in (20,) if quick else (20, 1000) if number < 4_000_000 else (20,):
                for rarity in (1000,) if quick else (10, 1000):
                    archive = _built(Path(folder) / f"{number}-{names}-{rarity}", number, names, rarity)
                    table, here = _asked(archive, number, names, rarity, quick)
                    tables.append(table)
                    won.append(here)
    return [Table("From when on the tree wins", [Row(text) for text, _, _ in won], _summary(won)), *tables]


def _summary(won: list[tuple[str, int, int]]) -> list[str]:
    right, asked = sum(some for _, some, _ in won), sum(some for _, _, some in won)
    return [
        "By processor time, medians. auto took the quicker way, or one that takes no more than a quarter longer, in "
        f"{right} of {asked} ({right / asked:.0%})."
    ]


def _built(place: Path, number: int, names: int, rarity: int) -> Archive:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, names, number).astype(np.int32)
    codes[rng.integers(0, number, max(2, number * rarity // 1_000_000))] = names
    vocabulary = pa.array([*(f"w{i}" for i in range(names)), "rare"])
    text = pa.DictionaryArray.from_arrays(pa.array(codes), vocabulary)
    table = pa.table({"t": np.arange(number), "n": text.cast(pa.string())})
    return Archive.build(table, place, time="t", type="n", leaf=20, sizing="tree")


def _asked(archive: Archive, number: int, names: int, rarity: int, quick: bool) -> tuple[Table, tuple[str, int, int]]:
    answerer: Answerer = archive.answerer
    about, rows, wins, quicker = archive.info(), [], 0, []
    for title, steps in QUESTIONS.items():
        question = f"PATTERN {steps} SELECT skip-till-next"
        walked, plain = (archive.find(question, algorithm=name) for name in ("tree", "slices"))
        assert walked.equals(plain)
        visited = int(walked.schema.metadata[b"visited"])
        times = {
            name: _median(f"{title}, {name}", partial(archive.find, question, algorithm=name), 3 if quick else 30)
            for name in ("tree", "slices", "auto")
        }
        asked = answerer.search(answerer.text(question, None), QuestionOptions(algorithm="slices")).question
        chosen = "tree" if answerer.walks(asked) else "slices"
        better = "tree" if times["tree"].cpu < times["slices"].cpu else "slices"
        if better == "tree":
            quicker.append(f"{title} ({times['slices'].cpu / times['tree'].cpu:.1f} times)")
        wins += times[chosen].cpu <= NEARLY * times[better].cpu
        rows.append(
            Row(
                f"{title}: {visited:,} looks, {about['leaves']:,} leaves; auto takes {chosen}, {better} was quicker",
                times["tree"], peers=[Peer("bit slices", times["slices"]), Peer("auto", times["auto"])],
            )
        )  # fmt: skip
    density = f"{about['leaves']:,} leaves, {about['density']:.2f} of bits set, a name {rarity:,} times in a million"
    summary = f"{density}: {', '.join(quicker) or 'never'}", wins, len(rows)
    return Table(
        f"{number:,} events of {names:,} names, leaves of 20, a name {rarity} times in a million: the tree walked",
        rows,
        [f"Height {about['height']}, {about['bits']} bits a leaf, density {about['density']:.2f}. auto took the "
         f"quicker way, or one that took no more than a quarter longer, in {wins} of {len(rows)}; below "
         f"{LEAVES_WORTH_A_WALK:,} leaves it takes slices without looking. Medians, of processor time."],
    ), summary  # fmt: skip


def _median(what: str, work: Callable[[], object], runs: int) -> Timing:
    """Return the median of so many runs, or of those of half a second."""
    work()
    step(what)
    found: list[tuple[float, float]] = []
    while len(found) < runs and sum(cpu for cpu, _ in found) < 0.5:
        wall, cpu = perf_counter(), process_time()
        work()
        found.append((process_time() - cpu, perf_counter() - wall))
    cpu, wall = sorted(found)[len(found) // 2]
    return Timing(wall, cpu, len(found))
