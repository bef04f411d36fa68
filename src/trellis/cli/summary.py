"""The summary of a command: the same facts for people and, as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trellis.cli.console import out, shown_path
from trellis.cli.show import all_digits, number, one_line, print_facts
from trellis.language.printer import to_query_text


@dataclass(frozen=True)
class Summary:
    """The summary of a command.

    Attributes
    ----------
    results
        The number of results.
    total
        The number before LIMIT and OFFSET.
    uncounted
        Whether that is not known, as counting would take long.
    """

    query: str
    statistics: dict[str, int]
    results: int
    seconds: float
    output: str | None = None
    total: int | None = None
    uncounted: bool = False

    def print_json(self, **more: str) -> None:
        """Print the summary as one JSON object, with further entries by name, each already JSON text."""
        keys = ("events", "windows", "partitions")
        dropped = self.statistics.get("dropped", 0)
        data = {
            "query": self.query,
            **{key: self.statistics[key] for key in keys},
            "results": str(self.results),
            "seconds": self.seconds,
            "output": self.output,
            **({"dropped": dropped} if dropped else {}),
        }
        texts = {**{name: json.dumps(value, ensure_ascii=False) for name, value in data.items()}, **more}
        out().print("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}")

    def print_facts(self) -> None:
        """Print the summary as lines."""
        dropped = self.statistics.get("dropped", 0)
        facts = {
            "events": number(self.statistics["events"]) + (f" ({number(dropped)} dropped as bad)" if dropped else ""),
            "windows": number(self.statistics["windows"]),
            "partitions": number(self.statistics["partitions"]),
            "results": all_digits(self.results),
            "seconds": f"{self.seconds:,.2f}",
        }
        if self.uncounted:
            facts["results"] += ", as LIMIT asks; how many there are in all was not counted, since that takes long"
        elif self.total is not None and self.total != self.results:
            facts["results"] += f" of {all_digits(self.total)}"
        if self.output is not None:
            facts["output"] = shown_path(self.output)
        print_facts(out(), facts)


def rows_as_json(rows: Any) -> str:
    """Return rows as a JSON array, each as a line of `--format json`."""
    from trellis.io.json_text import json_lines

    return f"[{', '.join(line for batch in rows.to_batches() for line in json_lines(batch).to_pylist())}]"


def query_text(trends: Any) -> str:
    """Return the query of trends on one line."""
    return one_line(to_query_text(trends.plan.bound.syntax))
