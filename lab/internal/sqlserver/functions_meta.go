package sqlserver

import (
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// meta is a function with text arguments that reads the catalogue under the instance's lock.
func meta(least, most int, t tds.Type, eval func(r *run, a []string) any) function {
	return function{least: least, most: most, args: anyText, nulls: true, result: always(t), eval: func(r *run, args []any) any {
		texts := make([]string, len(args))
		for i, v := range args {
			texts[i], _ = v.(string)
		}
		r.inst.mu.Lock()
		defer r.inst.mu.Unlock()
		return eval(r, texts)
	}}
}

var metaFunctions = map[string]function{
	"serverproperty": meta(1, 1, textType(4000), func(r *run, a []string) any { return r.inst.serverProperty(a[0]) }),
	"db_id": meta(0, 1, typeInt, func(r *run, a []string) any {
		if len(a) == 0 {
			return int64(r.s.db.id)
		}
		if db := r.inst.lookup(a[0]); db != nil {
			return int64(db.id)
		}
		return nil
	}),
	"db_name": {most: 1, args: typeInt, result: always(typeSysname), nulls: true, eval: dbName},
	"object_id": meta(1, 2, typeInt, func(r *run, a []string) any {
		kind := ""
		if len(a) > 1 {
			kind = a[1]
		}
		return r.objectID(a[0], kind)
	}),
	"schema_id": meta(0, 1, typeInt, func(r *run, a []string) any {
		name := "dbo"
		if len(a) > 0 {
			name = a[0]
		}
		if found := r.s.db.schemas[fold(name)]; found != nil {
			return int64(found.id)
		}
		return nil
	}),
	"schema_name": {most: 1, args: typeInt, result: always(typeSysname), nulls: true, eval: func(r *run, args []any) any {
		if len(args) == 0 {
			return "dbo"
		}
		for _, found := range r.s.db.schemas {
			if int64(found.id) == args[0] {
				return found.name
			}
		}
		return nil
	}},
	"col_length":         meta(2, 2, typeSmallInt, func(r *run, a []string) any { return r.columnLength(a[0], a[1]) }),
	"connectionproperty": meta(1, 1, textType(4000), func(r *run, a []string) any { return r.s.connectionProperty(a[0]) }),
	"has_dbaccess": meta(1, 1, typeInt, func(r *run, a []string) any {
		db := r.inst.lookup(a[0])
		if db == nil {
			return nil
		}
		return boolInt(r.inst.state(db) == "ONLINE")
	}),
	"has_perms_by_name": meta(3, 5, typeInt, func(r *run, a []string) any { return r.s.hasPermission(a[2]) }),
	"is_srvrolemember": meta(1, 2, typeInt, func(r *run, a []string) any {
		if !serverRoles[fold(a[0])] {
			return nil
		}
		return int64(boolInt(!r.s.limited() || fold(a[0]) == "public"))
	}),
	"rowcount_big": {result: always(typeBigInt), eval: func(r *run, _ []any) any { return r.s.rowCount }},
}

var serverRoles = map[string]bool{"sysadmin": true, "public": true, "serveradmin": true, "securityadmin": true, "setupadmin": true,
	"processadmin": true, "diskadmin": true, "dbcreator": true, "bulkadmin": true}

func dbName(r *run, args []any) any {
	r.inst.mu.Lock()
	defer r.inst.mu.Unlock()
	if len(args) == 0 || args[0] == nil {
		return r.s.db.name
	}
	for _, db := range r.inst.databases {
		if int64(db.id) == args[0].(int64) {
			return db.name
		}
	}
	return nil
}

// serverProperty is SERVERPROPERTY(name); NULL for an unknown name.
func (i *Instance) serverProperty(name string) any {
	path := `C:\Program Files\Microsoft SQL Server\MSSQL` + strings.SplitN(i.version.text, ".", 2)[0] + `.MSSQLSERVER\MSSQL\DATA\`
	switch fold(name) {
	case "productversion":
		return i.version.text
	case "productlevel":
		return i.version.level()
	case "edition":
		return i.edition()
	case "engineedition":
		return textOf(i.engineEdition())
	case "servername", "machinename", "computernamephysicalnetbios":
		return i.serverName()
	case "collation":
		return "SQL_Latin1_General_CP1_CI_AS"
	case "isxtpsupported":
		return bit(i.supportsXTP())
	case "ishadrenabled":
		return bit(len(i.config.Use.AvailabilityGroup) > 0)
	case "isclustered":
		return bit(i.config.Use.Clustered)
	case "instancedefaultdatapath", "instancedefaultlogpath":
		return path
	}
	return nil
}

// connectionProperty is CONNECTIONPROPERTY(name); NULL for an unknown name.
func (s *Session) connectionProperty(name string) any {
	switch fold(name) {
	case "auth_scheme":
		return s.authScheme()
	case "local_net_address":
		return s.login.LocalAddress
	}
	return nil
}

func textOf(n int64) string { return strconv.FormatInt(n, 10) }

// hasPermission is what HAS_PERMS_BY_NAME answers: NULL for an unknown name.
func (s *Session) hasPermission(name string) any {
	name = strings.ToUpper(name)
	granted := int64(boolInt(!isServerPermission(name) || s.may(name)))
	switch name {
	case "VIEW SERVER STATE", "ALTER SERVER STATE", "ALTER SETTINGS", "CREATE ANY DATABASE", "CONTROL SERVER", "VIEW ANY DEFINITION",
		"VIEW ANY DATABASE", "ALTER ANY DATABASE", "CONNECT SQL", "SHOWPLAN", "SELECT", "INSERT", "CONTROL", "ALTER", "VIEW DATABASE STATE":
		return granted
	case "VIEW SERVER PERFORMANCE STATE", "VIEW SERVER SECURITY STATE", "VIEW DATABASE PERFORMANCE STATE":
		if s.inst.version.major >= 16 {
			return granted
		}
	}
	return nil
}

// splitName reads a quoted, dotted name as functions accept it; nil if it is not one.
func splitName(text string) *tsql.Name {
	if isPlainName(text) {
		return &tsql.Name{Parts: strings.Split(text, ".")}
	}
	tokens, err := tsql.Lex(text)
	if err != nil {
		return nil
	}
	n := &tsql.Name{}
	for i, t := range tokens {
		switch {
		case t.Kind == tsql.EOF:
		case t.Kind == tsql.Word || t.Kind == tsql.Quoted:
			n.Parts = append(n.Parts, t.Text)
		case t.Text != ".":
			return nil
		case i > 0 && tokens[i-1].Text == "." && tokens[i-1].Kind == tsql.Symbol:
			n.Parts = append(n.Parts, "")
		}
	}
	if len(n.Parts) == 0 || len(n.Parts) > 3 {
		return nil
	}
	return n
}

// isPlainName reports whether a name has one to three parts of letters, digits and underscores, which need no lexer.
func isPlainName(text string) bool {
	parts, length := 1, 0
	for n := range len(text) {
		c := text[n] | 0x20 // to lower case
		switch {
		case c >= 'a' && c <= 'z' || text[n] == '_':
			length++
		case text[n] >= '0' && text[n] <= '9' && length > 0:
			length++
		case text[n] == '.' && length > 0:
			parts, length = parts+1, 0
		default:
			return false
		}
	}
	return length > 0 && parts <= 3
}

// objectID is OBJECT_ID(name, kind). The caller holds Instance.mu.
func (r *run) objectID(name, kind string) any {
	n := splitName(name)
	if n == nil {
		return nil
	}
	if v := views[fold(n.Qualifier(1))+"."+fold(n.Object())]; v != nil && r.inst.version.has(v.since) && (kind == "" || kind == "V") {
		return int64(v.id)
	}
	kind = strings.ToUpper(strings.TrimSpace(kind))
	if kind == "P" || kind == "" {
		if p := found(r.procedure, *n); p != nil {
			return int64(p.id)
		}
	}
	elsewhere := strings.HasPrefix(n.Object(), "#") && !strings.EqualFold(n.Qualifier(2), "tempdb") && r.s.db.name != "tempdb"
	if kind != "" && kind != "U" || elsewhere {
		return nil
	}
	if t := found(r.stored, *n); t != nil {
		return int64(t.id)
	}
	return nil
}

// columnsOf are the columns of a table or view, by object id. The caller holds Instance.mu.
func (r *run) columnsOf(id int64) []column {
	for _, v := range views {
		if int64(v.id) == id {
			return v.columns(r.inst)
		}
	}
	for _, t := range r.s.db.tables {
		if int64(t.id) == id {
			return t.plainColumns()
		}
	}
	return nil
}

func (r *run) columnLength(object, name string) any {
	id, ok := r.objectID(object, "").(int64)
	if !ok {
		return nil
	}
	for _, c := range r.columnsOf(id) {
		if strings.EqualFold(c.name, name) {
			return int64(storageBytes(c.typ))
		}
	}
	return nil
}
