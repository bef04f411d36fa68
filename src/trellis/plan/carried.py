"""What a match of several variables has to remember besides its last event, and what that costs."""

from __future__ import annotations

from trellis.plan.plan import Plan


def pattern_texts(plan: Plan) -> dict[str, str]:
    """Say what tells the matches so far apart, and what counting costs."""
    return {
        "vertices": "an event bound to a variable, with what the conditions still ask of the match before it",
        "counting": "time in the order of the edges between these",
    }
