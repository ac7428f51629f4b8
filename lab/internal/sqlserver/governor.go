package sqlserver

import (
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

func init() {
	addView("sys.resource_governor_configuration", "", "classifier_function_id int, is_enabled bit", governorConfiguration)
	addView("sys.dm_resource_governor_configuration", "", "classifier_function_id int, is_reconfiguration_pending bit", governorInUse)
	pools := `pool_id int, name sysname, min_cpu_percent int, max_cpu_percent int, min_memory_percent int, max_memory_percent int`
	addView("sys.resource_governor_resource_pools", "", pools, func(v *viewContext) { poolRows(v, v.inst().governor.stored()) })
	addView("sys.dm_resource_governor_resource_pools", "", pools, func(v *viewContext) { poolRows(v, v.inst().governor.inUse) })
}

// governor is the Resource Governor: pools as they are stored, and as they are in use since the last RECONFIGURE.
type governor struct {
	enabled bool
	own     []pool // in addition to internal and default
	inUse   []pool
	last    int
}

type pool struct {
	id                   int
	name                 string
	minMemory, maxMemory int64
}

// shippedPools are the server's own; ids of users' pools start at 256.
var shippedPools = []pool{{1, "internal", 0, 100}, {2, "default", 0, 100}}

const firstPool = 256

func (g *governor) stored() []pool { return slices.Concat(shippedPools, g.own) }

// alter is ALTER RESOURCE GOVERNOR. RECONFIGURE activates the stored pools, and the governor.
func (g *governor) alter(action string) {
	if g.enabled = action == "RECONFIGURE"; g.enabled {
		g.inUse = g.stored()
	}
}

// hasGovernor reports whether the edition has it: only those with Enterprise's features do.
func (i *Instance) hasGovernor() bool { return i.engineEdition() == 3 }

// supportsXTP reports whether there are memory-optimised tables: since 2014 with Enterprise's features, in all since 2016 SP1.
func (i *Instance) supportsXTP() bool {
	return i.version.major >= 12 && i.engineEdition() == 3 || i.version.has("13.0.4001")
}

// makePool is CREATE or ALTER RESOURCE POOL. The caller holds mu.
func (i *Instance) makePool(st *tsql.ResourcePool) {
	if !i.hasGovernor() {
		panic(tsql.Errorf(10920, st.Line(), "Cannot CREATE RESOURCE POOL '%s'. Resource Governor is not available in this edition of SQL Server.", st.Name))
	}
	g := &i.governor
	at := slices.IndexFunc(g.own, func(p pool) bool { return strings.EqualFold(p.name, st.Name) })
	switch {
	case st.Alter && at < 0:
		panic(tsql.Errorf(10904, st.Line(), "Cannot alter resource pool '%s', because it does not exist.", st.Name))
	case !st.Alter && at >= 0:
		panic(tsql.Errorf(10905, st.Line(), "The resource pool '%s' already exists.", st.Name))
	case !st.Alter:
		g.last++
		at = len(g.own)
		g.own = append(slices.Clone(g.own), pool{id: firstPool + g.last - 1, name: st.Name, maxMemory: 100})
	}
	p := &g.own[at]
	if n, ok := st.Options["MIN_MEMORY_PERCENT"]; ok {
		p.minMemory = n
	}
	if n, ok := st.Options["MAX_MEMORY_PERCENT"]; ok {
		p.maxMemory = n
	}
}

// dropPool is DROP RESOURCE POOL. The caller holds mu.
func (i *Instance) dropPool(name string, line int) {
	g := &i.governor
	at := slices.IndexFunc(g.own, func(p pool) bool { return strings.EqualFold(p.name, name) })
	if at < 0 {
		panic(&tsql.Error{Number: 3701, Class: 11, State: 5, Line: line, Text: "Cannot drop the resource pool '" + name +
			"', because it does not exist or you do not have permission."})
	}
	g.own = slices.Delete(slices.Clone(g.own), at, at+1)
}

// poolOf is the pool that a database is bound to, nil for none.
func (i *Instance) poolOf(db *database) any {
	if db.pool == 0 {
		return nil
	}
	return db.pool
}

// bindPool is sp_xtp_bind_db_resource_pool @database_name, @pool_name; it takes effect when the database next comes online.
func bindPool(b *batch, args []argument) {
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	database, name := textArgument(args, 0), textArgument(args, 1)
	db := i.lookup(database)
	at := slices.IndexFunc(i.governor.inUse, func(p pool) bool { return strings.EqualFold(p.name, name) })
	switch {
	case db == nil:
		panic(tsql.Errorf(911, 0, "Database '%s' does not exist. Make sure that the name is entered correctly.", database))
	case at < 0:
		panic(tsql.Errorf(41837, 0, "The resource pool '%s' does not exist, or Resource Governor has not been reconfigured.", name))
	}
	db.pool = i.governor.inUse[at].id
}

func unbindPool(b *batch, args []argument) {
	b.s.inst.mu.Lock()
	defer b.s.inst.mu.Unlock()
	db := b.s.inst.lookup(textArgument(args, 0))
	if db == nil || db.pool == 0 {
		panic(tsql.Errorf(41839, 0, "Database '%s' is not bound to a resource pool.", textArgument(args, 0)))
	}
	db.pool = 0
}

func textArgument(args []argument, n int) string {
	text, _ := args[n].value.(string)
	return text
}

func governorConfiguration(v *viewContext) {
	v.add(viewRow{"classifier_function_id": 0, "is_enabled": v.inst().governor.enabled})
}

func governorInUse(v *viewContext) {
	g := v.inst().governor
	pending := g.enabled && !slices.Equal(g.inUse, g.stored()) || !g.enabled && len(g.own) > 0
	v.add(viewRow{"classifier_function_id": 0, "is_reconfiguration_pending": pending})
}

func poolRows(v *viewContext, pools []pool) {
	for _, p := range pools {
		v.add(viewRow{"pool_id": p.id, "name": p.name, "min_cpu_percent": 0, "max_cpu_percent": 100,
			"min_memory_percent": p.minMemory, "max_memory_percent": p.maxMemory})
	}
}
