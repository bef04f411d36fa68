"""The page of a report: its frame, style and script; data comes in as JSON and is only ever shown as text."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

STYLE = """
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;max-width:1100px;margin:1.5em auto;padding:0 1em}
h1{font-size:1.3em}h2{font-size:1.1em;margin-top:1.6em}
pre{background:rgba(128,128,128,.12);padding:.7em;overflow:auto;border-radius:4px}
table{border-collapse:collapse;width:100%}
th,td{padding:.2em .6em;text-align:left;border-bottom:1px solid rgba(128,128,128,.3);white-space:nowrap}
th{cursor:pointer}tbody tr{cursor:pointer}tbody tr.chosen{background:rgba(0,114,178,.2)}
.facts span{margin-right:1.4em}.wide{overflow:auto}
input{font:inherit;padding:.3em .6em;width:20em}svg{max-width:100%}
"""

SCRIPT = """
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const byId = name => document.getElementById(name);
const make = (name, text) => { const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  return node; };
const grouped = number => number.toLocaleString('en');
let shown = data.rows.map((_, i) => i), page = 0, column = -1, down = false;
const SIZE = 50;
function cells(row) { return data.columns.map(c => row[c]); }
function draw() {
  const body = byId('rows'); body.replaceChildren();
  for (const i of shown.slice(page * SIZE, page * SIZE + SIZE)) {
    const line = make('tr'); line.dataset.row = i;
    for (const value of cells(data.rows[i])) line.append(make('td', value));
    line.addEventListener('click', () => choose(i, line));
    body.append(line);
  }
  byId('found').textContent = grouped(shown.length) + ' of ' + grouped(data.rows.length) + ' trends, page ' +
    grouped(page + 1) + ' of ' + grouped(Math.max(1, Math.ceil(shown.length / SIZE)));
}
function search() {
  const wanted = byId('search').value.toLowerCase();
  shown = data.rows.map((_, i) => i).filter(i => cells(data.rows[i]).some(c => c.toLowerCase().includes(wanted)));
  page = 0; order();
}
function order() {
  if (column >= 0) {
    const name = data.columns[column], sign = down ? -1 : 1;
    const number = text => { const n = Number(text.replaceAll(',', '')); return Number.isNaN(n) ? null : n; };
    shown.sort((a, b) => { const x = data.rows[a][name], y = data.rows[b][name], m = number(x), n = number(y);
      return sign * (m !== null && n !== null ? m - n : x < y ? -1 : x > y ? 1 : 0) || a - b; });
  }
  draw();
}
function shape(name, values) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in values) node.setAttribute(key, values[key]);
  return node;
}
function choose(i, line) {
  for (const other of document.querySelectorAll('tr.chosen')) other.classList.remove('chosen');
  line.classList.add('chosen');
  const events = data.events[i], picture = byId('picture');
  picture.replaceChildren();
  const xs = events.map(e => e.x), ys = events.map(e => e.y === null ? 0 : e.y);
  const low = Math.min(...ys), high = Math.max(...ys), first = Math.min(...xs), last = Math.max(...xs);
  const px = x => 40 + (last > first ? (x - first) / (last - first) : .5) * 900;
  const py = y => 210 - (high > low ? (y - low) / (high - low) : .5) * 180;
  picture.append(shape('polyline', {points: xs.map((x, k) => px(x) + ',' + py(ys[k])).join(' '), fill: 'none',
    stroke: '#0072B2', 'stroke-width': 2}));
  events.forEach((e, k) => {
    picture.append(shape('circle', {cx: px(xs[k]), cy: py(ys[k]), r: 5, fill: '#D55E00'}));
    const label = shape('text', {x: px(xs[k]), y: py(ys[k]) - 9, 'text-anchor': 'middle', 'font-size': 11,
      fill: 'currentColor'});
    label.textContent = e.name; picture.append(label);
  });
  const list = byId('why'); list.replaceChildren();
  const reasons = data.reasons[i] || ['trend.explain() tells why this one matched'];
  for (const reason of reasons) list.append(make('li', reason));
  const body = byId('events'); body.replaceChildren();
  for (const e of events) { const row = make('tr'); for (const value of e.values) row.append(make('td', value));
    body.append(row); }
  byId('chosen').hidden = false;
}
const head = byId('head');
data.columns.forEach((name, i) => { const cell = make('th', name);
  cell.addEventListener('click', () => { down = column === i ? !down : false; column = i; order(); });
  head.append(cell); });
data.attributes.forEach(name => byId('attributes').append(make('th', name)));
byId('search').addEventListener('input', search);
byId('before').addEventListener('click', () => { if (page > 0) { page--; draw(); } });
byId('next').addEventListener('click', () => { if ((page + 1) * SIZE < shown.length) { page++; draw(); } });
draw();
"""


def page_text(title: str, parts: list[str], data: dict[str, Any]) -> str:
    """Return a whole page: parts that are HTML already, and the data of the table, the picture and the reasons.

    A Content-Security-Policy lets nothing run but the page's own script, by its hash, and nothing be loaded.
    """
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    safe = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace("&", "\\u0026")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}</style></head><body>
{"".join(parts)}
<h2>Trends</h2>
<p><input id="search" type="search" placeholder="search"> <button id="before">previous</button>
<button id="next">next</button> <span id="found"></span></p>
<div class="wide"><table><thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table></div>
<div id="chosen" hidden><h2>The chosen trend</h2>
<svg id="picture" viewBox="0 0 980 230" width="980" height="230" role="img"></svg>
<h2>Why it matched</h2><ul id="why"></ul>
<div class="wide"><table><thead><tr id="attributes"></tr></thead><tbody id="events"></tbody></table></div></div>
<script type="application/json" id="data">{safe}</script>
<script>{SCRIPT}</script>
</body></html>
"""
