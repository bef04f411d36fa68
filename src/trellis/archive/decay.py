"""Decay of the oldest part of an archive: it is dropped, or coarsened, when nodes of the tree stand for its leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trellis.archive.contents import Contents
from trellis.archive.growth import write_contents
from trellis.archive.store import Manifest, remove_unnamed, save_array, swap_manifest
from trellis.archive.tree import FilterTree, node_type


def dropped(directory: Path, manifest: Manifest, contents: Contents, moment: Any) -> Manifest:
    """Forget the closed leaves that end before a time, and the files that nothing needs then."""
    entries = contents.entries
    closed = entries["at"] + np.maximum(entries["events"], manifest.capacity) <= manifest.events
    gone = int(np.searchsorted(entries["until"][closed], moment, side="left"))
    if not gone:
        return manifest
    left_over = np.arange(gone, len(entries))
    first = int(entries["at"][gone]) if len(left_over) else manifest.events
    left = contents.only(left_over, entries[:0], contents.filters.rows()[:0])
    return _replaced(directory, manifest, contents, left, first)


def coarsened(
    directory: Path, manifest: Manifest, contents: Contents, tree: FilterTree, moment: Any, level: int
) -> Manifest:
    """Let the highest nodes, up to a level, stand for the leaves below them, where these end before a time."""
    entries, nodes = contents.entries, tree.nodes
    nodes = nodes[(nodes["level"] <= level) & (nodes["until"] < moment)]
    begin = nodes["index"] * manifest.capacity * manifest.fan_out ** nodes["level"]
    low = np.searchsorted(entries["at"], begin)
    high = np.searchsorted(entries["at"], begin + nodes["events"])
    covered, chosen = np.zeros(len(entries), np.bool_), []
    for i in np.argsort(-nodes["level"], kind="stable").tolist():
        if not covered[low[i]]:
            covered[low[i] : high[i]] = True
            chosen.append(i)
    if not chosen:
        return manifest
    added = np.zeros(len(chosen), entries.dtype)
    added["at"] = begin[chosen]
    for name in ("events", "since", "until"):
        added[name] = nodes[name][chosen]
    for i, node in enumerate(chosen):
        for name in added.dtype.names or ():
            if ":" in name:  # a range is that of all leaves below
                below = entries[name][low[node] : high[node]]
                added[name][i] = below.min() if name.startswith("least:") else below.max()
    left = contents.only(np.flatnonzero(~covered), added, nodes["filter"][chosen])
    return _replaced(directory, manifest, contents, left, manifest.dropped)


def _replaced(directory: Path, manifest: Manifest, old: Contents, left: Contents, first: int) -> Manifest:
    """Make other contents count, of which the leaves that have not changed come last."""
    new = manifest.next()
    new.shift += len(old.entries) - len(left.entries)
    new.dropped = first
    new.parts = [part for part in new.parts if part[1] + part[2] > first]
    new.tiles, new.tree = [], []
    write_contents(directory, new, left, range(len(left.filters.tiles)))
    times = left.entries["since"].dtype
    whole = FilterTree(manifest.capacity, manifest.fan_out, np.zeros(0, node_type(manifest.bits, times)))
    nodes = whole.grown(left.entries, left.filters, 0, manifest.events)
    if len(nodes):
        new.tree = [new.named("tree")]
        save_array(directory, new.tree[0], nodes, new)
    swap_manifest(directory, new)
    remove_unnamed(directory, new)
    return new
