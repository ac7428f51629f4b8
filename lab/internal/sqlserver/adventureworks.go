package sqlserver

import (
	"fmt"
	"math/big"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Rows of the two tables in AdventureWorks2019.
const (
	transactionRows = 113443
	detailRows      = 121317
)

// populateAdventureWorks fills the source database with synthetic rows of the real one's shape.
func populateAdventureWorks(db *database) {
	db.schemas["production"] = &schema{id: 5, name: "Production"}
	db.schemas["sales"] = &schema{id: 6, name: "Sales"}
	add := func(schemaName, name string, keys []string, cols []tableColumn, rows int, row func(n int) []any) {
		t := &table{id: db.newObjectID(), db: db, schema: schemaName, name: name, columns: cols}
		x := tsql.IndexDef{Name: "PK_" + name, Columns: keys, Primary: true, Unique: true, Clustered: true}
		t.indexes = []tsql.IndexDef{x}
		t.rows = t.empty()
		for n := range rows {
			t.rows.add(row(n))
		}
		t.addIndex(&t.indexes[0])
		db.tables[fold(schemaName+"."+name)] = t
	}
	add("Production", "TransactionHistory", []string{"TransactionID"}, transactionColumns(), transactionRows, transactionRow)
	add("Sales", "SalesOrderDetail", []string{"SalesOrderID", "SalesOrderDetailID"}, detailColumns(), detailRows, detailRow)
}

func sourceColumn(name string, t tds.Type, nullable bool) tableColumn {
	return tableColumn{column: column{name: name, typ: t, nullable: nullable}}
}

func transactionColumns() []tableColumn {
	return []tableColumn{
		sourceColumn("TransactionID", typeInt, false), sourceColumn("ProductID", typeInt, false),
		sourceColumn("ReferenceOrderID", typeInt, false), sourceColumn("ReferenceOrderLineID", typeInt, false),
		sourceColumn("TransactionDate", typeDateTime, false), sourceColumn("TransactionType", tds.Type{Kind: tds.KindNChar, Size: 1}, false),
		sourceColumn("Quantity", typeInt, false), sourceColumn("ActualCost", typeMoney, false), sourceColumn("ModifiedDate", typeDateTime, false),
	}
}

func transactionRow(n int) []any {
	day := time.Date(2013, 7, 31, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n%369)
	return []any{int64(100000 + n), int64(316 + n%684), int64(41590 + n/3), int64(n % 3), day, []any{"W", "S", "P"}[n%3], int64(1 + n%9),
		tds.Money(int64(n*37%350000) * 100), day}
}

func detailColumns() []tableColumn {
	return []tableColumn{
		sourceColumn("SalesOrderID", typeInt, false), sourceColumn("SalesOrderDetailID", typeInt, false),
		sourceColumn("CarrierTrackingNumber", textType(25), true), sourceColumn("OrderQty", typeSmallInt, false),
		sourceColumn("ProductID", typeInt, false), sourceColumn("SpecialOfferID", typeInt, false), sourceColumn("UnitPrice", typeMoney, false),
		sourceColumn("UnitPriceDiscount", typeMoney, false), sourceColumn("LineTotal", decimalType(38, 6), false),
		sourceColumn("rowguid", typeGUID, false), sourceColumn("ModifiedDate", typeDateTime, false),
	}
}

func detailRow(n int) []any {
	order := n / 4
	price := int64(100 + n*37%350000)
	quantity := int64(1 + n%6)
	var carrier any
	if order%2 == 0 {
		carrier = fmt.Sprintf("4911-%03dC-%02d", order%1000, order%97)
	}
	var guid [16]byte
	for k, v := 15, n+1; v > 0; k, v = k-1, v>>8 {
		guid[k] = byte(v)
	}
	return []any{int64(43659 + order), int64(n + 1), carrier, quantity, int64(707 + n%292), int64(1 + n%16), tds.Money(price * 100), tds.Money(0),
		tds.Decimal{Unscaled: big.NewInt(price * quantity * 10000), Scale: 6}, guid,
		time.Date(2011, 5, 31, 0, 0, 0, 0, time.UTC).AddDate(0, 0, order%1127)}
}
