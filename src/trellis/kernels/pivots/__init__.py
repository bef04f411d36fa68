"""Results of patterns in which all conditions compare with one event, counted and searched: an automaton for each.

That event is the *pivot*: each result has one. Once it is known, every condition is asked of one other event at a time,
so that an event is a symbol, and the results with this pivot are the sequences of symbols that an automaton reads.
`cases` reads the symbols and finds the best value of each pivot; `search` the best values of all, and the results
that have them; `ranks` how many results come before each, of all pivots; `counts` how many there are. `blocks` marks
the events that forbid to put another one to results.

Arrays
------
events : EventSymbols
    The events of a group, and what each gives to the value of a result.
machine : PivotAutomaton
    The automaton that reads symbols, with what may be put before and behind a result.
asks : PivotAsks
    The conditions, as programs, and what they make of the symbols of events.
case : PivotCase
    Room for the events that results with one pivot may have, and for what is known of their rests.
programs : Programs
    The conditions; see `trellis.kernels.expression`.
pivot, pivots, code, place, state, one
    An event that may be a pivot, several of them, the variable that is, the place of an event of a case, states of the
    automaton.
value, values, best, floor, theta, limit, most
    Values of results, int64, more is better: the best ones so far, that of each pivot, what must be exceeded, what must
    be reached, and how many are wanted; `number` says how many there are.
ways, stack
    int64 (room, 4): ways that a search has not gone yet, and the way at hand; see `search`.
paths, ends, ranks
    int64 (room,), int64 (results,), uint64 (results,): the events of results one after another, where each ends, and
    how many results come before it.

Invariants: an event has one variable, so a sequence of events is one result at most, and results in their order are
paths in the order of their events. Cost: for each pivot as many steps as there are events and transitions that read
one; for each result found as many as events. Source: own.
See docs/patterns.md.
"""
