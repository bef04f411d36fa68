"""Kernels of the DEBS 2016 grand challenge: lines, hash tables, the k best, and both queries event by event.

Arrays
------
data, posts_data, comments_data, likes_data, friendships_data : uint8 (bytes,)
    Whole lines of a source; `kind` says of which.
feed : lines.LineFeed
    Where each source is read, the arrays that follow.
at, promises : int64 (sources,)
    Where to go on in each source, and a time before which no line of it will come any more.
events, sources : int64 (sources, EVENT_FIELDS), (sources, SOURCE_FIELDS)
    The next event of each source, and what is counted of it: the columns are constants of `lines`.
numbers : int64 (NUMBERS,)
    The single numbers of a query: the places are constants of `lines`, `top` and the query.
posts, comments, users, likes, edges, items : int64 (room, columns)
    Tables of rows; the columns are constants of the query. `rows` in `top` is the table whose best are kept.
live, tier, top, scores : int64 (room,), (room,), (k + SPARE,), (SCORES,)
    Rows that take part, those above the threshold, the best in order, and a histogram.
*_ids, friends, pairs : int64 (rows, 2), (rows, 3)
    Hash tables of ids and of pairs; the number of rows is a power of two.
names, texts, labels, shown, out : uint8 (room,)
    Stores of bytes, what was shown last, and the output.
bars : int64 (7,)
    Scratch.

Invariants: a hash table always has free rows; a kernel that needs room, lines or a place for its output returns why,
and is called again. Kernels made with `tables.lean` make and keep no array, so references are not counted. Cost: a few
steps for each event; a clique search over the common friends of a new pair. Source: the challenge's description; the
structure is own, GraphCEP's where named. See docs/debs2016.md.
"""
