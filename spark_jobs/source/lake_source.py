# SPDX-License-Identifier: Apache-2.0
"""``format("lake")``: the data source that creates readers and writers for Spark.

Spark creates a source when ``load`` or ``save`` is called, and sends it pickled to the processes
that plan and read. The table is opened once, and its snapshot is chosen once. So a DataFrame that
is not a stream always has the rows of the time at which it was loaded.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

import lakeformat as lake
from lakeformat.catalog.row_schema import row_schema
from spark_jobs.frames.columns import is_same_type
from spark_jobs.frames.fitting import require_fitting
from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.batch_reader import LakeReader
from spark_jobs.source.options import Use, read_options, require_fit
from spark_jobs.source.read_request import ReadRequest, request_of_options
from spark_jobs.source.stream_reader import LakeStreamReader, RefusedStreamReader
from spark_jobs.source.writers import LakeStreamWriter, LakeWriter, written_as

__all__ = ["LakeDataSource", "source_in"]


class LakeDataSource(DataSource):
    """The tables of a warehouse as the format ``lake``."""

    place: ClassVar[Warehouse] = Warehouse()
    at_once: ClassVar[int] = 1
    """The number of tasks that run at the same time; a read has at least as many parts, if it has
    enough splits.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = read_options(options)
        self._asked: ReadRequest | None = None

    @classmethod
    def name(cls) -> str:
        return "lake"

    def schema(self) -> StructType:
        return self._opened().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        require_fit(self._options, Use.READ)
        return LakeReader(self._opened_as(schema), self.at_once)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            require_fit(self._options, Use.STREAM_READ)
            asked = self._opened_as(schema)
            return LakeStreamReader(asked, self._options, self._place(), self._name(), self.at_once)
        except lake.LakeError as reason:
            return RefusedStreamReader(reason)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        require_fit(self._options, Use.WRITE)
        how = written_as(self._options, overwrite=overwrite)
        table = self._fitting(schema)
        table.require_arguments("commit", overwrite=how.overwrite)
        return LakeWriter(table, how)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        require_fit(self._options, Use.STREAM_WRITE)
        how = written_as(self._options, overwrite=overwrite)
        now = partial(self._place().table, self._name())
        return LakeStreamWriter(self._fitting(schema), how, now)

    def _opened(self) -> ReadRequest:
        if self._asked is None:
            table = self._place().table_of_any_format(self._name())
            self._asked = request_of_options(table, self._options)
        return self._asked

    def _opened_as(self, schema: StructType) -> ReadRequest:
        """Return the request of a read. Raise ``InvalidRequestError`` if the user has given a
        schema with other names or types: Spark would match the columns by position and read their
        bytes as values of the given types.
        """
        asked = self._opened()
        there, given = (", ".join(s.fieldNames()) for s in (asked.schema, schema))
        if there != given:
            raise lake.InvalidRequestError(
                f"the given schema has columns {given}, but the read returns {there}: leave the "
                "schema out, and choose columns with option('columns', ...)"
            )
        for column, wanted in zip(asked.schema, schema, strict=True):
            if not is_same_type(column.dataType, wanted.dataType):
                raise lake.InvalidRequestError(
                    f"column {column.name!r} has type {wanted.dataType.simpleString()} in the "
                    f"given schema, but the read returns {column.dataType.simpleString()}: leave "
                    "the schema out, and convert the column after the read"
                )
        return asked

    def _fitting(self, schema: StructType) -> lake.Table:
        table = self._table()
        require_fitting(schema, row_schema(table), self._options.get("kinds"))
        return table

    def _table(self) -> lake.Table:
        return self._place().table(self._name())

    def _name(self) -> str:
        name = self._options.get("path", self._options.get("table"))
        if name is None:
            raise lake.InvalidRequestError(
                "format('lake') needs a table: name it, such as load('shop.orders')"
            )
        return name

    def _place(self) -> Warehouse:
        warehouse = self._options.get("warehouse")
        if warehouse is None or warehouse == self.place.warehouse:
            return self.place
        return Warehouse(warehouse)


def source_in(place: Warehouse, *, at_once: int) -> type[LakeDataSource]:
    """Return a source class for one warehouse, to be registered in a session. Spark's query plans
    do not show the options of the warehouse, because the class holds them. ``at_once`` is the
    number of tasks that run at the same time.
    """

    class RegisteredSource(LakeDataSource):
        pass

    RegisteredSource.place = place
    RegisteredSource.at_once = at_once
    return RegisteredSource
