"""Tables and views of Spark's catalog, and the rows of SQL, as data frames of events."""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession

from trellis.engines.spark.session.raised import SPARK_ERRORS
from trellis.engines.spark.session.session import get_session
from trellis.engines.spark.sources.loading import first_line, unlogged
from trellis.errors import DataError, did_you_mean
from trellis.io.sources import is_sql


def frame_of_table(text: str, spark: SparkSession | None = None) -> DataFrame:
    """Return a table or view as a data frame, or the rows that SQL gives; nothing runs yet.

    Parameters
    ----------
    text
        `catalog.database.table`, its last or its last two names alone, or SQL.
    spark
        The session; by default the active one, or a new local one.

    Raises
    ------
    DataError
        If there is no such table, or Spark does not understand the SQL.
    """
    session = spark or get_session()
    try:
        with unlogged():
            return session.sql(text) if is_sql(text) else session.table(text)
    except SPARK_ERRORS as error:
        if is_sql(text):
            raise DataError(f"Spark cannot run the SQL of the events: {first_line(error)}.") from None
        raise _missing(session, text, error) from None


def _missing(session: SparkSession, name: str, error: Exception) -> DataError:
    if "TABLE_OR_VIEW_NOT_FOUND" not in str(error) and "NOT_FOUND" not in str(error):
        return DataError(f"The table `{name}` cannot be read: {first_line(error)}.")
    database, _, last = name.replace("`", "").rpartition(".")
    known: list[str] = []
    with suppress(*SPARK_ERRORS):
        known = [table.name for table in session.catalog.listTables(database or None)]
    where = f" in `{database}`" if database else ""
    others = f"Tables and views{where}: {', '.join(known[:10])}." if known else "Check the catalog of the session."
    return DataError(f"There is no table or view `{name}` in Spark, and no file.", did_you_mean(last, known, others))
