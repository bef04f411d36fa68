"""An explanation of a query: text where text is printed, a drawn plan in a notebook, data for programs."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from trellis.api.algorithms import algorithm_facts
from trellis.api.notebook import automaton_svg
from trellis.digits import digits_of
from trellis.errors import DataError, QueryError, TrellisError, UsageError
from trellis.plan.explain import explain_data, explain_text
from trellis.plan.plan import Plan
from trellis.providers import provided
from trellis.results.display import html_page

if TYPE_CHECKING:
    from trellis.results.results import Results


MOST_SECONDS = 0.25  # that an explanation counts for


class Explanation(str):
    """An explanation as text, which a prompt prints as it is and a notebook with the automaton drawn above it.

    Attributes
    ----------
    data
        The same as dictionaries, lists, strings and numbers.
    """

    data: dict[str, Any]

    def __new__(cls, data: dict[str, Any]) -> Explanation:
        """Make the text of the data of `explain_data`."""
        made = super().__new__(cls, explain_text(data))
        made.data = data
        return made

    def __getnewargs__(self) -> tuple[dict[str, Any]]:  # type: ignore[override]
        return (self.data,)

    def __repr__(self) -> str:
        return str(self)

    def plot(self) -> Any:
        """Return the automaton, the operator and why it was chosen as a picture, a figure of plotly's."""
        return provided("pictures").plan(self.data)

    def _repr_html_(self) -> str:
        return html_page(automaton_svg(self.data["pattern"]["automaton"]), f"<pre>{escape(str(self))}</pre>")


def explanation_of_plan(plan: Plan) -> Explanation:
    """Return the explanation of a plan, before there are events."""
    return Explanation(explain_data(plan) | algorithm_facts(plan))


def explanation_of_results(results: Results) -> Explanation:
    """Return the explanation of a plan with what is known of the events: how many there are, and the exact count."""
    return Explanation(facts_of_results(results))


def facts_of_results(results: Results) -> dict[str, Any]:
    """Return the data of the explanation; results are counted if that is sure to be quick, and may be refused."""
    planned = explain_data(results.plan)
    known: dict[str, Any] = {"read": results.statistics["events"], **results.statistics}
    known.pop("events")
    if results.is_quick(MOST_SECONDS):
        try:
            known["trends"] = digits_of(results.count())
        except (QueryError, UsageError, DataError):
            raise
        except TrellisError as error:
            expected = results.expected() | {"results": f"refused: {error.what}"}
        else:
            operator = planned["operator"] | results.describe()
            return planned | algorithm_facts(results.plan, results) | {"operator": operator, "events": known}
    else:
        expected = results.expected() | {"results": "not counted here, as that takes long"}
    return planned | algorithm_facts(results.plan) | {"operator": planned["operator"] | expected, "events": known}
