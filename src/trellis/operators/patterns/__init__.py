"""Patterns of several variables: their matches as paths of an event graph, which the trend operator counts and lists.

Where conditions look at neighbours only, `indexed` counts on an index for each step between variables, and `positions`
builds the edges. For the rest `progress` says what a match so far may go on with, `conditions` what is asked of events,
`search` builds the event graph of all matches of a window, and `report` leaves those that REPORT gives. `order` brings
results into order where events can be bound in several ways; `operator` answers what is asked of them.
"""
