package sqlserver

import (
	"slices"
)

// Use is what else a server is used for, visible only as rows in views.
type Use struct {
	AvailabilityGroup []string // databases in one
	Hadr              bool     // availability groups are enabled, whether or not there is one
	Clustered         bool
	Published         []string // databases that replication publishes
	LogShipped        []string // primary databases of log shipping
	Backups           []string // databases being backed up
	Sessions          []string // programs of other people's sessions
}

func init() {
	// In msdb on a real server; in the lab a view is visible from every database.
	addView("dbo.log_shipping_primary_databases", "", "primary_id uniqueidentifier, primary_database sysname", shippedDatabases)
	addView("dbo.log_shipping_secondary_databases", "", "secondary_database sysname, secondary_id uniqueidentifier", none)
}

// addUsed creates the databases that Use names and that do not exist yet.
func (i *Instance) addUsed() {
	use := i.config.Use
	for _, name := range slices.Concat(use.AvailabilityGroup, use.Published, use.LogShipped, use.Backups) {
		if i.lookup(name) == nil {
			i.databases = append(i.databases, newDatabase(len(i.databases)+1, name))
		}
	}
}

func replicaStates(v *viewContext) []viewRow {
	var out []viewRow
	for _, name := range v.inst().config.Use.AvailabilityGroup {
		out = append(out, viewRow{"database_id": v.inst().lookup(name).id, "group_id": usedID, "is_local": true})
	}
	return out
}

func shippedDatabases(v *viewContext) []viewRow {
	var out []viewRow
	for _, name := range v.inst().config.Use.LogShipped {
		out = append(out, viewRow{"primary_id": usedID, "primary_database": name})
	}
	return out
}

// usedID is a placeholder for the identifier of a group or a shipped database.
var usedID = [16]byte{1}

// otherSession is the id of a session that no client of the lab has.
func otherSession(n int) int { return 30000 + n }

func bit(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
