"""The split on Spark: from a data frame of events to sorted rows for the operator."""
