"""The sizes at which operators change their way, and those that they do not go beyond: one place declares them."""

from __future__ import annotations

from dataclasses import dataclass, replace

EDGE_BYTES = 4  # of an event graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Thresholds of operators: part of the plan, so that a test that wants small ones says so in its plan.

    Results never depend on them. The defaults were measured; `docs/` and `benchmarks/` say where.

    Attributes
    ----------
    batch_values, word_values, bare_values
        Events that the results of a batch name: usually; where words come out, since what was let go is written again
        while it is in a cache; and where nothing but positions comes out.
    batch_bytes
        Bytes of the texts of a column of a batch, if those of all events come out equally often.
    match_rows
        Matches of a batch of fixed sequences and joins.
    ordered_rows
        Results of a batch that are ordered by their events first.
    arranged_rows
        Rows that ORDER BY with LIMIT holds beyond those that can be in the result, before it lets go of some.
    file_rows
        Rows of a file at least, where several are written at the same time.
    block_values
        Values of all blocks of a task that is listed: they are to stay in a cache.
    few_rows
        Trends of few events that are listed as they are counted.
    first_rows
        Rows of the first part that a list worker takes, before it is known how long trends are.
    first_events
        First events of a span that are looked at before others, where LIMIT asks for the first results of a pattern.
    large_rows
        Rows of a task from which several threads share it.
    most_picked
        Trends that are found one by one where there are too many edges for a graph.
    found_alone
        Ranks up to which they are found one by one, and not in one go through all events.
    pairs_of_one, pairs_of_many, pairs_of_event, pairs_of_group
        Pairs of events that are tested in the time in which one trend is found by its rank, alone or with many others,
        an event is made ready for that, and a group is.
    pairs_of_graph
        Pairs of events from which the best trends are searched without a graph.
    counted_pairs
        Pairs of events up to which results that will be listed are counted on the graph that listing needs, too, and
        the best are searched on graphs.
    walked_choices
        Choices of events in order up to which a fixed sequence is walked, though an index may count it, and candidates
        without partners are left in.
    encoded_events
        Events up to which conditions on two variables encode all values at once, though not all are candidates.
    small_pairs
        Pairs of events up to which they are counted so whether or not they will be listed.
    kept_bytes
        Bytes of all tasks that stay ready to be unranked, beside the last one.
    unrank_bytes
        Bytes that unranking one task may take.
    best_nodes
        Nodes of one task that a search for the best trends may make: 2**24 take about 1 GB.
    best_few
        Trends that are listed and sorted before a search has begun.
    best_worth
        Trends that are listed and sorted in the time in which one is searched.
    best_steps
        Steps of a search in the time in which one trend is listed and sorted.
    skip_few
        Results per event of a group that AFTER MATCH lists, rather than looks for among their ranks.
    graph_edges
        Edges of an event graph.
    reach_bytes
        Bytes of the columns of reachability that REPORT maximal works on at a time.
    reach_steps
        Words of reachability that may be joined: some ten minutes.
    returns_steps
        Steps, in words of reachability, that returns to keys may take however little reachability would.
    direct_rows
        Rows, of 12 bytes, that lay out what flows where when maximal trends are counted: so many are kept, or laid
        out together.
    exact
        Numbers below which sums of doubles are exact.
    wrapping_bits
        Bits of numbers up to which their lowest 64 bits and floats tell them, where rounding errors allow it.
    count_events, count_block
        Events of a task from which it pays to count in blocks, and events of a block: a tree of 2**16 has 2 MB.
    divided_events
        Events of a span for each attribute vertex from which spans are counted by divided.
    thread_events, thread_part, thread_tasks, thread_firsts
        What several threads are worth: events of all tasks of trends; events of one part of an index whose vertices two
        threads lay out, which takes more memory; tasks of a join; first events of a sequence.
    unmeasured_edges
        Edges of the paths of a pattern, at most, for which there is room before they are counted.
    events_at_once
        Events of the groups whose paths are held together, before it is known how many edges they have.
    memory
        Bytes that the matches so far of one exploration, or what another operator holds in their place, may take: see
        `trellis.Methods.memory_limit`.
    least_vertices, most_vertices
        Matches so far of one group for which an exploration makes room at first, a power of two, and at most.
    most_steps
        Steps of an exploration, from a match so far to another or past it, at most: more than can be made, unless a
        sample is to tell what they would cost.
    explored_exponent
        The power of the number of events, with which matches so far grow, up to which these are explored where every
        condition compares with one event, rather than counted for each such event by itself.
    walked_firsts, walked_steps, joined_steps
        Ranks up to which the first results of a pattern are walked to, without the matches so far that lead to others;
        events that such a walk may look at; and steps of counting a join from which there is one.
    join_ways
        Ways to bind the same events that a join tells apart.
    beside_pairs, beside_steps
        Pairs of a match and the longer ones beside it that are told apart at a time, before a graph tells what counts;
        or, where these are more, pairs times the events of the group.
    """

    batch_values: int = 1 << 20
    word_values: int = 1 << 19
    bare_values: int = 3 << 19
    batch_bytes: int = 1 << 26
    match_rows: int = 1 << 16
    ordered_rows: int = 1 << 14
    arranged_rows: int = 1 << 16
    file_rows: int = 1 << 19
    block_values: int = 1 << 19
    few_rows: int = 1 << 12
    first_rows: int = 1 << 14
    first_events: int = 16
    large_rows: int = 1 << 16
    most_picked: int = 1_000_000
    found_alone: int = 1000
    pairs_of_one: int = 1 << 15
    pairs_of_many: int = 1 << 12
    pairs_of_event: int = 1 << 9
    pairs_of_group: int = 1 << 21
    pairs_of_graph: int = 1 << 20
    counted_pairs: int = 1 << 17
    walked_choices: int = 1 << 18
    encoded_events: int = 1 << 10
    small_pairs: int = 1 << 14
    kept_bytes: int = 1 << 28
    unrank_bytes: int = 4 << 30
    best_nodes: int = 1 << 24
    best_few: int = 1 << 12
    best_worth: int = 64
    best_steps: int = 10
    skip_few: int = 256
    graph_edges: int = 500_000_000
    reach_bytes: int = 1 << 28
    reach_steps: int = 1 << 41
    returns_steps: int = 1 << 20
    direct_rows: int = 1 << 25
    exact: float = 2.0**53
    wrapping_bits: int = 128
    count_events: int = 1 << 19
    count_block: int = 1 << 16
    divided_events: int = 8
    thread_events: int = 1 << 18
    thread_part: int = 1 << 22
    thread_tasks: int = 1 << 10
    thread_firsts: int = 1 << 12
    unmeasured_edges: int = 1 << 16
    events_at_once: int = 1 << 17
    memory: int = 1 << 30
    least_vertices: int = 1 << 12
    most_vertices: int = 1 << 30
    most_steps: int = 1 << 62
    explored_exponent: float = 1.0
    walked_firsts: int = 1 << 14
    walked_steps: int = 1 << 27
    joined_steps: int = 1 << 22
    join_ways: int = 1 << 18
    beside_pairs: int = 1 << 15
    beside_steps: int = 1 << 24

    def within(self, memory: int) -> Sizes:
        """Return the sizes for so many bytes, where these are not the usual ones."""
        return replace(self, memory=memory, graph_edges=memory // EDGE_BYTES, unrank_bytes=memory)


USUAL = Sizes()
