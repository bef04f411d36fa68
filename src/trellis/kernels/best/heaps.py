"""Heaps of a search: of the ways to go on from a node, and of the best paths that were found.

`slots` and `paths` are int64 tables whose rows begin with the words of a value, `signs` says which of them count
backwards (see `trellis.kernels.best.nodes`); each step takes the logarithm of the heap's size.
"""

from __future__ import annotations

from trellis.kernels.best.nodes import order_of
from trellis.kernels.jit import njit

NODE, SUFFIX = range(2)  # columns of the slots of heaps
PATH_END, TASK, WANTED = range(3)  # columns of the paths found


@njit(cache=True, nogil=True)
def _ahead(slots, i, j, signs):
    """Whether slot `i` comes before slot `j`."""
    order = order_of(slots, i, slots, j, signs)
    node = signs.shape[0] + NODE
    return order > 0 or (order == 0 and slots[i, node] < slots[j, node])


@njit(cache=True, nogil=True)
def _swap(slots, i, j):
    for column in range(slots.shape[1]):
        slots[i, column], slots[j, column] = slots[j, column], slots[i, column]


@njit(cache=True, nogil=True)
def sift_down(slots, at, size, last_on_top, signs):
    """Move what is on top of a heap to where it belongs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and _ahead(slots, at + child + 1, at + child, signs) != last_on_top:
            child += 1
        if _ahead(slots, at + child, at + i, signs) == last_on_top:
            return
        _swap(slots, at + i, at + child)
        i = child


@njit(cache=True, nogil=True)
def offer_slot(slots, at, size, most, signs):
    """Take what lies in the slot behind a heap, the last on top, if it is among the `most` first; return the size."""
    if size == most:
        if _ahead(slots, at + size, at, signs):
            _swap(slots, at, at + size)
            sift_down(slots, at, size, True, signs)
        return size
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if _ahead(slots, at + i, at + parent, signs):
            break
        _swap(slots, at + i, at + parent)
        i = parent
    return size + 1


@njit(cache=True, nogil=True)
def sort_heap(slots, at, size, signs):
    """Sort a heap that has the last on top: then it is one that has the first on top."""
    for end in range(size - 1, 0, -1):
        _swap(slots, at, at + end)
        sift_down(slots, at, end, True, signs)


@njit(cache=True, nogil=True)
def drop_first(slots, at, size, signs):
    """Take the first off a heap that has it on top; return how many are left."""
    _swap(slots, at, at + size - 1)
    sift_down(slots, at, size - 1, False, signs)
    return size - 1


@njit(cache=True, nogil=True)
def _later(paths, i, j, signs):
    """Whether the path found as number `i` comes behind number `j`."""
    order = order_of(paths, i, paths, j, signs)
    if order != 0:
        return order < 0
    task = signs.shape[0] + TASK
    return paths[i, task] > paths[j, task] or (paths[i, task] == paths[j, task] and i > j)


@njit(cache=True, nogil=True)
def keep_path(path, heap, size, paths, signs):
    """Put a path into the heap of the best paths, the last of them on top: in the place of that one if it is full.

    Return how many are kept, or -1 if the path comes behind all of them.
    """
    wanted = signs.shape[0] + WANTED
    paths[path, wanted] = 1
    if size < heap.shape[0]:
        i = size
        heap[i] = path
        while i > 0 and _later(paths, heap[i], heap[(i - 1) >> 1], signs):
            heap[i], heap[(i - 1) >> 1] = heap[(i - 1) >> 1], heap[i]
            i = (i - 1) >> 1
        return size + 1
    if not _later(paths, heap[0], path, signs):
        return -1
    paths[heap[0], wanted] = 0
    heap[0] = path
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _later(paths, heap[child + 1], heap[child], signs):
            child += 1
        if not _later(paths, heap[child], heap[i], signs):
            break
        heap[i], heap[child] = heap[child], heap[i]
        i = child
    return size
