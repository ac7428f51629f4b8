"""The two AdventureWorks tables, and the statements that create, fill, check and drop them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column, its type in CREATE TABLE, and the expression in `n` (0, 1, 2 ...) for its value."""

    name: str
    type: str
    generated: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the dataset, with its schema and types from AdventureWorks."""

    schema: str
    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def full_name(self) -> str:
        """Schema and name."""
        return f"{self.schema}.{self.name}"

    @property
    def column_list(self) -> str:
        """The columns' names, comma-separated."""
        return ", ".join(column.name for column in self.columns)


# Money first: dividing two ints would lose the cents.
_PRICE = "CAST(100 + n * 37 % 350000 AS money) / 100"
_QUANTITY = "1 + n % 6"
_ORDER = "n / 4"
_ORDER_DATE = f"DATEADD(day, {_ORDER} % 1127, CAST('20110531' AS datetime))"
_TRANSACTION_DATE = "DATEADD(day, n % 369, CAST('20130731' AS datetime))"
# Twelve characters, as in AdventureWorks, for every second order; about half are NULL there too.
_TRACKING = (
    f"CASE WHEN {_ORDER} % 2 = 0 THEN N'4911-' + RIGHT(N'000' + CAST({_ORDER} % 1000 AS nvarchar(10)), 3) "
    f"+ N'C-' + RIGHT(N'00' + CAST({_ORDER} % 97 AS nvarchar(10)), 2) ELSE NULL END"
)

TRANSACTION_HISTORY = Table(
    schema="Production",
    name="TransactionHistory",
    key=("TransactionID",),
    columns=(
        Column("TransactionID", "int", "100000 + n"),
        Column("ProductID", "int", "316 + n % 684"),
        Column("ReferenceOrderID", "int", "41590 + n / 3"),
        Column("ReferenceOrderLineID", "int", "n % 3"),
        Column("TransactionDate", "datetime", _TRANSACTION_DATE),
        Column(
            "TransactionType",
            "nchar(1)",
            "CASE WHEN n % 15 = 0 THEN N'P' WHEN n % 3 = 0 THEN N'W' ELSE N'S' END",
        ),
        Column("Quantity", "int", "1 + n % 9"),
        Column("ActualCost", "money", "CAST(n * 37 % 350000 AS money) / 100"),
        Column("ModifiedDate", "datetime", _TRANSACTION_DATE),
    ),
)

SALES_ORDER_DETAIL = Table(
    schema="Sales",
    name="SalesOrderDetail",
    key=("SalesOrderID", "SalesOrderDetailID"),
    columns=(
        Column("SalesOrderID", "int", f"43659 + {_ORDER}"),
        Column("SalesOrderDetailID", "int", "1 + n"),
        Column("CarrierTrackingNumber", "nvarchar(25)", _TRACKING, nullable=True),
        Column("OrderQty", "smallint", f"CAST({_QUANTITY} AS smallint)"),
        Column("ProductID", "int", "707 + n % 292"),
        Column("SpecialOfferID", "int", "1 + n % 16"),
        Column("UnitPrice", "money", _PRICE),
        Column("UnitPriceDiscount", "money", "CAST(0 AS money)"),
        Column("LineTotal", "numeric(38, 6)", f"CAST({_PRICE} * ({_QUANTITY}) AS numeric(38, 6))"),
        Column("rowguid", "uniqueidentifier", "CAST(CAST(n AS binary(16)) AS uniqueidentifier)"),
        Column("ModifiedDate", "datetime", _ORDER_DATE),
    ),
)

TABLES = (TRANSACTION_HISTORY, SALES_ORDER_DETAIL)

DURABILITY = "SCHEMA_AND_DATA"

MARKER = "dbo.vnuma_marker"
STAGING = "dbo.vnuma_staging"
FILEGROUP = "vnuma_xtp"
CHUNK_ROWS = 100_000
"""Rows that one INSERT generates: as many as five digits count."""

XTP_SUPPORTED = "SELECT CAST(SERVERPROPERTY(N'IsXTPSupported') AS int) AS supported"
DATA_PATH = "SELECT CAST(SERVERPROPERTY(N'InstanceDefaultDataPath') AS nvarchar(260)) AS data_path"
PRODUCT_VERSION = "SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS product_version"
CREATE_MARKER = (
    f"CREATE TABLE {MARKER} (item nvarchar(100) NOT NULL PRIMARY KEY, value nvarchar(400) NOT NULL)"
)
INSERT_MARKER = f"INSERT INTO {MARKER} (item, value) VALUES (?, ?)"
READ_MARKER = f"SELECT item, value FROM {MARKER}"
CLEAR_MARKER = f"DELETE FROM {MARKER} WHERE item <> N'product'"
COUNT_FILEGROUPS = "SELECT COUNT(*) AS filegroups FROM sys.filegroups WHERE type = N'FX'"
COUNT_FILES = "SELECT COUNT(*) AS files FROM sys.database_files WHERE type = 2"

# 0 to 99,999 from ten digits: works on every version, without a helper table.
_NUMBERS = (
    "WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d)), "
    "number (n) AS (SELECT {offset} + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d "
    "FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e CROSS JOIN digit AS f)"
)


def numbers(offset: int) -> str:
    """A WITH clause whose `number (n)` counts from `offset`, CHUNK_ROWS rows long."""
    return _NUMBERS.format(offset=offset)


def identifier(name: str) -> str:
    """A name in brackets, with closing brackets doubled."""
    return "[" + name.replace("]", "]]") + "]"


def literal(text: str) -> str:
    """A Unicode string literal."""
    return "N'" + text.replace("'", "''") + "'"


def object_id(full_name: str) -> str:
    """The query for a table's object id, NULL if it does not exist."""
    return f"SELECT OBJECT_ID({literal(full_name)}, N'U') AS object_id"


def marker_id(database: str) -> str:
    """The query for the id of a database's marker table."""
    return f"SELECT OBJECT_ID({literal(f'{identifier(database)}.{MARKER}')}, N'U') AS marker"


def create_database(database: str, major_version: int) -> Iterator[str]:
    """Create the database. Query Store, on by default since 2022, is off, as it could change plans between
    runs.
    """
    name = identifier(database)
    yield f"CREATE DATABASE {name}"
    yield f"ALTER DATABASE {name} SET RECOVERY SIMPLE"
    if major_version >= 13:
        yield f"ALTER DATABASE {name} SET QUERY_STORE = OFF"


def add_filegroup(database: str) -> str:
    """Add the filegroup that memory-optimised tables need; it can never be removed again."""
    return f"ALTER DATABASE {identifier(database)} ADD FILEGROUP {FILEGROUP} CONTAINS MEMORY_OPTIMIZED_DATA"


def add_file(database: str, data_path: str) -> str:
    """Add its container: a folder next to the database's data file."""
    folder = literal(f"{data_path}{database}_xtp")
    return (
        f"ALTER DATABASE {identifier(database)} "
        f"ADD FILE (NAME = {literal(FILEGROUP)}, FILENAME = {folder}) TO FILEGROUP {FILEGROUP}"
    )


def create_table(table: Table) -> str:
    """A memory-optimised table whose key is an ordered index, so TOP (n) ... ORDER BY key needs no sort."""
    columns = [_definition(column, table) for column in table.columns]
    if len(table.key) > 1:
        columns.append(f"PRIMARY KEY NONCLUSTERED ({', '.join(table.key)})")
    body = ", ".join(columns)
    return f"CREATE TABLE {table.full_name} ({body}) WITH (MEMORY_OPTIMIZED = ON, DURABILITY = {DURABILITY})"


def _definition(column: Column, table: Table) -> str:
    key = " PRIMARY KEY NONCLUSTERED" if table.key == (column.name,) else ""
    return f"{column.name} {column.type} {'NULL' if column.nullable else 'NOT NULL'}{key}"


def generate(table: Table, rows: int) -> Iterator[str]:
    """INSERT statements that generate `rows` rows, the same on every server."""
    values = ", ".join(column.generated for column in table.columns)
    for offset in range(0, rows, CHUNK_ROWS):
        yield (
            f"{numbers(offset)} INSERT INTO {table.full_name} ({table.column_list}) "
            f"SELECT {values} FROM number WHERE n < {rows}"
        )


def stage(table: Table, source: str) -> str:
    """First step of a copy: into an ordinary table of ours. Only reads the source."""
    return f"SELECT {table.column_list} INTO {STAGING} FROM {identifier(source)}.{table.full_name}"


def unstage(table: Table) -> str:
    """Second step: no other database may be named together with a memory-optimised table (message 41317)."""
    return f"INSERT INTO {table.full_name} ({table.column_list}) SELECT {table.column_list} FROM {STAGING}"


def content(table: Table, place: str) -> str:
    """Row count and an order-independent checksum."""
    return (
        f"SELECT COUNT_BIG(*) AS row_count, "
        f"SUM(CAST(BINARY_CHECKSUM({table.column_list}) AS bigint)) AS row_checksum FROM {place}"
    )


def storage(table: Table) -> str:
    """Whether the table is memory-optimised, and its durability."""
    return (
        "SELECT is_memory_optimized, durability_desc FROM sys.tables "
        f"WHERE object_id = OBJECT_ID({literal(table.full_name)}, N'U')"
    )
