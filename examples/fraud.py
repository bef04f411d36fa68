"""Money laundering, end to end: queries, their numbers as features, a model, and how often it is right.

    .venv/bin/python examples/fraud.py [laundering_transactions.csv]

Transfers are generated, with planted attempts (`trellis generate laundering`). Queries say what is odd about a chain of
transfers; `TrendFeatures` tells for each transfer how many such chains go through it, over the transfers so far. The
model learns from the first 60 % in time and is judged on the rest. With a file of the published AML data, it tells the
families of attempts apart instead. It needs scikit-learn: the extra `features`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score, precision_score, recall_score

from trellis.features import TrendFeatures
from trellis.io.generate import generate_table

SPLIT = 0.6
QUERIES = {
    # Money that goes on, a few percent less each time.
    "passed_on": """
        PATTERN Transfer+ t[]
        WHERE   t[i].source = t[i-1].destination AND t[i].amount <= t[i-1].amount AND t[i].amount >= 0.9 * t[i-1].amount
        REPORT  any
        WITHIN  2 days SLIDE 1 day
    """,
    # Payments of one account that are like each other.
    "spread": """
        PATTERN Transfer+ t[]
        WHERE   [source] AND t[i].amount <= 1.05 * t[i-1].amount AND t[i].amount >= 0.95 * t[i-1].amount
        REPORT  any
        WITHIN  2 days SLIDE 1 day
    """,
    # Payments to one account that are like each other.
    "collected": """
        PATTERN Transfer+ t[]
        WHERE   [destination] AND t[i].amount <= 1.05 * t[i-1].amount AND t[i].amount >= 0.95 * t[i-1].amount
        REPORT  any
        WITHIN  2 days SLIDE 1 day
    """,
}


@dataclass(frozen=True)
class Score:
    """How often a model is right on transfers that it has not seen."""

    precision: float
    recall: float
    average_precision: float


def plain_columns(frame: pd.DataFrame) -> np.ndarray:
    """Return what a transfer tells by itself: amount and hour."""
    return np.column_stack([np.log1p(frame["amount"]), frame["ts"].dt.hour])


def fitted_model(inputs: np.ndarray, labels: Any) -> HistGradientBoostingClassifier:
    """Return the model that the first part in time teaches."""
    known = int(SPLIT * len(labels))
    return HistGradientBoostingClassifier(random_state=0).fit(inputs[:known], np.asarray(labels)[:known])


def judged(model: HistGradientBoostingClassifier, inputs: np.ndarray, labels: Any) -> Score:
    """Return how the model does on the rest."""
    known = int(SPLIT * len(labels))
    later = np.asarray(labels)[known:]
    said = model.predict(inputs[known:])
    return Score(
        precision_score(later, said, zero_division=0),
        recall_score(later, said, zero_division=0),
        average_precision_score(later, model.predict_proba(inputs[known:])[:, 1]),
    )


def arriving_features(frame: pd.DataFrame, batch: int) -> np.ndarray:
    """Return the features of transfers that come some at a time, those of one time together."""
    columns = frame[["ts", "event_id", "source", "destination", "amount"]]
    times = columns["ts"].to_numpy()
    cuts = np.searchsorted(times, times[np.arange(batch, len(columns), batch)])
    arriving = TrendFeatures(QUERIES, time="ts", event_id="event_id").fit(columns).arrivals()
    bounds = zip([0, *cuts], [*cuts, len(columns)], strict=True)
    return np.concatenate([arriving.take(columns.iloc[a:b]) for a, b in bounds if a < b])


def families(path: str) -> None:
    """Tell the families of the published AML data apart (laundering transfers only), with and without features."""
    frame = pd.read_csv(path).rename(
        columns={"from_account": "source", "to_account": "destination", "amount_paid": "amount"}
    )
    frame["ts"] = pd.to_datetime(frame["timestamp"])
    frame = frame.sort_values("ts", kind="stable").reset_index(drop=True)
    frame["event_id"] = np.arange(len(frame))
    made = arriving_features(frame, 200)
    known = int(SPLIT * len(frame))
    for name, inputs in (
        ("the columns alone", plain_columns(frame)),
        ("with features of trends", np.column_stack([plain_columns(frame), made])),
    ):
        model = HistGradientBoostingClassifier(random_state=0).fit(inputs[:known], frame["attempt_family"][:known])
        said, later = model.predict(inputs[known:]), frame["attempt_family"][known:]
        of_each = {"average": "macro", "zero_division": 0}
        print(f"{name:25} precision {precision_score(later, said, **of_each):.2f}  "
              f"recall {recall_score(later, said, **of_each):.2f}, mean of {later.nunique()} families")  # fmt: skip


def main(events: int = 20_000) -> None:
    frame = generate_table("laundering", events, 1).to_pandas()
    made = arriving_features(frame, 1000)
    for name, inputs in (
        ("the columns alone", plain_columns(frame)),
        ("with features of trends", np.column_stack([plain_columns(frame), made])),
    ):
        score = judged(fitted_model(inputs, frame["laundering"]), inputs, frame["laundering"])
        print(f"{name:25} precision {score.precision:.2f}  recall {score.recall:.2f}  "
              f"average precision {score.average_precision:.2f}")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        families(sys.argv[1])
    else:
        main()
