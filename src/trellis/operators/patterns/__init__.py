"""Patterns of several variables: their matches as paths of an event graph, which the trend operator counts and lists.

Where conditions look at neighbours only, `indexed` counts on an index for each step between variables, and `positions`
builds the edges. For the rest `tables` compiles the plan and the events to tables, by which `explore` finds the matches
so far, counts them, or leaves those that REPORT gives. `order` brings results into order where events can be bound in
several ways; `structure` holds what was built, `operator` answers questions.
"""
