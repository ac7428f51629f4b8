package sqlserver

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// samples are values of every kind that a column can have, the extremes among them.
var samples = map[tds.Type][]any{
	typeTinyInt:                        {int64(0), int64(255)},
	typeSmallInt:                       {int64(math.MinInt16), int64(math.MaxInt16)},
	typeInt:                            {int64(math.MinInt32), int64(math.MaxInt32), int64(7)},
	typeBigInt:                         {int64(math.MinInt64), int64(math.MaxInt64)},
	typeBit:                            {true, false},
	typeMoney:                          {tds.Money(math.MinInt64), tds.Money(-1), tds.Money(20249940)},
	typeFloat:                          {0.1, -math.MaxFloat64},
	typeDateTime:                       {time.Date(1753, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2013, 7, 31, 23, 59, 59, 997e6, time.UTC)},
	typeDT2:                            {time.Date(1, 1, 1, 0, 0, 0, 100, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC)},
	typeDate:                           {time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)},
	typeGUID:                           {[16]byte{1, 2, 3}, [16]byte{15: 255}},
	textType(25):                       {"", "4911-403C-98", "Größe  "},
	{Kind: tds.KindVarBinary, Size: 8}: {[]byte{}, []byte{0, 1, 255}},
	decimalType(38, 6): {tds.NewDecimal(0, 6), tds.NewDecimal(-2024994000, 6), tds.NewDecimal(math.MinInt64, 6),
		newDecimal(new(big.Int).Neg(tds.Pow10(37)), 6)},
}

// Columns return the values added to them, including NULL.
func TestColumnsKeepValues(t *testing.T) {
	for typ, values := range samples {
		s := newStore([]column{{typ: typ}})
		values = append([]any{nil}, append(values, nil)...)
		for _, v := range values {
			s.add([]any{v})
		}
		row := make([]any, 1)
		for i, v := range values {
			if s.read(i, row); !reflect.DeepEqual(row[0], v) && (v == nil || compareValues(row[0], v) != 0) {
				t.Errorf("%s: %#v became %#v", typeName(typ), v, row[0])
			}
		}
	}
}

// A value that its column cannot hold is converted or refused, never cut.
func TestColumnsRefuseOtherTypes(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE TABLE t (n smallint NOT NULL, d decimal(9, 2) NULL)")
	must(t, s, "INSERT INTO t VALUES (1, 1.5)")
	gives(t, s, "SELECT d FROM t", "1.50")
	fails(t, s, "INSERT INTO t VALUES (40000, NULL)", "8115")
}

// A reader keeps the rows that it saw, whatever is inserted and deleted later.
func TestReadersKeepTheirRows(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE TABLE t (id int NOT NULL PRIMARY KEY, x nvarchar(10) NULL)")
	must(t, s, "INSERT INTO t VALUES (1, N'one'); INSERT INTO t VALUES (2, NULL); INSERT INTO t VALUES (3, N'three')")
	must(t, s, "INSERT INTO t VALUES (4, N'four')")
	seen := s.db.find("", "t").rows
	must(t, s, "DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (5, N'five'); DELETE FROM t WHERE id = 1")
	row := make([]any, 2)
	for i, want := range [][]any{{int64(1), "one"}, {int64(2), nil}, {int64(3), "three"}, {int64(4), "four"}} {
		if seen.read(i, row); seen.rows != 4 || !reflect.DeepEqual(row, want) {
			t.Errorf("row %d of %d is now %v", i, seen.rows, row)
		}
	}
	gives(t, s, "SELECT * FROM t ORDER BY id", "2,NULL|3,three|5,five")
}

// Keys refuse exactly the rows that a set of keys would refuse, and return the rows in their order.
func TestKeysInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	u := &uniqueKey{places: []int{0, 1}}
	tab := &table{columns: []tableColumn{{column: column{typ: typeInt}}, {column: column{typ: textType(5)}}}, unique: []*uniqueKey{u}}
	tab.rows = tab.empty()
	taken := map[[2]any]bool{}
	for range 300 {
		batch, fresh, clash := tab.empty(), map[[2]any]bool{}, false
		for range 1 + random.IntN(6) {
			key := [2]any{int64(random.IntN(40)), []string{"a", "b", "C"}[random.IntN(3)]}
			clash = clash || taken[key] || fresh[key]
			fresh[key] = true
			batch.add(key[:])
		}
		if err := tsql.Catch(func() { tab.insert(batch) }); (err != nil) != clash {
			t.Fatalf("inserting %v: %v", fresh, err)
		}
		if !clash {
			for key := range fresh {
				taken[key] = true
			}
		}
	}
	for row := 1; row < tab.rows.rows; row++ {
		if tab.rows.compare(row-1, row, u.places) >= 0 {
			t.Fatalf("row %d is not behind the one before", row)
		}
	}
	if tab.rows.rows != len(taken) || len(taken) < 50 {
		t.Errorf("%d rows of %d keys", tab.rows.rows, len(taken))
	}
}

// The checksum of a table follows its rows.
func TestChecksumOfATable(t *testing.T) {
	s := open(t, func(c *Config) { c.AdventureWorks = true })
	must(t, s, "USE AdventureWorks2019")
	const columns = "(SalesOrderID, SalesOrderDetailID, CarrierTrackingNumber, OrderQty, ProductID, SpecialOfferID, UnitPrice, " +
		"UnitPriceDiscount, LineTotal, rowguid, ModifiedDate)"
	sums := func() string {
		return must(t, s, "SELECT COUNT_BIG(*), SUM(CAST(BINARY_CHECKSUM"+columns+" AS bigint)), SUM(CAST(CHECKSUM"+columns+
			" AS bigint)) FROM Sales.SalesOrderDetail").text()
	}
	before := sums()
	must(t, s, "DELETE FROM Sales.SalesOrderDetail WHERE SalesOrderDetailID = 77")
	if after := sums(); after == before {
		t.Errorf("the checksum is %s with and without a row", after)
	}
}

// A hundred thousand rows of the dataset's wider table take less than 25 MB.
func TestRowsAreCompact(t *testing.T) {
	var before, after runtime.MemStats
	columns := make([]column, 0, 11)
	for _, c := range detailColumns() {
		columns = append(columns, c.column)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newStore(columns)
	for n := range 100_000 {
		s.add(detailRow(n))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 25<<20 || s.rows != 100_000 {
		t.Errorf("%d rows take %d bytes", s.rows, used)
	}
}
