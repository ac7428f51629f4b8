"""The two AdventureWorks tables: columns, keys, and generated values."""

from __future__ import annotations

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
