"""Events as Spark data frames: files, tables, growing directories."""
