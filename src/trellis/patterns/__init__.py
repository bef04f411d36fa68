"""Patterns of several variables: their matches as paths of a network, which the trend operator counts and lists.

`states` says what a match so far may go on with, `tests` what conditions ask of events, `search` builds the network
of all matches of a window, `report` leaves those that REPORT gives, `operator` answers what is asked of them.
"""
