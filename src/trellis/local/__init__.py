"""Run a plan in this process, on Arrow tables."""
