"""A real session of Spark on two cores, one for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pprop import MissingDependencyError


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from pprop.spark.session import find_java

    try:
        find_java()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("pprop tests")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
    }
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
