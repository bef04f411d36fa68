"""Matches of sequences without a Kleene variable: candidates, the walk that counts and lists them, and other plans.

A candidate is an event that may fill a variable. `walk` leaves out candidates that are in no match, then binds one
variable after another; behind the last variable with a condition one pass over the lists counts. `sweep` counts
sequences whose first event alone is compared. `tree` joins partial matches in a tree plan.

Arrays
------
events, later, until : int64 (candidates of a variable,)
    The event of each, the first of a later time, the first too late for a match with it; none of them falls.
keep, keep_others : bool (candidates,)
    Cleared for those that are dropped.
codes, other_codes : int64 (candidates,)
    Codes of a condition on the earlier and on the later variable; negative: never equal.
scratch, sums : (variables, candidates), of the type of the numbers
    Scratch of the pass over the lists.
left, right : int64 (conditions, rows)
    The codes of partial matches; `starts`, `ends` int64 (rows,) their first and last events, `weights` float64 (rows,).
after, until : int64 (left rows,)
    Of each left row the first event that may begin a right one, and the first that is too late for its end.
rows, by_code : int64 (right rows,), int64 (codes + 1,)
    Right rows by first event, or by the code of the first condition and then by first event.
begins, members : int64 (groups + 1,), (rows,)
    The rows of each group of equal codes, by first event.
others : int64 (candidates of a later variable,)
    Their events. `size` is the number of codes.
candidates, tasks, walk
    See the named tuples of `walk`; `t` is the number of a task, `cut` the last variable with a condition behind it.
zero, modulus, weights, none
    The kind of numbers, and the prime they are taken modulo, or 0; uint64 (candidates,); the value without a match.
out, rows, size, skip
    int32 (variables, columns), the columns to write, and how many matches to leave out first.

Invariants: a list of candidates is in the order of events. Cost: the walk takes one step for each binding up to the
last variable with a condition; `sweep` log n for each candidate times the cube of the number of variables. Source: own;
the paper that the tree plans follow is named in docs/sequences.md. See docs/sequences.md.
"""
