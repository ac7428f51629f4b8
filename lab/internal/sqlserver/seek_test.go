package sqlserver

import (
	"fmt"
	"testing"
)

// A key in WHERE is sought, with the same result as a scan.
func TestSeekByKey(t *testing.T) {
	s := open(t, nil)
	must(t, s, "CREATE DATABASE d")
	must(t, s, "USE d")
	must(t, s, "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, n int NULL)")
	must(t, s, "INSERT INTO dbo.t VALUES (7, 70), (3, 30), (9, NULL), (1, 10)") // not in the order of the key
	for value, want := range map[string]string{"3": "3,30", "9": "9,NULL", "1": "1,10", "8": "", "0": "", "99": "", "NULL": ""} {
		text := fmt.Sprintf("DECLARE @k int = %s; SELECT id, n FROM dbo.t AS x WHERE x.id = @k", value)
		gives(t, s, text, want)
	}
	for text, want := range map[string]string{
		"SELECT n FROM dbo.t WHERE id = 7":                                                  "70",
		"SELECT n FROM dbo.t WHERE id = 7.5":                                                "",
		"SELECT COUNT(*) FROM dbo.t WHERE id = 7":                                           "1",
		"SELECT SUM(n) FROM dbo.t WHERE id = 7":                                             "70",
		"SELECT TOP (1) n FROM dbo.t WHERE n = 30":                                          "30",
		"SELECT a.n, b.n FROM dbo.t AS a CROSS JOIN dbo.t AS b WHERE a.id = 7 AND b.id = 3": "70,30",
		"SELECT (SELECT n FROM dbo.t WHERE id = 3)":                                         "30",
		"SELECT n FROM dbo.t AS o WHERE id = 1 UNION ALL SELECT n FROM dbo.t WHERE id = 3":  "10|30",
		"DECLARE @k bigint = 4294967303; SELECT n FROM dbo.t WHERE id = @k":                 "",
		"SELECT n FROM dbo.t WHERE id = 3 ORDER BY id":                                      "30",
	} {
		gives(t, s, text, want)
	}
}
