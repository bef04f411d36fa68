"""Numbers of a running stream in Prometheus's text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE = "counter", "gauge"


@dataclass(frozen=True)
class Metric:
    """A number that is watched: its name, what it is, its kind, and its values by labels."""

    name: str
    help: str
    kind: str
    values: Mapping[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def exposition(metrics: Iterable[Metric]) -> str:
    """Return metrics as Prometheus reads them; those without a value are left out."""
    lines = []
    for one in metrics:
        if not one.values:
            continue
        lines += [f"# HELP {one.name} {_escaped(one.help)}", f"# TYPE {one.name} {one.kind}"]
        for labels, value in one.values.items():
            shown = ",".join(f'{name}="{_escaped(text, quote=True)}"' for name, text in labels)
            lines.append(f"{one.name}{{{shown}}} {_number(value)}" if shown else f"{one.name} {_number(value)}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
