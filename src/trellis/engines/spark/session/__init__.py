"""Spark sessions: starting one, and telling what is wrong with one."""
