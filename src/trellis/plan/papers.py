"""The named algorithms of the papers: where each lives, what it permits, and a sentence on it."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.language.syntax import Report

EVERY_REPORT = frozenset(Report)


@dataclass(frozen=True)
class PaperAlgorithm:
    """A named algorithm.

    Attributes
    ----------
    module
        The module under `trellis.papers` that has `extract(given)`, and where it has more to say,
        `explain(given)`, which gives facts for `trellis explain`.
    about
        A sentence that says how it works.
    reports
        The REPORT modes that it permits.
    uses
        Which of the settings `anchors` and `optimizer` mean anything to it; the memory limit does to all.
    """

    module: str
    about: str
    reports: frozenset[Report] = EVERY_REPORT
    uses: frozenset[str] = frozenset()


ABI = {
    "dfs": PaperAlgorithm(
        "abi.dfs", "walks the graph depth first from every start vertex; it stores one path at a time"
    ),
    "bfs": PaperAlgorithm(
        "abi.bfs", "extends all partial trends by one event per round, breadth first, and stores them all"
    ),
    "anchor": PaperAlgorithm(
        "abi.anchor",
        "finds the sub-sequences between anchor vertices breadth first, then joins them depth first, on threads",
        uses=frozenset({"anchors"}),
    ),
}

COMPLETE = frozenset({Report.UNEXTENDABLE, Report.MAXIMAL})

CET: dict[str, PaperAlgorithm] = {
    "baseline": PaperAlgorithm(
        "cet.baseline",
        "keeps all trends so far and holds each new event against every one of them: the CET paper's Algorithm 1",
        reports=frozenset({Report.MAXIMAL}),
    ),
    "flattened": PaperAlgorithm(
        "cet.flattened",
        "finds all sequences of each length from 1 to the longest, one length after another, and leaves out the others",
        reports=COMPLETE,
    ),
    "sase": PaperAlgorithm(
        "cet.sase",
        "keeps events with pointers to those before them, and walks these depth first when a window ends",
        reports=COMPLETE,
    ),
    "m-cet": PaperAlgorithm(
        "cet.m_cet", "walks the graph depth first; it stores the current trend only", reports=COMPLETE
    ),
    "t-cet": PaperAlgorithm(
        "cet.t_cet",
        "extends the partial trends of every event by its successors, breadth first, and stores them all",
        reports=COMPLETE,
    ),
    "h-cet": PaperAlgorithm(
        "cet.h_cet",
        "stores the partial trends of graphlets, which windows share, and joins them depth first; the optimizer "
        "chooses the graphlets by the memory limit",
        reports=COMPLETE,
        uses=frozenset({"optimizer"}),
    ),
    "h-cet-unshared": PaperAlgorithm(
        "cet.h_cet_unshared",
        "is h-cet with each window for itself: graphlets are found anew in every window, so that what sharing saves "
        "can be measured",
        reports=COMPLETE,
        uses=frozenset({"optimizer"}),
    ),
}

NAMED = {**ABI, **CET}
