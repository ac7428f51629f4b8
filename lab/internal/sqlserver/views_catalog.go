package sqlserver

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

func init() {
	addView("sys.databases", "", `name sysname, database_id int, source_database_id int?, create_date datetime, compatibility_level tinyint,
		collation_name sysname?, user_access tinyint, user_access_desc nvarchar(60), is_read_only bit, is_auto_close_on bit,
		is_auto_shrink_on bit, state tinyint, state_desc nvarchar(60), snapshot_isolation_state tinyint,
		is_read_committed_snapshot_on bit, recovery_model tinyint, recovery_model_desc nvarchar(60), is_query_store_on bit@13.0.0,
		is_encrypted bit, replica_id uniqueidentifier?, is_memory_optimized_elevate_to_snapshot_on bit@12.0.0,
		delayed_durability int@12.0.0, delayed_durability_desc nvarchar(60)@12.0.0, log_reuse_wait tinyint,
		log_reuse_wait_desc nvarchar(60), is_published bit, is_subscribed bit, is_merge_published bit, is_distributor bit,
		resource_pool_id int?@12.0.0`, databases)
	addView("sys.schemas", "", "name sysname, schema_id int, principal_id int", schemas)
	addView("sys.filegroups", "", "name sysname, data_space_id int, type char(2), type_desc nvarchar(60), is_default bit, is_read_only bit", filegroups)
	addView("sys.database_files", "", `file_id int, type tinyint, type_desc nvarchar(60), data_space_id int, name sysname,
		physical_name nvarchar(260), state tinyint, state_desc nvarchar(60), size int, max_size int, growth int`, databaseFiles)
	addView("sys.master_files", "", `database_id int, file_id int, type tinyint, type_desc nvarchar(60), name sysname,
		physical_name nvarchar(260), state_desc nvarchar(60), size int`, masterFiles)
	objects := `name sysname, object_id int, schema_id int, parent_object_id int, type char(2), type_desc nvarchar(60),
		create_date datetime, modify_date datetime, is_ms_shipped bit`
	addView("sys.objects", "", objects, func(v *viewContext) []viewRow { return append(userObjects(v), procedureObjects(v)...) })
	addView("sys.all_objects", "", objects, allObjects)
	addView("sys.tables", "", objects+`, is_memory_optimized bit@12.0.0, durability tinyint@12.0.0, durability_desc nvarchar(60)@12.0.0,
		temporal_type tinyint@13.0.0`, func(v *viewContext) []viewRow { return userObjects(v) })
	columns := `object_id int, name sysname?, column_id int, system_type_id tinyint, user_type_id int, max_length smallint, precision tinyint,
		scale tinyint, is_nullable bit?, is_identity bit, is_computed bit`
	addView("sys.columns", "", columns, userColumns)
	addView("sys.all_columns", "", columns, allColumns)
	addView("sys.types", "", "name sysname, system_type_id tinyint, user_type_id int, max_length smallint", types)
	addView("sys.indexes", "", `object_id int, name sysname?, index_id int, type tinyint, type_desc nvarchar(60), is_unique bit,
		is_primary_key bit, is_unique_constraint bit`, indexes)
	addView("sys.hash_indexes", "12.0.0", `object_id int, name sysname?, index_id int, type tinyint, bucket_count bigint`, hashIndexes)
	addView("sys.partitions", "", "partition_id bigint, object_id int, index_id int, partition_number int, hobt_id bigint, rows bigint", partitions)
	addView("sys.dm_db_xtp_table_memory_stats", "12.0.0", `object_id int, memory_allocated_for_table_kb bigint,
		memory_used_by_table_kb bigint, memory_allocated_for_indexes_kb bigint, memory_used_by_indexes_kb bigint`, xtpMemory)
	addView("sys.configurations", "", `configuration_id int, name nvarchar(35), value bigint, minimum bigint, maximum bigint,
		value_in_use bigint, description nvarchar(255), is_dynamic bit, is_advanced bit`, configurations)
	addView("sys.database_scoped_configurations", "13.0.0", "configuration_id int, name nvarchar(60), value int", scopedConfigurations)
	addView("information_schema.tables", "", `TABLE_CATALOG nvarchar(128)?, TABLE_SCHEMA sysname, TABLE_NAME sysname,
		TABLE_TYPE varchar(10)?`, schemaTables)
	addView("information_schema.columns", "", `TABLE_CATALOG nvarchar(128)?, TABLE_SCHEMA sysname, TABLE_NAME sysname,
		COLUMN_NAME sysname?, ORDINAL_POSITION int, IS_NULLABLE varchar(3)?, DATA_TYPE nvarchar(128)?`, schemaColumns)
}

// scopedConfigurations has of all options the one that rules ask for: DOP feedback, on by default since 2025.
func scopedConfigurations(v *viewContext) []viewRow {
	major := v.inst().version.major
	if major < 16 {
		return nil
	}
	return []viewRow{{"configuration_id": 37, "name": "DOP_FEEDBACK", "value": boolInt(major >= 17)}}
}

var databaseStates = map[string]int{"ONLINE": 0, "RECOVERING": 2, "OFFLINE": 6}

func databases(v *viewContext) []viewRow {
	i := v.inst()
	var out []viewRow
	for _, db := range i.databases {
		recovery := db.option("RECOVERY", map[bool]string{true: "SIMPLE", false: "FULL"}[db.system() && db.name != "model"])
		level, err := strconv.Atoi(db.option("COMPATIBILITY_LEVEL", strconv.Itoa(i.version.major*10)))
		if err != nil {
			level = i.version.major * 10
		}
		state := i.state(db)
		access := db.option("USER_ACCESS", "MULTI_USER")
		durability := db.option("DELAYED_DURABILITY", "DISABLED")
		on := func(name string) bool { return db.option(name, "OFF") == "ON" }
		out = append(out, viewRow{"name": db.name, "database_id": db.id, "create_date": db.created, "compatibility_level": level,
			"collation_name": "SQL_Latin1_General_CP1_CI_AS", "user_access": map[string]int{"SINGLE_USER": 1, "RESTRICTED_USER": 2}[access],
			"user_access_desc": access, "is_read_only": db.option("UPDATEABILITY", "") == "READ_ONLY", "is_auto_close_on": on("AUTO_CLOSE"),
			"is_auto_shrink_on": on("AUTO_SHRINK"), "state": databaseStates[state], "state_desc": state, "snapshot_isolation_state": 0,
			"is_read_committed_snapshot_on": on("READ_COMMITTED_SNAPSHOT"), "recovery_model_desc": recovery,
			"recovery_model":    map[string]int{"FULL": 1, "BULK_LOGGED": 2, "SIMPLE": 3}[recovery],
			"is_query_store_on": db.option("QUERY_STORE", defaultQueryStore(db, i.version)) == "ON", "is_encrypted": false,
			"is_memory_optimized_elevate_to_snapshot_on": on("MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT"),
			"delayed_durability":                         map[string]int{"ALLOWED": 1, "FORCED": 2}[durability], "delayed_durability_desc": durability,
			"resource_pool_id": i.poolOf(db), "log_reuse_wait": 0, "log_reuse_wait_desc": "NOTHING", "is_published": slices.Contains(i.config.Use.Published, db.name),
			"is_subscribed": false, "is_merge_published": false, "is_distributor": false})
	}
	return out
}

// defaultQueryStore is on for new databases since 2022.
func defaultQueryStore(db *database, v version) string {
	if v.major >= 16 && !db.system() {
		return "ON"
	}
	return "OFF"
}

func schemas(v *viewContext) []viewRow {
	var out []viewRow
	for _, s := range v.db.schemas {
		out = append(out, viewRow{"name": s.name, "schema_id": s.id, "principal_id": 1})
	}
	sort.Slice(out, func(a, b int) bool { return out[a]["schema_id"].(int) < out[b]["schema_id"].(int) })
	return out
}

func filegroups(v *viewContext) []viewRow {
	var out []viewRow
	for n, g := range v.db.filegroups {
		row := viewRow{"name": g.Name, "data_space_id": n + 1, "type": "FG", "type_desc": "ROWS_FILEGROUP", "is_default": n == 0, "is_read_only": false}
		if g.MemoryOptimized {
			row["type"], row["type_desc"] = "FX", "MEMORY_OPTIMIZED_DATA_FILEGROUP"
		}
		out = append(out, row)
	}
	return out
}

func databaseFiles(v *viewContext) []viewRow {
	var out []viewRow
	for n, f := range v.db.files {
		row := viewRow{"file_id": n + 1, "type": 0, "type_desc": "ROWS", "data_space_id": 0, "name": f.Name, "physical_name": f.Path,
			"state": 0, "state_desc": "ONLINE", "size": fileKB(f) / 8, "max_size": -1, "growth": 8192}
		if f.Log {
			row["type"], row["type_desc"] = 1, "LOG"
		}
		for g, group := range v.db.filegroups {
			if strings.EqualFold(group.Name, f.Filegroup) {
				row["data_space_id"] = g + 1
				if group.MemoryOptimized {
					row["type"], row["type_desc"] = 2, "FILESTREAM"
				}
			}
		}
		out = append(out, row)
	}
	return out
}

func masterFiles(v *viewContext) []viewRow {
	var out []viewRow
	for _, db := range v.inst().databases {
		for _, row := range databaseFiles(&viewContext{run: v.run, db: db}) {
			row["database_id"] = db.id
			out = append(out, row)
		}
	}
	return out
}

func (db *database) schemaID(t *table) int {
	if s := db.schemas[fold(t.schema)]; s != nil {
		return s.id
	}
	return 1
}

func userObjects(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		row := viewRow{"name": t.name, "object_id": t.id, "schema_id": v.db.schemaID(t), "parent_object_id": 0, "type": "U ",
			"type_desc": "USER_TABLE", "create_date": t.created, "modify_date": t.created, "is_ms_shipped": false,
			"is_memory_optimized": t.memoryOptimized, "durability": 0, "durability_desc": "SCHEMA_AND_DATA", "temporal_type": 0}
		if t.schemaOnly {
			row["durability"], row["durability_desc"] = 1, "SCHEMA_ONLY"
		}
		out = append(out, row)
	}
	return out
}

// systemObjects is about how many objects a server brings along: enough for scripts that make rows of them.
const systemObjects = 2400

func allObjects(v *viewContext) []viewRow {
	out := append(userObjects(v), procedureObjects(v)...)
	shipped := func(name string, id int, kind, desc string) {
		out = append(out, viewRow{"name": name, "object_id": id, "schema_id": 4, "parent_object_id": 0, "type": kind, "type_desc": desc,
			"create_date": v.inst().started, "modify_date": v.inst().started, "is_ms_shipped": true})
	}
	known := sortedViews(v.inst().version)
	for _, view := range known {
		shipped(view.name, view.id, "V ", "VIEW")
	}
	for n := len(known); n < systemObjects; n++ {
		shipped(fmt.Sprintf("lab_system_procedure_%04d", n), -1_200_000_000-n, "P ", "SQL_STORED_PROCEDURE")
	}
	return out
}

// typeIDs are system_type_id of the types.
var typeIDs = map[string]int{"tinyint": 48, "smallint": 52, "int": 56, "bigint": 127, "bit": 104, "money": 60, "datetime": 61, "datetime2": 42,
	"date": 40, "nvarchar": 231, "nchar": 239, "uniqueidentifier": 36, "numeric": 108, "float": 62, "varbinary": 165, "xml": 241}

func columnRow(id, place int, c column, identity, computed bool) viewRow {
	kind := typeIDs[typeName(c.typ)]
	precision, scale := c.typ.Precision, c.typ.Scale
	switch c.typ.Kind {
	case tds.KindInt8:
		precision = 3
	case tds.KindInt16:
		precision = 5
	case tds.KindInt32:
		precision = 10
	case tds.KindInt64, tds.KindMoney:
		precision = 19
	}
	return viewRow{"object_id": id, "name": c.name, "column_id": place + 1, "system_type_id": kind, "user_type_id": kind,
		"max_length": storageBytes(c.typ), "precision": precision, "scale": scale, "is_nullable": c.nullable, "is_identity": identity,
		"is_computed": computed}
}

func userColumns(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		for n, c := range t.columns {
			out = append(out, columnRow(t.id, n, c.column, c.def.Identity, c.computed != nil))
		}
	}
	return out
}

func allColumns(v *viewContext) []viewRow {
	out := userColumns(v)
	for _, view := range sortedViews(v.inst().version) {
		for n, c := range view.columns(v.inst().version) {
			out = append(out, columnRow(view.id, n, c, false, false))
		}
	}
	return out
}

func types(*viewContext) []viewRow {
	var out []viewRow
	for name, id := range typeIDs {
		out = append(out, viewRow{"name": name, "system_type_id": id, "user_type_id": id, "max_length": storageBytes(simpleTypes[name])})
	}
	sort.Slice(out, func(a, b int) bool { return out[a]["user_type_id"].(int) < out[b]["user_type_id"].(int) })
	return out
}

// eachIndex visits the indexes of all tables; index 0 is the heap of a table without a clustered one.
func eachIndex(db *database, visit func(t *table, id int, x *tsql.IndexDef)) {
	for _, t := range db.sortedTables() {
		next := 2
		clustered := false
		for n := range t.indexes {
			clustered = clustered || t.indexes[n].Clustered
		}
		if !clustered {
			visit(t, 0, nil)
		}
		for n := range t.indexes {
			x := &t.indexes[n]
			if x.Clustered {
				visit(t, 1, x)
				continue
			}
			visit(t, next, x)
			next++
		}
	}
}

func indexes(v *viewContext) []viewRow {
	var out []viewRow
	eachIndex(v.db, func(t *table, id int, x *tsql.IndexDef) {
		row := viewRow{"object_id": t.id, "index_id": id, "type": 0, "type_desc": "HEAP", "is_unique": false, "is_primary_key": false,
			"is_unique_constraint": false}
		if x != nil {
			row["name"], row["is_unique"], row["is_primary_key"] = x.Name, x.Unique || x.Primary, x.Primary
			row["type"], row["type_desc"] = 2, "NONCLUSTERED"
			if x.Clustered {
				row["type"], row["type_desc"] = 1, "CLUSTERED"
			}
			if x.Hash {
				row["type"], row["type_desc"] = 7, "NONCLUSTERED HASH"
			}
		}
		out = append(out, row)
	})
	return out
}

func hashIndexes(v *viewContext) []viewRow {
	var out []viewRow
	eachIndex(v.db, func(t *table, id int, x *tsql.IndexDef) {
		if x != nil && x.Hash {
			buckets := int64(1)
			for buckets < x.BucketCount {
				buckets *= 2
			}
			out = append(out, viewRow{"object_id": t.id, "name": x.Name, "index_id": id, "type": 7, "bucket_count": buckets})
		}
	})
	return out
}

func partitions(v *viewContext) []viewRow {
	var out []viewRow
	eachIndex(v.db, func(t *table, id int, _ *tsql.IndexDef) {
		out = append(out, viewRow{"partition_id": int64(t.id)<<20 | int64(id), "object_id": t.id, "index_id": id, "partition_number": 1,
			"hobt_id": int64(t.id)<<20 | int64(id), "rows": t.count()})
	})
	return out
}

func xtpMemory(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		if t.memoryOptimized {
			kb := t.count() / 6
			out = append(out, viewRow{"object_id": t.id, "memory_allocated_for_table_kb": kb + 256, "memory_used_by_table_kb": kb,
				"memory_allocated_for_indexes_kb": kb / 4, "memory_used_by_indexes_kb": kb / 4})
		}
	}
	return out
}

func configurations(v *viewContext) []viewRow {
	var out []viewRow
	add := func(id int, name string, value, least, most int64) {
		out = append(out, viewRow{"configuration_id": id, "name": name, "value": value, "minimum": least, "maximum": most, "value_in_use": value,
			"description": name, "is_dynamic": true, "is_advanced": true})
	}
	add(1535, "affinity mask", 0, -2147483648, 2147483647)
	add(1538, "cost threshold for parallelism", 5, 0, 32767)
	add(1539, "max degree of parallelism", 0, 0, 32767)
	add(1540, "min memory per query (KB)", 1024, 512, 2147483647)
	add(1543, "min server memory (MB)", 0, 0, 2147483647)
	add(1544, "max server memory (MB)", 2147483647, 128, 2147483647)
	add(1546, "priority boost", 0, 0, 1)
	add(1569, "lightweight pooling", 0, 0, 1)
	add(503, "max worker threads", 0, 128, 65535)
	add(518, "show advanced options", 1, 0, 1)
	if inst := v.inst(); inst.version.major >= 13 {
		add(269, "automatic soft-NUMA disabled", boolInt(!inst.softNUMA), 0, 1)
		last := out[len(out)-1]
		last["value_in_use"], last["is_dynamic"] = boolInt(!inst.softNUMANow), false
	}
	return out
}

func schemaTables(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		out = append(out, viewRow{"TABLE_CATALOG": v.db.name, "TABLE_SCHEMA": t.schema, "TABLE_NAME": t.name, "TABLE_TYPE": "BASE TABLE"})
	}
	return out
}

func schemaColumns(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		for n, c := range t.columns {
			out = append(out, viewRow{"TABLE_CATALOG": v.db.name, "TABLE_SCHEMA": t.schema, "TABLE_NAME": t.name, "COLUMN_NAME": c.name,
				"ORDINAL_POSITION": n + 1, "IS_NULLABLE": map[bool]string{true: "YES", false: "NO"}[c.nullable], "DATA_TYPE": typeName(c.typ)})
		}
	}
	return out
}
