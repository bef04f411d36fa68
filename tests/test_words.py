"""The words of the house: one meaning each, unique class names, and docstrings that say what a thing is.

The glossary of the design gives each thing one word. The words that it replaced stay out of names, docstrings,
comments, messages, explanations and documents, so that a newcomer never has to learn two words for one thing.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "trellis"
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = SOURCE.parents[1]
# What users and newcomers read: documents, examples, and what `explain` prints.
DOCUMENTS = sorted([
    *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py"),
    *(path for path in (ROOT / "tests" / "plan" / "golden").rglob("*") if path.is_file()),
])  # fmt: skip

# Rooms that have not been gone through yet; the set is to be empty.
ROOMS_TO_DO: set[str] = set()

# Words that the glossary replaced, with the word that is used instead. They occur in no name and in no docstring.
RETIRED = {
    "world": "partition",
    "stretch": "window batch, rank range or tile",
    "network": "event graph",
    "strand": "key partition",
    "lane": "list worker",
    "halves": "time bisection",
    "travel": "unrank",
    "locate": "unrank",
    "outlet": "stream output, commit log",
    "filing": "commit log",
    "packing": "event packer",
    "family": "query group",
    "families": "query groups",
    "asker": "archive reader, question",
    "mend": "fix",
}
# Words with an ordinary meaning besides the retired one: they occur in no name of a class, function, attribute or
# parameter, where they would stand for a thing; prose and local variables may use them as verbs.
RETIRED_AS_NAMES = {
    "found": "match, trend, or what it is",
    "told": "trend, report, or what it is",
    "walked": "match, trend",
    "kept": "archive reader, snapshot, or what it is",
    "asked": "question, request",
    "standing": "standing query",
    "holding": "window state",
    "ground": "traversal input",
    "stage": "traversal input",
    "address": "unrank",
}
# Uses of a retired word in its ordinary meaning.
ALLOWED = (
    r"social networks?",  # of the DEBS 2016 challenge
    r"halves of characters",  # of surrogate pairs
    r"standing quer(?:y|ies)",  # the glossary's own word
    r"visit_network",  # the stop of the tour at a social network
    r"(?:the|no) network\b|network/",  # between machines; the folder of a social network in a document
    r"family of queries|families",  # of similar queries, and of money laundering, in documents
    r"^.family.$",  # of a font
    r"trellis\.streams\.outlet",  # what a module was called, in the changelog
)

INFLECTED = {word: re.compile(rf"\b{word}(?:s|es|ed)?\b", re.IGNORECASE) for word in RETIRED}
ORDINARY = re.compile("|".join(ALLOWED), re.IGNORECASE)


def room_of(path: Path) -> str:
    """The room that a file lies in, a file at the top by its own name."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


ROOMS = sorted({room_of(path) for path in FILES} - ROOMS_TO_DO)


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file; not before it is needed, as every process imports this."""
    return ast.parse(path.read_text(encoding="utf-8"))


def trees_of(room: str) -> Iterator[tuple[Path, ast.Module]]:
    """The files of a room, with their syntax trees."""
    return ((path.relative_to(SOURCE), tree_of(path)) for path in FILES if room_of(path) == room)


def docstrings_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """All docstrings of a file, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "lineno", 1), text


def names_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a file gives to classes, functions, parameters and attributes, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
        if isinstance(node, ast.ClassDef):
            fields = (one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name))
            yield from ((one.lineno, one.target.id) for one in fields)


def locals_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The variables that a file assigns to, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def words_of(name: str) -> list[str]:
    """The words of a name in snake or camel case, in lower case."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)]


def retired_in_text(text: str) -> list[str]:
    """The retired words that a text uses, without those in their ordinary meaning."""
    plain = ORDINARY.sub("", text)
    return [word for word, pattern in INFLECTED.items() if pattern.search(plain)]


def retired_in_name(name: str, retired: dict[str, str]) -> list[str]:
    """The retired words that a name has; as its last word, which says what the thing is, for participles."""
    words = words_of(ORDINARY.sub("", name))
    if retired is RETIRED_AS_NAMES:
        words = [] if words[:1] in (["is"], ["has"]) else words[-1:]
    return [word for word in words if word in retired or word.removesuffix("s") in retired]


def test_class_names_are_unique() -> None:
    """A class name means one thing in the whole package."""
    places = defaultdict(list)
    for path, tree in ((path, tree_of(path)) for path in FILES):
        if room_of(path) not in ROOMS_TO_DO:
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_say_what_a_thing_is(room: str) -> None:
    """No docstring begins with a riddle such as "What ..." or "Return what ..."."""
    riddles = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, tree in trees_of(room)
        for line, text in docstrings_of(tree)
        if re.match(r"(?:(?:Return|Yield|Give) )?what\b", text, re.IGNORECASE)
    ]
    assert riddles == []


@pytest.mark.parametrize("room", ROOMS)
def test_retired_words_are_gone(room: str) -> None:
    """No name and no docstring uses a word that the glossary replaced."""
    left = []
    for path, tree in trees_of(room):
        left += [f"{path}:{line}: docstring: {w}" for line, text in docstrings_of(tree) for w in retired_in_text(text)]
        for line, name in {*names_of(tree), *locals_of(tree)}:
            left += [f"{path}:{line}: {name}: use {RETIRED.get(w, '')}" for w in retired_in_name(name, RETIRED)]
        for line, name in {*names_of(tree)}:
            left += [f"{path}:{line}: {name}: not {w}" for w in retired_in_name(name, RETIRED_AS_NAMES)]
    assert sorted(left) == []


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and strings of a file, messages and the texts of `explain` among them, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


@pytest.mark.parametrize("room", ROOMS)
def test_comments_and_messages_use_no_retired_words(room: str) -> None:
    files = [path for path in FILES if room_of(path) == room]
    left = [
        f"{path.relative_to(SOURCE)}:{line}: use {RETIRED[word]}"
        for path in files
        for line, text in texts_of(path)
        for word in retired_in_text(text)
    ]
    assert left == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_no_retired_words(path: Path) -> None:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    assert [f"line {i}: {RETIRED[word]}" for i, line in lines for word in retired_in_text(line)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_files_are_not_named_by_retired_words(room: str) -> None:
    """No module is named by a word that the glossary replaced."""
    names = [str(path) for path, _ in trees_of(room)]
    retired = {**RETIRED, **RETIRED_AS_NAMES}
    assert [name for name in names if retired_in_name(Path(name).stem, retired)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A stretch of windows.", ["stretch"]),
        ("The worlds of a query.", ["world"]),
        ("A social network.", []),
        ("An event network.", ["network"]),
        ("Explanations of a standing query.", []),
    ],
)
def test_the_guard_itself(text: str, words: list[str]) -> None:
    """The guard sees retired words, also inflected, and lets their ordinary meanings pass."""
    assert retired_in_text(text) == words


@pytest.mark.parametrize(
    ("name", "is_retired"), [("_Asked", True), ("OfFound", True), ("is_kept", False), ("found_at", False)]
)
def test_the_guard_of_names(name: str, is_retired: bool) -> None:
    """A participle that names a thing is seen, one that asks a question or says more is not."""
    assert bool(retired_in_name(name, RETIRED_AS_NAMES)) is is_retired
