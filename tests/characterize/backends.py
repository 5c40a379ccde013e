"""The tables of these tests, and where they are held: in Arrow, or in Spark.

A test that takes ``backend`` runs on every backend: on DuckDB always, on Spark under
``make test-spark`` (``WINDTUNNEL_BACKENDS=spark``), with the same body over the same tables.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_tables import holdings_of, holed_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.companions import Relation

    #: Puts an Arrow table where a backend holds it.
    Backend = Callable[[pa.Table], Relation]

_CHOSEN = os.environ.get("WINDTUNNEL_BACKENDS", "duckdb").split(",")
#: Spark's own Python code and its sockets warn; a test of ours should not fail for it.
_ON_SPARK = (pytest.mark.spark, pytest.mark.filterwarnings("ignore"))


@pytest.fixture(
    params=[pytest.param(name, marks=_ON_SPARK if name == "spark" else ()) for name in _CHOSEN]
)
def backend(request: pytest.FixtureRequest) -> Backend:
    """A function that puts an Arrow table on the backend under test."""
    if request.param == "spark":
        return request.getfixturevalue("on_spark")
    return lambda table: table


@pytest.fixture(scope="session")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that puts an Arrow table into a Spark session on this machine; one a run."""
    import ibis
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local[2]").appName("windtunnel-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    connection = ibis.pyspark.connect(session)
    folder = tmp_path_factory.mktemp("tables")
    held: dict[int, tuple[pa.Table, Any]] = {}

    def put(table: pa.Table) -> Any:
        if id(table) not in held:
            path = folder / f"table{len(held)}.parquet"
            pq.write_table(table, path)
            held[id(table)] = table, connection.read_parquet(str(path))
        return held[id(table)][1]

    yield put
    session.stop()


@pytest.fixture(scope="session")
def holed() -> pa.Table:
    """A jobs table with unknown values in every column."""
    return holed_jobs()


@pytest.fixture(scope="session")
def holdings(holed: pa.Table) -> pa.Table:
    """Which job of ``holed`` had which GPU when."""
    return holdings_of(holed)
