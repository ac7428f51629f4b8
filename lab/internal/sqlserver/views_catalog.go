package sqlserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"vnuma.dev/lab/internal/tds"
)

func init() {
	addView("sys.databases", "", `name sysname, database_id int, state tinyint, state_desc nvarchar(60), recovery_model_desc nvarchar(60),
		is_published bit, is_merge_published bit, is_subscribed bit, is_distributor bit, resource_pool_id int?@12.0.0`, databases)
	addView("sys.filegroups", "", "name sysname, type char(2), type_desc nvarchar(60)", filegroups)
	addView("sys.database_files", "", `file_id int, type tinyint, type_desc nvarchar(60), name sysname, state_desc nvarchar(60),
		size int, max_size int, growth int`, databaseFiles)
	objects := "name sysname, object_id int, schema_id int, type char(2), type_desc nvarchar(60)"
	addView("sys.objects", "", objects, ownObjects)
	addView("sys.all_objects", "", objects, allObjects)
	addView("sys.tables", "", objects+", is_memory_optimized bit@12.0.0, durability tinyint@12.0.0, durability_desc nvarchar(60)@12.0.0", userObjects)
	addView("sys.all_columns", "", `object_id int, name sysname?, column_id int, max_length smallint, precision tinyint, scale tinyint,
		is_nullable bit?`, allColumns)
	addView("sys.partitions", "", "object_id int, index_id int, hobt_id bigint, rows bigint", partitions)
	addView("sys.configurations", "", `name nvarchar(35), value bigint, minimum bigint, maximum bigint, value_in_use bigint,
		description nvarchar(255)`, configurations)
	addView("sys.messages", "", "message_id int, language_id smallint, severity tinyint, text nvarchar(2048)", listedMessages)
	addView("sys.database_scoped_configurations", "13.0.0", "configuration_id int, name nvarchar(60), value int", scopedConfigurations)
}

// english is the language of the messages.
const english = 1033

// severities of messages that clients act on: unknown columns and objects, a missing right, databases that do not exist,
// are not readable or cannot be opened, a server shutting down, refused logins.
// Source: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
var severities = map[int]int{
	207: 16, 208: 16, 229: 14, 911: 16, 976: 14, 4060: 11, 6005: 10, 8134: 16,
	18401: 14, 18456: 14, 18470: 14, 18486: 14, 18487: 14, 18488: 14,
}

func listedMessages(v *viewContext) {
	for _, number := range slices.Sorted(maps.Keys(severities)) {
		v.add(viewRow{"message_id": number, "language_id": english, "severity": severities[number], "text": refusals[number]})
	}
}

// scopedConfigurations has only the option that rules need: DOP feedback, on by default since 2025.
func scopedConfigurations(v *viewContext) {
	if major := v.inst().version.major; major >= 16 {
		v.add(viewRow{"configuration_id": 37, "name": "DOP_FEEDBACK", "value": boolInt(major >= 17)})
	}
}

var databaseStates = map[string]int{"ONLINE": 0, "RECOVERING": 2, "OFFLINE": 6}

func databases(v *viewContext) {
	i := v.inst()
	for _, db := range i.databases {
		recovery := db.option("RECOVERY", map[bool]string{true: "SIMPLE", false: "FULL"}[db.system() && db.name != "model"])
		state := i.state(db)
		v.add(viewRow{"name": db.name, "database_id": db.id, "state": databaseStates[state], "state_desc": state, "recovery_model_desc": recovery,
			"is_published": slices.Contains(i.config.Use.Published, db.name), "is_merge_published": false, "is_subscribed": false,
			"is_distributor": false, "resource_pool_id": i.poolOf(db)})
	}
}

func filegroups(v *viewContext) {
	for _, g := range v.db.filegroups {
		row := viewRow{"name": g.Name, "type": "FG", "type_desc": "ROWS_FILEGROUP"}
		if g.MemoryOptimized {
			row["type"], row["type_desc"] = "FX", "MEMORY_OPTIMIZED_DATA_FILEGROUP"
		}
		v.add(row)
	}
}

func databaseFiles(v *viewContext) {
	for n, f := range v.db.files {
		row := viewRow{"file_id": n + 1, "type": 0, "type_desc": "ROWS", "name": f.Name, "state_desc": "ONLINE", "size": cmp.Or(f.SizeKB, newFileKB) / 8,
			"max_size": -1, "growth": 8192}
		switch {
		case f.Log:
			row["type"], row["type_desc"] = 1, "LOG"
		case v.db.isMemoryOptimized(f):
			row["type"], row["type_desc"] = 2, "FILESTREAM"
		}
		v.add(row)
	}
}

func (db *database) schemaID(t *table) int {
	if s := db.schemas[fold(t.schema)]; s != nil {
		return s.id
	}
	return 1
}

func ownObjects(v *viewContext) {
	userObjects(v)
	procedureObjects(v)
}

func userObjects(v *viewContext) {
	for _, t := range v.db.sortedTables() {
		row := viewRow{"name": t.name, "object_id": t.id, "schema_id": v.db.schemaID(t), "type": "U ", "type_desc": "USER_TABLE",
			"is_memory_optimized": t.memoryOptimized, "durability": 0, "durability_desc": "SCHEMA_AND_DATA"}
		if t.schemaOnly {
			row["durability"], row["durability_desc"] = 1, "SCHEMA_ONLY"
		}
		v.add(row)
	}
}

// systemObjects is approximately how many objects a server has: enough for scripts that make rows of them.
const systemObjects = 2400

func allObjects(v *viewContext) {
	ownObjects(v)
	shipped := func(name string, id int, kind, desc string) {
		v.add(viewRow{"name": name, "object_id": id, "schema_id": 4, "type": kind, "type_desc": desc})
	}
	known := sortedViews(v.inst().version)
	for _, view := range known {
		shipped(view.name, view.id, "V ", "VIEW")
	}
	for n := len(known); n < systemObjects; n++ {
		shipped(fmt.Sprintf("lab_system_procedure_%04d", n), -1_200_000_000-n, "P ", "SQL_STORED_PROCEDURE")
	}
}

func columnRow(id, place int, c column) viewRow {
	precision := c.typ.Precision
	if k := c.typ.Kind; k != tds.KindBit && (isInteger(k) || k == tds.KindMoney) {
		precision = asDecimalType(c.typ).Precision
	}
	return viewRow{"object_id": id, "name": c.name, "column_id": place + 1, "max_length": storageBytes(c.typ), "precision": precision,
		"scale": c.typ.Scale, "is_nullable": c.nullable}
}

func allColumns(v *viewContext) {
	for _, t := range v.db.sortedTables() {
		for n, c := range t.columns {
			v.add(columnRow(t.id, n, c.column))
		}
	}
	for _, view := range sortedViews(v.inst().version) {
		for n, c := range view.columns(v.inst()) {
			v.add(columnRow(view.id, n, c))
		}
	}
}

// partitions are only those of tables' rows: index 0 is a heap, 1 a clustered index.
func partitions(v *viewContext) {
	for _, t := range v.db.sortedTables() {
		v.add(viewRow{"object_id": t.id, "index_id": container(t) & 1, "hobt_id": container(t), "rows": t.count()})
	}
}

func configurations(v *viewContext) {
	add := func(name string, value, least, most int64) {
		v.add(viewRow{"name": name, "value": value, "minimum": least, "maximum": most, "value_in_use": value, "description": name})
	}
	add("affinity mask", 0, -2147483648, 2147483647)
	add("cost threshold for parallelism", 5, 0, 32767)
	add("max degree of parallelism", 0, 0, 32767)
	add("min memory per query (KB)", 1024, 512, 2147483647)
	add("min server memory (MB)", 0, 0, 2147483647)
	add("max server memory (MB)", 2147483647, 128, 2147483647)
	add("priority boost", 0, 0, 1)
	add("lightweight pooling", 0, 0, 1)
	add("max worker threads", 0, 128, 65535)
	add("show advanced options", 1, 0, 1)
	if inst := v.inst(); inst.version.major >= 13 {
		const name = "automatic soft-NUMA disabled"
		v.add(viewRow{"name": name, "value": boolInt(!inst.softNUMA), "minimum": 0, "maximum": 1, "value_in_use": boolInt(!inst.softNUMANow),
			"description": name})
	}
}
