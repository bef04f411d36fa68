"""Builds the site of the documentation, offline: .venv/bin/python scripts/docs.py [FOLDER]

Pages are Markdown of `docs`, the README and the notebooks, which are run; the reference is made of docstrings. Nothing
is loaded from elsewhere, so that the pages, and the search in them, work from disk.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

sys.path.insert(0, str(Path(__file__).parent))

import notebooks

ROOT = Path(__file__).parents[1]
REPOSITORY_FILES = {"CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing", "examples/README.md": "examples"}
NOTEBOOKS = {
    "fraud": "Fraud", "health": "Health", "process_logs": "Process logs", "prices": "Prices", "streams": "Streams",
    "history": "History", "models": "Models",
}  # fmt: skip
NAVIGATION: dict[str, list[str]] = {
    "Start": ["index", "tutorial", "cheat-sheet"],
    "Use": ["seeing-results", "features", "outputs", "streams", "spark", "history", "graphs", "debs2016", "from-flink",
            "from-match-recognize"],
    "Notebooks": [f"notebook-{name}" for name in NOTEBOOKS],
    "Reference": ["semantics", "reference", "examples", "changelog"],
    "How it works": ["how-a-query-runs", "attribute-index", "patterns", "sequences", "algorithms", "contributing"],
    "Proof": ["performance", "papers"],
}  # fmt: skip

STYLE = """
:root{color-scheme:light dark;--line:rgba(128,128,128,.3);--quiet:rgba(128,128,128,.12);--link:#0072B2}
@media (prefers-color-scheme:dark){:root{--link:#56B4E9}}
body{font:16px/1.55 system-ui,sans-serif;margin:0;display:flex}
nav{width:15em;flex:none;padding:1em;border-right:1px solid var(--line);height:100vh;overflow:auto;
 position:sticky;top:0;
 box-sizing:border-box;font-size:14px}
nav h2{font-size:13px;margin:1em 0 .2em;text-transform:uppercase;letter-spacing:.05em}
nav ul{list-style:none;margin:0;padding:0}
nav .here{font-weight:bold}main{flex:1;min-width:0;max-width:54em;padding:1em 2.5em 4em}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
pre{background:var(--quiet);padding:.8em;overflow:auto;border-radius:4px;font-size:13.5px;line-height:1.4}
code{font-size:.92em}table{border-collapse:collapse;display:block;overflow:auto}
th,td{border-bottom:1px solid var(--line);padding:.25em .7em;text-align:left;vertical-align:top}
img{max-width:100%;background:#fff}.figure,.shown{margin:1em 0;overflow:auto}
input{font:inherit;width:100%;box-sizing:border-box}
h1,h2,h3{line-height:1.25}#found{font-size:13px}
@media (max-width:50em){body{display:block}nav{width:auto;height:auto;position:static;border:0}main{padding:1em}}
"""

SEARCH = """
'use strict';
const box = document.getElementById('search'), list = document.getElementById('found');
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  list.replaceChildren();
  if (!words.length) return;
  for (const [page, title, text] of INDEX.filter(p => words.every(w => p[2].includes(w))).slice(0, 20)) {
    const item = document.createElement('li'), link = document.createElement('a');
    link.href = page; link.textContent = title; item.append(link); list.append(item);
  }
});
"""


@dataclass
class Page:
    """A page of the site: its name, its title and its body as HTML."""

    name: str
    title: str
    body: str
    has_figures: bool = False


# --- Markdown ---------------------------------------------------------------------------------------------------


def anchor_of(heading: str) -> str:
    """Return the name of a heading, as links in Markdown write it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def rendered(text: str, folder: Path) -> str:
    """Return Markdown as HTML; links to other pages lead to theirs."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse(text)
    taken: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            name = anchor_of(_plain(tokens[i + 1]))
            taken[name] = taken.get(name, -1) + 1
            token.attrSet("id", name if not taken[name] else f"{name}-{taken[name]}")
        for inner in token.children or []:
            for attribute in ("href", "src"):
                target = inner.attrGet(attribute)
                if isinstance(target, str):
                    inner.attrSet(attribute, linked(target, folder))
    html: str = reader.renderer.render(tokens, reader.options, {})
    return html


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or [])


def linked(target: str, folder: Path) -> str:
    """Return where a link of a Markdown file in a folder leads to on the site."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return target
    path, _, anchor = target.partition("#")
    end = f"#{anchor}" if anchor else ""
    there = Path(os.path.normpath(folder / path)).relative_to(ROOT)
    if there.suffix == ".png" or there.suffix == ".svg":
        return f"{there.parent.name}/{there.name}"
    if str(there) == "README.md":
        return f"index.html{end}"
    if str(there) in REPOSITORY_FILES:
        return f"{REPOSITORY_FILES[str(there)]}.html{end}"
    if there.parent.name == "notebooks":
        return f"notebook-{there.stem}.html{end}"
    if there.parent.name == "docs" and there.suffix == ".md":
        return f"{there.stem}.html{end}"
    if there == Path("docs"):
        return "index.html"
    if (ROOT / there).is_file():
        return f"files/{there}"
    raise SystemExit(f"{folder.relative_to(ROOT)}: the link {target} leads nowhere")


def markdown_page(name: str, path: Path) -> Page:
    """Return the page of a Markdown file."""
    text = path.read_text(encoding="utf-8")
    title = re.search(r"^# (.*)$", text, re.MULTILINE)
    return Page(name, title[1] if title else name, rendered(text, path.parent))


# --- Notebooks --------------------------------------------------------------------------------------------------


def notebook_page(name: str, execute: bool) -> Page:
    """Return the page of a notebook: its cells, and what they show if they are run."""
    path = notebooks.FOLDER / f"{name}.ipynb"
    parts = []
    for cell in notebooks.run(path) if execute else notebooks.cells_of(path):
        if cell.kind == "markdown":
            parts.append(rendered(cell.source, path.parent))
            continue
        parts.append(f"<pre><code>{escape(cell.source)}</code></pre>")
        parts += [f"<pre>{escape(cell.printed)}</pre>"] if cell.printed else []
        parts += [notebooks.html_of(value) for value in cell.shown]
    return Page(f"notebook-{name}", NOTEBOOKS[name], "\n".join(parts), has_figures=True)


# --- The reference ----------------------------------------------------------------------------------------------

REFERENCE: dict[str, list[str]] = {
    "Queries": ["trellis:query", "trellis.api.query:Query"],
    "Results": ["trellis.results.results:Results", "trellis.results.table:ResultTable", "trellis.results.trend:Trend",
                "trellis.results.why:Reasons"],
    "Features": ["trellis.features.transformer:TrendFeatures", "trellis.features.arrivals:FeatureArrivals"],
    "Pictures": ["trellis.report.pictures:plot_results", "trellis.report.pictures:timeline",
                 "trellis.report.pictures:graph", "trellis.report.pictures:counts", "trellis.report.through:through",
                 "trellis.report.pictures:funnel", "trellis.report.history:history",
                 "trellis.report.benchmark:benchmark"],
    "Methods": ["trellis.methods:Methods"],
    "History": ["trellis.archive.archive:Archive"],
    "Graphs": ["trellis:pipeline", "trellis.graphs:Splitter", "trellis.graphs:Operator", "trellis.graphs:Merger",
               "trellis.graphs:VertexProgram"],
    "Errors": ["trellis.errors:TrellisError", "trellis.errors:QueryError", "trellis.errors:QuerySyntaxError",
               "trellis.errors:BindError", "trellis.errors:DataError", "trellis.errors:UsageError",
               "trellis.errors:ListingRefused", "trellis.errors:MemoryExhausted"],
}  # fmt: skip


def reference_page() -> Page:
    """Return the reference of the Python API, made of docstrings."""
    parts = ["<h1>Python reference</h1>", "<p>Made of the docstrings of the code. The language is on "
             '<a href="semantics.html">its own page</a>.</p>']  # fmt: skip
    for section, names in REFERENCE.items():
        parts.append(f'<h2 id="{anchor_of(section)}">{section}</h2>')
        for name in names:
            module, _, attribute = name.partition(":")
            parts += _described(getattr(importlib.import_module(module), attribute), attribute, 3)
    return Page("reference", "Python reference", "\n".join(parts))


def _described(thing: Any, name: str, level: int) -> list[str]:
    signature = _signature(thing)
    parts = [f'<h{level} id="{escape(name)}"><code>{escape(name + signature)}</code></h{level}>']
    parts.append(docstring_html(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing):
        for member, value in inspect.getmembers(thing):
            if member.startswith("_") or getattr(value, "__doc__", None) is None:
                continue
            if inspect.isfunction(value) or inspect.ismethod(value):
                parts += _described(value, f"{name}.{member}", 4)
            elif isinstance(value, property):
                title = f'<h4 id="{name}.{member}"><code>{name}.{member}</code></h4>'
                parts += [title, docstring_html(inspect.getdoc(value) or "")]
    return parts


def _signature(thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    parameters = [p.replace(annotation=inspect.Parameter.empty) for n, p in found.parameters.items() if n != "self"]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def docstring_html(text: str) -> str:
    """Return a NumPy docstring as HTML: paragraphs, and lists of parameters."""
    blocks = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    parts = [rendered(blocks[0], ROOT / "docs")]
    for title, body in zip(blocks[1::2], blocks[2::2], strict=True):
        parts.append(f"<p><b>{escape(title)}</b></p><dl>")
        for entry in re.split(r"\n(?=\S)", body.strip("\n")):
            head, _, rest = entry.partition("\n")
            parts.append(
                f"<dt><code>{escape(head)}</code></dt><dd>{rendered(inspect.cleandoc(rest), ROOT / 'docs')}</dd>"
            )
        parts.append("</dl>")
    return "\n".join(parts)


# --- The site ---------------------------------------------------------------------------------------------------


def pages(execute: bool = True) -> dict[str, Page]:
    """Return all pages by name; notebooks are run unless `execute` is false."""
    found = {"index": markdown_page("index", ROOT / "README.md")}
    for path in sorted((ROOT / "docs").glob("*.md")):
        found[path.stem] = markdown_page(path.stem, path)
    for file, name in REPOSITORY_FILES.items():
        found[name] = markdown_page(name, ROOT / file)
    for name in NOTEBOOKS:
        found[f"notebook-{name}"] = notebook_page(name, execute)
    found["reference"] = reference_page()
    return found


def navigation(found: dict[str, Page], here: str) -> str:
    """Return the list of pages."""
    parts = []
    for section, names in NAVIGATION.items():
        parts.append(f"<h2>{section}</h2><ul>")
        for name in (name for name in names if name in found):
            mark = ' class="here"' if name == here else ""
            title = "Trellis" if name == "index" else found[name].title
            parts.append(f'<li{mark}><a href="{name}.html">{escape(title)}</a></li>')
        parts.append("</ul>")
    return "".join(parts)


def whole(page: Page, found: dict[str, Page]) -> str:
    """Return a page with its frame."""
    script = '<script src="plotly.min.js"></script>' if page.has_figures else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(page.title)}</title><link rel="stylesheet" href="style.css">{script}</head><body>
<nav><input id="search" type="search" placeholder="search"><ul id="found"></ul>{navigation(found, page.name)}</nav>
<main>{page.body}</main>
<script src="index.js"></script><script src="search.js"></script></body></html>
"""


def build(folder: Path, execute: bool = True) -> dict[str, Page]:
    """Write the site into a folder."""
    from plotly.offline import get_plotlyjs

    found = pages(execute)
    listed = {name for names in NAVIGATION.values() for name in names}
    if missing := found.keys() - listed:
        raise SystemExit(f"no section of the site has the pages {', '.join(sorted(missing))}: see NAVIGATION")
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in found.items():
        (folder / f"{name}.html").write_text(whole(page, found), encoding="utf-8")
    index = [[f"{name}.html", page.title, _text(page.body)] for name, page in found.items()]
    (folder / "index.js").write_text(f"const INDEX = {json.dumps(index)};\n", encoding="utf-8")
    (folder / "search.js").write_text(SEARCH, encoding="utf-8")
    (folder / "style.css").write_text(STYLE, encoding="utf-8")
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    for pictures in ("drawings", "pictures"):
        shutil.copytree(
            ROOT / "docs" / pictures,
            folder / pictures,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*.py", "__*"),
        )
    for target in sorted({t for page in found.values() for t in re.findall(r'href="files/([^"#]+)', page.body)}):
        (folder / "files" / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / target, folder / "files" / target)
    return found


def _text(html: str) -> str:
    """Return the words of a page, for the search."""
    plain = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(plain)).lower()[:60_000]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    made = build(target)
    print(f"{len(made)} pages: {target / 'index.html'}")
