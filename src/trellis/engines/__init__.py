"""The engines: they run a plan over events in this process or on Spark, with the same answers."""
