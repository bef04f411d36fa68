"""Conditions on several events as tables of instructions, which one kernel runs: nothing is compiled for a query.

A program is a run of instructions, each of which leaves one value: an integer or a double, and whether it is there at
all (NULL and NaN are not). Logic is three-valued; integers compute in 64 bits, and whoever leaves them is told of.

Arrays
------
programs : Programs
    The instructions and constants of all programs, and the columns that they read; see the named tuple.
program : int
    The number of a program.
events : int64 (references,)
    For each reference of the program its event, from `at` on; -1 where there is none, so that its columns are NULL.
whole, real, there : int64, float64, bool (longest program,)
    Scratch: the value that each instruction leaves.
op, left, right, x, y, scale, power
    A comparison, and what it compares.

Invariants: an instruction reads what instructions before it have left. Cost: a few nanoseconds for each instruction.
Source: own. See docs/sequences.md.
"""
