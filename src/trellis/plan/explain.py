"""A plan as plain data, and as text; both read the same nodes."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

from trellis.language.bound import BoundQuery, Condition, WindowKind
from trellis.language.durations import to_text
from trellis.language.printer import pattern_text, to_query_text, value_text
from trellis.language.syntax import Report, Select
from trellis.plan.choice import plan_by_events
from trellis.plan.join import best_texts
from trellis.plan.mirror import mirror_texts
from trellis.plan.pivots import pivot_texts
from trellis.plan.plan import Plan
from trellis.plan.remainders import Leaving, Transition
from trellis.plan.spec import JOIN_TREE, JOINS, SEQUENCES, TREE_PLAN
from trellis.plan.summable import can_be_summed
from trellis.plan.views import named

OF_MATCHES = (JOINS, JOIN_TREE, SEQUENCES, TREE_PLAN)
GREEDY_WORDS = {
    Leaving.LEAVES: "greedy",
    Leaving.WAITS: "waits",
    Leaving.WAITS_IN_TIE: "waits_in_tie",
    Leaving.TOGETHER: "together",
}
MEANING = {
    Select.ANY: "an event may be skipped even where it would fit",
    Select.NEXT: "goes on with the first later event that fits",
    Select.CONTIGUOUS: "goes on only with the very next event of its window and partition",
    Report.UNEXTENDABLE: "nothing can be put before the first or after the last event",
    Report.MAXIMAL: "contained in no other trend",
    Report.ANY: "every trend, parts of longer ones too",
}


def explain_data(plan: Plan) -> dict[str, Any]:
    """Return the plan as dictionaries, lists, strings and numbers."""
    bound = plan.bound
    return {
        "query": to_query_text(bound.syntax),
        "parameters": dict(bound.parameters),
        "pattern": {
            "text": pattern_text(bound.pattern),
            "variables": [
                {"name": v.name, "type": v.type, "kleene": v.kleene, "absent": v.absent}
                for v in bound.variables
                if v.until is None
            ],
            "automaton": _automaton_data(plan),
        },
        "conditions": {
            "partition": [name for name, _ in bound.partition],
            "constant": _condition_data(plan.constant),
            "adjacent": _condition_data(plan.adjacent),
            "across": _condition_data(tuple(c for c in plan.other if c.kind == "across")),
            "rest": _condition_data(tuple(c for c in plan.other if c.kind == "rest")),
        },
        "select": {"policy": str(bound.select), "meaning": MEANING[bound.select]},
        "report": {"mode": str(bound.report), "meaning": MEANING[bound.report]},
        "having": [f"LENGTH {b.op} {b.value}" for b in bound.having] + [c.text for c in bound.filters],
        "windows": _window_data(bound),
        "stream": _stream_data(plan),
        "identity": _identity_data(bound),
        "reads": list(plan.columns),
        "output": [{"name": c.name, "type": c.type} for c in bound.columns],
        "order": [_order_text(bound, i) for i in range(len(bound.order_by))],
        "limit": {"rows": bound.limit, "per_window": bound.per_window, "offset": bound.offset} | _per_items(bound),
        "operator": _operator_data(plan),
        "index": _index_data(plan),
    }


def _index_data(plan: Plan) -> dict[str, str]:
    """Say how what may follow is found, what is remembered of matches, and what counting and the best of them cost."""
    best = best_texts(plan.bound) if plan.operator.name in OF_MATCHES else {}
    return dict(plan.operator.how) | (pivot_texts(plan) or mirror_texts(plan)) | best


def _per_items(bound: BoundQuery) -> dict[str, Any]:
    """Return the items of LIMIT PER, where there are any."""
    items = [value_text(item) for item in bound.syntax.limit_per]
    return {"per": items} if items else {}


def _operator_data(plan: Plan) -> dict[str, str]:
    """Say which operator runs, why, and what takes its place where the events forbid or allow it."""
    spec, by_events = plan.operator, plan_by_events(plan)
    said = {"name": f"{spec.name} by {spec.method}", "because": spec.reason}
    standing_in = [] if spec.few is None else [f"{spec.few.name} by {spec.few.method}, where {spec.few.reason}"]
    standing_in += [f"{after.name} by {after.method}, where {before.unless}" for before, after in pairwise(spec.ways())]
    if by_events is not None:
        other, attributes = by_events
        names = ", ".join(f"{var}.{name}" for var, name in sorted(attributes))
        standing_in.append(f"{other.operator.name} by {other.operator.method}, where no {names} is NULL")
    return said | ({"else": "; else ".join(standing_in)} if standing_in else {})


def _automaton_data(plan: Plan) -> dict[str, Any]:
    automaton = plan.automaton
    return {
        "states": automaton.states,
        "complete": automaton.complete,
        "transitions": [
            {"from": t.source, "variable": t.variable, "to": t.target, "absent": list(t.absent)} | _words(t, plan)
            for t in automaton.transitions
            if all(one.kind is not Leaving.NEVER for one in t.left)
        ],
        "accepting": [{"state": a.state, "absent": list(a.absent)} for a in automaton.accepting],
    }


def _words(transition: Transition, plan: Plan) -> dict[str, str]:
    """Return the words at a step: its policy, the greedy variables that it leaves, and UNTIL."""
    words = {}
    policy = plan.automaton.policies[transition.step]
    if policy is not None:
        words["policy"] = str(policy)
    for kind, word in GREEDY_WORDS.items():
        names = dict.fromkeys(one.letter.variable for one in transition.left if one.kind is kind)
        words |= {word: ", ".join(names)} if names else {}
    untils = dict.fromkeys(named(name) for guard in transition.guards if guard.until for name in guard.absent)
    if untils:
        words["until"] = ", ".join(untils)
    if transition.begun:
        words["iteration"] = ", ".join(plan.bound.groups[number].label or "its group" for number in transition.begun)
    return words


def _condition_data(conditions: tuple[Condition, ...]) -> list[dict[str, Any]]:
    return [{"condition": c.text, "variables": [name.partition("\n")[0] for name in c.variables]} for c in conditions]


def _window_data(bound: BoundQuery) -> dict[str, Any]:
    window = bound.window

    def shown(value: int | float | Decimal | None) -> str | None:
        if value is None:
            return None
        return to_text(int(value)) if window.has_unit else str(value)

    return {"kind": str(window.kind), "size": shown(window.size), "slide": shown(window.slide)}


def _stream_data(plan: Plan) -> list[str]:
    """Describe the state that a stream holds for the query; nothing if it cannot be a standing query."""
    bound = plan.bound
    if bound.window.kind is WindowKind.WHOLE:
        return []
    if can_be_summed(plan):
        return [
            "holds each event, once, until the watermark has passed it; then sums, one for each of its values"
            + " and pane in which trends begin that reach it" * (bound.window.slide != bound.window.size)
        ]
    if bound.window.kind is WindowKind.SLIDING:
        return ["holds each event, once, until all of its windows are decided"]
    if bound.aggregates or bound.order_by or bound.limit is not None or bound.offset:
        return []
    of_which = "every partition that has had a result" if bound.partition else "all results"
    return [
        f"holds each event, once, until the watermark has passed it by twice {_window_data(bound)['size']}",
        f"holds a counter for {of_which}, for good: ranks go on from it",
    ]


def _identity_data(bound: BoundQuery) -> str:
    if bound.schema is None:
        return "unknown until events are given"
    if bound.schema.event_id is not None:
        return f"column {bound.schema.event_id}"
    return "position in (time, table, other columns): costs a global sort; name an id column to save it"


def _order_text(bound: BoundQuery, i: int) -> str:
    key = bound.syntax.order_by[i]
    return value_text(key.expression) + (" DESC" if key.descending else "")


# --- Text -------------------------------------------------------------------------------------------------------


def explain_text(data: dict[str, Any]) -> str:
    """Return the data of `explain_data` as text."""
    sections = [
        ("Query", data["query"].splitlines()),
        ("Parameters", [f"{name} = {value}" for name, value in data["parameters"].items()]),
        ("Pattern", _pattern_lines(data["pattern"])),
        ("Conditions", _condition_lines(data["conditions"])),
        ("Select", [f"{data['select']['policy']}: {data['select']['meaning']}"]),
        ("Report", [f"{data['report']['mode']}: {data['report']['meaning']}"]),
        ("Having", data["having"]),
        ("Windows", [_window_line(data["windows"])]),
        ("Stream", data["stream"]),
        ("Identity", [data["identity"]]),
        ("Output", _output_lines(data)),
        ("Index", list(data["index"].values())),
    ]
    sections += [(title, _extra_lines(data[key])) for title, key in EXTRA if key in data]
    return "\n".join(_section(title, lines) for title, lines in sections if lines)


EXTRA = (("Algorithm", "algorithm"), ("Operator", "operator"), ("Events", "events"), ("Listing", "listing"))


def _extra_lines(values: dict[str, Any]) -> list[str]:
    return [line for key, value in values.items() for line in f"{key.replace('_', ' ')}: {value}".splitlines()]


def _section(title: str, lines: list[str]) -> str:
    return "\n".join(f"{title if i == 0 else '':<12}{line}".rstrip() for i, line in enumerate(lines))


def _pattern_lines(pattern: dict[str, Any]) -> list[str]:
    automaton = pattern["automaton"]
    lines = [pattern["text"]]
    if not automaton["complete"]:
        return [*lines, f"more than {automaton['states']} states"]
    endings = {a["state"]: a["absent"] for a in automaton["accepting"]}
    for state in range(automaton["states"]):
        arrows = [_arrow(t, state) for t in automaton["transitions"] if t["from"] == state]
        end = ""
        if state in endings:
            end = "  end" + (f" if no {' and no '.join(endings[state])} follows" if endings[state] else "")
        lines.append(f"({state}){end}" if not arrows else f"({state}) {arrows[0]}{end}")
        lines += [f"{' ' * len(f'({state})')} {arrow}" for arrow in arrows[1:]]
    return lines


def _arrow(transition: dict[str, Any], state: int) -> str:
    where = "before" if state == 0 else "between"
    guard = f" [no {' and no '.join(transition['absent'])} {where}]" if transition["absent"] else ""
    guard += f" [{transition['policy']}]" if "policy" in transition else ""
    guard += f" [if {transition['greedy']} can take no more]" if "greedy" in transition else ""
    guard += f" [if {transition['waits']} could take none before]" if "waits" in transition else ""
    guard += (
        f" [if {transition['waits_in_tie']} could take none at earlier times]" if "waits_in_tie" in transition else ""
    )
    guard += " [at the same time]" if "together" in transition else ""
    if "until" in transition:
        guard += " [until]" if transition["until"] == transition["variable"] else f" [{transition['until']} until]"
    guard += f" [begins an iteration of {transition['iteration']}]" if "iteration" in transition else ""
    target = "again" if transition["to"] == state else f"({transition['to']})"
    return f"--{transition['variable']}{guard}--> {target}"


def _condition_lines(conditions: dict[str, Any]) -> list[str]:
    lines = [f"partition   [{', '.join(conditions['partition'])}]"] if conditions["partition"] else []
    for kind in ("constant", "adjacent", "across", "rest"):
        lines += [f"{kind:<12}{c['condition']}" for c in conditions[kind]]
    return lines or ["none"]


def _window_line(window: dict[str, Any]) -> str:
    if window["kind"] == WindowKind.WHOLE:
        return "the whole input is one window"
    if window["kind"] == WindowKind.SPAN:
        return f"a span: the last event at most {window['size']} after the first"
    if window["size"] == window["slide"]:
        return f"of {window['size']}, one after another"
    return f"of {window['size']}, one every {window['slide']}"


def _output_lines(data: dict[str, Any]) -> list[str]:
    width = max(len(c["name"]) for c in data["output"]) + 2
    lines = [f"{c['name']:<{width}}{'' if 'unknown' in c['type'] else c['type']}".rstrip() for c in data["output"]]
    if data["order"]:
        lines.append(f"ordered by {', '.join(data['order'])}")
    limit = data["limit"]
    if limit["rows"] is not None or limit["offset"]:
        rows = "" if limit["rows"] is None else f"at most {limit['rows']} rows"
        items = [*limit.get("per", []), *(["window and partition"] if limit["per_window"] else [])]
        each = f" for each {' and '.join(items)}" if items else ""
        after = f" after the first {limit['offset']}" if limit["offset"] else ""
        lines.append((rows + after + each).strip())
    return lines
