"""The options that commands share, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from trellis.cli.standard_input import NAME, SHOWN, events_path
from trellis.errors import UsageError
from trellis.language.syntax import Report
from trellis.methods import Methods
from trellis.plan.papers import NAMED
from trellis.plan.spec import AUTO


class EngineChoice(StrEnum):
    """Where a query runs."""

    LOCAL = "local"
    SPARK = "spark"


class BadRows(StrEnum):
    """The treatment of rows that have no readable time or id."""

    ERROR = "error"
    DROP = "drop"


class OutputFormat(StrEnum):
    """The formats of `--out`."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"


_EVENTS, _RUN, _OUTPUT = "Events", "How it runs", "Output"


def flag(name: str, help: str, metavar: str | None = None, panel: str | None = None, **more: Any) -> Any:
    """Return an option as Typer takes it from a type: of a parameter, or of a field that several groups have."""
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel=panel, **more)


QueryText = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file that holds the query, its text, or - for standard input.")
]
EventPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EVENTS", help="Files, directories or globs of Parquet, CSV, JSON lines or ORC; - for standard input."
    ),
]
_EVENT_ID = "The column of event ids; without it events are numbered, which costs a sort of them all."
_TIME_FORMAT = "The format of times that are text, such as dd.MM.yyyy HH:mm; without it ISO 8601 and yyyy/MM/dd HH:mm."
_FORMATS = "parquet, csv, tsv, json or orc; without it the extensions of the files tell."
_ENGINE = "Run on Spark, or in this process; without it, in this process if the files are less than 64 MB together."
_MASTER = "The Spark master: local[N], spark://HOST:PORT, sc://HOST; without it local[*]."
_RAW_CSV = "In CSV, write texts as they are, even those that a spreadsheet takes for formulas."
_PROGRESS = "Show on a terminal what is being done."
EventId = Annotated[str | None, flag("--event-id", _EVENT_ID, "COLUMN", _EVENTS)]
TimeFormat = Annotated[str | None, flag("--time-format", _TIME_FORMAT, "FORMAT", _EVENTS)]
InputFormat = Annotated[str | None, flag("--input-format", _FORMATS, "FORMAT", _EVENTS)]
Params = Annotated[
    list[str] | None, flag("--param", "A value for a parameter of the query; may be repeated.", "NAME=VALUE")
]
EngineName = Annotated[EngineChoice | None, flag("--engine", _ENGINE, panel=_RUN)]
Master = Annotated[str | None, flag("--master", _MASTER, "URL", _RUN)]
Format = Annotated[OutputFormat, flag("--format", "The format of the files.", panel=_OUTPUT)]
RawCsv = Annotated[bool, flag("--raw-csv", _RAW_CSV, panel=_OUTPUT)]
Overwrite = Annotated[bool, flag("--overwrite", "Replace what is there already.", panel=_OUTPUT)]
ShowProgress = Annotated[bool, flag("--progress/--no-progress", _PROGRESS, panel=_OUTPUT)]
Json = Annotated[bool, flag("--json", "Print one JSON object and nothing else.", panel=_OUTPUT)]


# --- Groups of options, which commands take as one --------------------------------------------------------------

_OPTION = "option"


def option(default: Any, help: str, metavar: str | None = None, *flags: str, **more: Any) -> Any:
    """Return a field of a group that is an option: `--` and the name of the field, unless flags are given.

    Parameters
    ----------
    default
        Its value where it is not given; `...` if it must be.
    help, metavar, flags, more
        As `typer.Option` takes them; the help shows it in the `panel` of its group, unless one is given.
    """
    given = {"help": help, "metavar": metavar, **more}
    return field(default=MISSING if default is ... else default, metadata={_OPTION: (flags, given)})


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are groups of options.

    A group is a dataclass whose fields are made by `option`, or annotated as Typer wants its parameters. It is declared
    here, or beside the one command that has it, and no command repeats what is in it.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for one in signature(command).parameters.values():
        kind = hints[one.name]
        if is_dataclass(kind):
            groups[one.name] = kind
            own = get_type_hints(kind, include_extras=True)
            parameters += [_parameter(f.name, _as_typer_wants(kind, f, own[f.name]), f.default) for f in fields(kind)]
        else:
            parameters.append(_parameter(one.name, kind, one.default))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**made, **given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _as_typer_wants(group: Any, one: Field[Any], kind: Any) -> Any:
    if _OPTION not in one.metadata:
        return kind
    flags, given = one.metadata[_OPTION]
    more = {"rich_help_panel": getattr(group, "panel", None), **given}
    return Annotated[kind, typer.Option(*(flags or ["--" + one.name.replace("_", "-")]), **more)]


def _parameter(name: str, kind: Any, default: Any) -> Parameter:
    given = Parameter.empty if default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=kind)


@dataclass(frozen=True)
class ColumnOptions:
    """The options about the columns of events, and the files they are in."""

    panel: ClassVar[str] = _EVENTS
    time: str | None = option(
        None,
        "The column of times; without it the only one called time, ts, timestamp or event_time. Columns behind "
        "it, as in ts,seq, order events of the same time.",
        "COLUMN",
    )
    type: str | None = option(None, "The column of event types.", "COLUMN")
    event_id: EventId = None
    time_format: TimeFormat = None
    input_format: InputFormat = None
    on_bad_rows: BadRows = option(
        BadRows.ERROR, "Whether rows without a readable time or id are an error or are left out."
    )

    @property
    def time_columns(self) -> tuple[str, ...] | None:
        """The column of times, and those that break ties."""
        return None if self.time is None else tuple(name.strip() for name in self.time.split(","))

    @property
    def time_column(self) -> str | None:
        """The column of times."""
        return None if self.time_columns is None else self.time_columns[0]


@dataclass(frozen=True)
class EventOptions(ColumnOptions):
    """The options about the events: `files` of one table, or `typed_files` of one for each type."""

    files: EventPaths = None
    typed_files: list[str] | None = option(
        None, "A table of the events of one type; once for each type.", "TYPE=PATH", "--events"
    )
    table: str | None = option(
        None, "A table or view of Spark's, such as catalog.database.table, or SQL that gives the events.", "TABLE"
    )
    delimiter: str | None = option(
        None, "What stands between the fields of CSV; without it the header tells: a comma, `;`, a tab or `|`.", "SIGN"
    )

    @property
    def paths(self) -> tuple[str, ...]:
        """Where the events are, if they are one table."""
        return tuple(events_path(path, self.input_format) for path in self.files or ())

    @property
    def tables(self) -> dict[str, list[str]]:
        """Where they are by type, if they are several; a type may have several paths."""
        found: dict[str, list[str]] = {}
        for name, path in _split("--events", self.typed_files):
            found.setdefault(name, []).append(events_path(path, self.input_format))
        return found

    @property
    def given(self) -> bool:
        """Whether there are any events."""
        return bool(self.files or self.typed_files or self.table)

    @property
    def named(self) -> list[str]:
        """The paths, of all types."""
        return [*self.paths, *(path for paths in self.tables.values() for path in paths)]

    @property
    def described(self) -> str:
        """The paths, for a line of text."""
        named = [f"{name}={_described(path)}" for name, path in _split("--events", self.typed_files)]
        return ", ".join([*map(_described, self.files or ()), *named, *([self.table] if self.table else [])])


@dataclass(frozen=True)
class QueryOptions:
    """The options about what a query means."""

    param: Params = None
    report_mode: Report | None = option(None, "Which trends are results; overrides REPORT of the query.")

    @property
    def params(self) -> dict[str, str]:
        """The values of the query's parameters."""
        return pairs("--param", self.param)


@dataclass(frozen=True)
class MethodOptions:
    """The options about how results are found."""

    panel: ClassVar[str] = _RUN
    algorithm: str = option(
        AUTO,
        "How results are found. Trends: auto, ranks, join, which extends paths by joins of Spark, round by "
        f"round, or one of the papers' {', '.join(NAMED)}. Fixed sequences: auto, walk, tree, or condensed, a tree "
        "plan over groups of equal values.",
        "NAME",
    )
    construction: str = option(
        AUTO,
        "How the graph is built: auto; of a named algorithm also dynamic, event by event, dynamic-range, with "
        "ranges of edges, or parallel, on threads; of join also spark, by Spark's own operations.",
        "NAME",
    )
    anchors: int | None = option(
        None, "How many attribute vertices the algorithm anchor takes as anchors; without it, it chooses.", "N"
    )
    memory_limit: str | None = option(
        None,
        "What matches so far may take before a query is refused, such as 512MB or 2G; by default 1 GB. Of a named "
        "algorithm, what the partial trends that it stores may take.",
        "SIZE",
    )
    optimizer: str = option(
        AUTO, "How the algorithm h-cet cuts the graph: exhaustive, bnb-paper, bnb, greedy, or auto.", "NAME"
    )

    @property
    def methods(self) -> Methods:
        """The algorithm, with its settings."""
        return Methods(self.algorithm, self.construction, self.anchors, self.memory_limit, self.optimizer)


@dataclass(frozen=True)
class SparkOptions:
    """The options about Spark, for what runs nowhere else."""

    panel: ClassVar[str] = _RUN
    master: Master = None
    conf: list[str] | None = option(None, "A setting of Spark; may be repeated.", "KEY=VALUE")

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark."""
        return pairs("--conf", self.conf)


@dataclass(frozen=True)
class EngineOptions(SparkOptions):
    """The options about where to run; without `engine` the events decide (`trellis.cli.engine.chosen_engine`)."""

    engine: EngineName = None


@dataclass(frozen=True)
class ShowOptions:
    """The options about what is printed."""

    panel: ClassVar[str] = _OUTPUT
    progress: ShowProgress = True
    quiet: bool = option(False, "Print no tables and no summary.")
    json: Json = False

    @property
    def shows_progress(self) -> bool:
        """Whether progress is wanted, if stderr is a terminal."""
        return self.progress and not self.quiet and not self.json


@dataclass(frozen=True)
class OutputOptions(ShowOptions):
    """The options about the output."""

    wide: bool = option(False, "Show all columns, also where the terminal is too narrow.")
    out: str | None = option(
        None,
        "Write the rows into this directory, or to s3://, gs://, hdfs:// or abfs://, wholly or not at all.",
        "PATH",
    )
    format: Format = OutputFormat.PARQUET
    overwrite: Overwrite = False
    raw_csv: RawCsv = False


def _described(path: str) -> str:
    return SHOWN if path == NAME else path


def pairs(option: str, values: Iterable[str] | None) -> dict[str, str]:
    """Return NAME=VALUE options as a dictionary.

    Raises
    ------
    UsageError
        If one has no `=` or no name, or a name comes twice.
    """
    found: dict[str, str] = {}
    for name, value in _split(option, values):
        if name in found:
            raise UsageError(f"{option} gives `{name}` twice", "Give one value.")
        found[name] = value
    return found


def _split(option: str, values: Iterable[str] | None) -> list[tuple[str, str]]:
    split = [(text, *text.partition("=")) for text in values or ()]
    for text, name, equals, value in split:
        if not name or not equals or (option == "--events" and not value):
            form = {"--events": "TYPE=PATH", "--conf": "KEY=VALUE"}.get(option, "NAME=VALUE")
            raise UsageError(f"`{option} {text}` is not of the form {form}")
    return [(name, value) for _, name, _, value in split]
