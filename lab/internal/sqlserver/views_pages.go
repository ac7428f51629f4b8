package sqlserver

func init() {
	addView("sys.dm_os_buffer_descriptors", "", "database_id int?, file_id int?, allocation_unit_id bigint?, numa_node int?", bufferDescriptors)
	addView("sys.allocation_units", "", "allocation_unit_id bigint, type tinyint, type_desc nvarchar(60)?, container_id bigint", allocationUnits)
	addView("sys.dm_tcp_listener_states", "11.0.0", `ip_address nvarchar(48), port int, type tinyint, type_desc nvarchar(20), state tinyint,
		state_desc nvarchar(16), start_time datetime`, listenerStates)
}

// allocationUnit is the number of a table's rows in the database's allocation units.
func allocationUnit(t *table) int64 { return int64(t.id)<<20 | 7<<40 }

// container is the hobt_id and partition_id of a table's rows.
func container(t *table) int64 {
	id := int64(0)
	for n := range t.indexes {
		if t.indexes[n].Clustered {
			id = 1
		}
	}
	return int64(t.id)<<20 | id
}

// bufferDescriptors has one row for each table and node, with the number of its occurrences: its pages are alike
// in everything that the lab simulates.
func bufferDescriptors(v *viewContext) []viewRow {
	var out []viewRow
	for _, db := range v.inst().databases {
		if db.populate != nil {
			continue
		}
		for _, t := range db.sortedTables() {
			for node, pages := range v.inst().pool.pages[t] {
				if pages > 0 {
					out = append(out, viewRow{"database_id": db.id, "file_id": 1, "allocation_unit_id": allocationUnit(t), "numa_node": node, timesKey: pages})
				}
			}
		}
	}
	return out
}

func allocationUnits(v *viewContext) []viewRow {
	var out []viewRow
	for _, t := range v.db.sortedTables() {
		out = append(out, viewRow{"allocation_unit_id": allocationUnit(t), "type": 1, "type_desc": "IN_ROW_DATA", "container_id": container(t)})
	}
	return out
}

func listenerStates(v *viewContext) []viewRow {
	i := v.inst()
	var out []viewRow
	for _, port := range i.ports {
		out = append(out, viewRow{"ip_address": "0.0.0.0", "port": port.number, "type": 0,
			"type_desc": "TSQL", "state": 0, "state_desc": "ONLINE", "start_time": i.started})
	}
	return out
}
