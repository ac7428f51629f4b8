// Package sqlserver is the SQL Server inside a guest of the lab: databases, dynamic management
// views that show what the guest got at power-on, and an executor for a subset of T-SQL.
package sqlserver

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/ports"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Config is constant over the reboots of an instance.
type Config struct {
	scenario.SQL

	Address        string // "127.0.0.1:0" takes a free port once and keeps it
	User, Password string // the login that is a member of sysadmin; other logins have the same password
	Cost           cost.Model
	TimeScale      float64 // 0 = never wait; 1 = statements take their modelled time
	Seed           int64
	NodePorts      int // how many further ports it reserves for mapping to NUMA nodes
	ClockAhead     time.Duration
	Scenario       string              // the simulator's name in its version
	WithoutColumns map[string][]string // a view, without its schema: the columns that it lacks
	Certificate    *tls.Certificate
	Keytab         string       // a file with which Kerberos tickets log in, each as a member of sysadmin; "" = none
	Log            *slog.Logger // bad input of clients and failures of the executor; nil = discarded
}

// onLinux reports whether it runs where there is no registry.
func (c Config) onLinux() bool { return c.Platform == "linux" }

// String leaves the password out.
func (c Config) String() string {
	return fmt.Sprintf("SQL Server %s (%s) at %s", c.Version, c.Edition, c.Address)
}

// Instance is a SQL Server; it implements guest.Service. Databases are kept from Stop to Start.
type Instance struct {
	guest.Gate // it answers neither logins nor requests during a pause

	config  Config
	version version
	address string
	extra   []int // further ports reserved for this instance

	mu          sync.Mutex // guards everything below, including the databases
	boot        guest.Boot
	topology    topology
	started     time.Time
	recovered   time.Time // when a recovery that ends has ended
	server      *tds.Server
	databases   []*database
	sessions    map[int]*Session
	logins      map[string]guest.LoginCount
	joins       int          // cross joins run since the boot
	softNUMA    bool         // automatic soft-NUMA, for the next start
	softNUMANow bool         // the same, in use since the start
	affinity    string       // of ALTER SERVER CONFIGURATION
	bound       map[int]bool // the CPUs that it allows, nil = all
	stats       []queryStat  // of cross joins since the boot, the latest last
	load        callLoad
	clock       guestClock // has its own lock
	locks       map[string]*appLock
	companies   int // of sessions since the boot
	logCache    logCache
	governor    governor
	registry    map[string]string
	ports       []listenPort
	turns       map[int]int // connections so far, by place in ports
	pool        bufferPool
	scans       map[int]int // scans of disk-based tables since the boot, by stream
	audit       guest.Audit
}

var (
	_ guest.Service = (*Instance)(nil)
	_ guest.Worker  = (*Instance)(nil)
)

// Passed is how far simulated time has moved the guest's clock since the boot.
func (i *Instance) Passed() time.Duration { return i.clock.passed() }

// New reserves the address; the port stays closed until Start.
func New(cfg Config) (*Instance, error) {
	v, err := parseVersion(cfg.Version)
	if err != nil {
		return nil, err
	}
	if err := cfg.Cost.Validate(); err != nil {
		return nil, err
	}
	address, err := ports.Reserve(cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("reserving an address for SQL Server: %w", err)
	}
	i := &Instance{config: cfg, version: v, address: address, sessions: map[int]*Session{}, logins: map[string]guest.LoginCount{}, locks: map[string]*appLock{}, softNUMA: cfg.SoftNUMA && v.major >= 13}
	i.clock.ahead = cfg.ClockAhead
	if err := i.keepPorts(); err != nil {
		return nil, err
	}
	i.registry = i.newRegistry()
	for n, name := range []string{"master", "tempdb", "model", "msdb"} {
		i.databases = append(i.databases, newDatabase(n+1, name))
	}
	if cfg.AdventureWorks {
		db := newDatabase(5, "AdventureWorks2019")
		db.populate = populateAdventureWorks
		i.databases = append(i.databases, db)
	}
	i.addUsed()
	return i, nil
}

// Addr is host:port, the same for the life of the instance.
func (i *Instance) Addr() string { return i.address }

// Start begins a boot: recovery of the databases, then the listener.
func (i *Instance) Start(b guest.Boot) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server != nil {
		return errors.New("SQL Server runs already")
	}
	i.clock.reset()
	i.boot, i.started, i.joins = b, i.clock.now().Add(-b.UpFor), 0
	i.recovered = time.Time{}
	if b.Faults.RecoversAfter > 0 {
		i.recovered = time.Now().Add(b.Faults.RecoversAfter)
	}
	i.stats, i.load = nil, callLoad{}
	i.turns, i.scans = map[int]int{}, map[int]int{}
	i.forgetProcedureStats()
	i.companies, i.logCache = 0, logCache{}
	i.locks = map[string]*appLock{}
	i.softNUMANow = i.softNUMA
	i.topology = i.layout(b)
	i.pool = newBufferPool(i.topology.memoryNodes)
	if i.bound, _ = i.cpusOf(i.affinity); len(i.usableSchedulers()) == 0 {
		i.bound = nil // an affinity to CPUs that no longer exist has no effect
	}
	i.recover()
	if b.Faults.NeverListens {
		return nil
	}
	listeners, err := i.listen()
	if err != nil {
		return err
	}
	i.server = tds.Serve(listeners, i, tds.Options{
		ServerName: i.serverName(), Version: i.config.Version, DropAfterRows: b.Faults.DropAfterRows, Log: i.config.Log,
		Certificate: i.config.Certificate, Keytab: i.config.Keytab,
	})
	return nil
}

// recover drops what does not survive a restart: tempdb, and rows of tables with durability SCHEMA_ONLY.
func (i *Instance) recover() {
	for n, db := range i.databases {
		if db.name == "tempdb" {
			i.databases[n] = newDatabase(db.id, db.name)
			continue
		}
		for _, t := range db.tables {
			if t.schemaOnly {
				t.replace(t.empty())
			}
		}
	}
}

// Stop closes the listener and every connection at once.
func (i *Instance) Stop() {
	i.Resume()
	i.mu.Lock()
	server := i.server
	i.server = nil
	i.mu.Unlock()
	if server != nil {
		server.Close()
		server.Wait()
	}
}

// NodePorts are the further ports reserved for this instance.
func (i *Instance) NodePorts() []int { return i.extra }

// keepPorts reserves further free ports, for use in a TcpPort setting.
func (i *Instance) keepPorts() error {
	for range i.config.NodePorts {
		address, err := ports.Reserve(netip.AddrPortFrom(i.listens().Addr(), 0).String())
		if err != nil {
			return fmt.Errorf("reserving a port for SQL Server: %w", err)
		}
		i.extra = append(i.extra, int(netip.MustParseAddrPort(address).Port()))
	}
	return nil
}

// listens is where the instance listens: the address comes from a listener.
func (i *Instance) listens() netip.AddrPort { return netip.MustParseAddrPort(i.address) }

func (i *Instance) port() int { return int(i.listens().Port()) }

func (i *Instance) serverName() string {
	return strings.ToUpper(i.boot.VM)
}

// Open checks a login and its database.
func (i *Instance) Open(l tds.Login) (tds.Session, *tds.Message) {
	i.Await()
	i.mu.Lock()
	defer i.mu.Unlock()
	if refusal := i.refusal(l); refusal != nil {
		i.count(l.User, func(c *guest.LoginCount) { c.Failed++ })
		return nil, refusal
	}
	name := l.Database
	if name == "" {
		name = "master"
	}
	var db *database
	if tsql.Catch(func() { db = i.database(name) }) != nil {
		return nil, &tds.Message{Number: 4060, State: 1, Class: 11,
			Text: fmt.Sprintf("Cannot open database \"%s\" requested by the login. The login failed.", name)}
	}
	i.audit.Logins++
	s := newSession(i, int(l.SPID), l, db)
	i.assign(s)
	i.sessions[s.id] = s
	i.count(l.User, func(c *guest.LoginCount) { c.Succeeded++ })
	return s, nil
}

// database finds a database that is online. The caller holds mu.
func (i *Instance) database(name string) *database {
	db := i.lookup(name)
	switch {
	case db == nil:
		panic(tsql.Errorf(911, 0, "Database '%s' does not exist. Make sure that the name is entered correctly.", name))
	case i.state(db) == "RECOVERING":
		panic(&tsql.Error{Number: 922, Class: 14, State: 1,
			Text: fmt.Sprintf("Database '%s' is being recovered. Waiting until recovery is finished.", db.name)})
	case i.state(db) == "OFFLINE":
		panic(&tsql.Error{Number: 942, Class: 14, State: 4,
			Text: fmt.Sprintf("Database '%s' cannot be opened because it is offline.", db.name)})
	}
	return db
}

func (i *Instance) lookup(name string) *database {
	for _, db := range i.databases {
		if strings.EqualFold(db.name, name) {
			return db
		}
	}
	return nil
}

// state is the state_desc of a database.
func (i *Instance) state(db *database) string {
	switch {
	case db.system():
		return "ONLINE"
	case i.boot.Faults.DatabaseRecovering && (i.recovered.IsZero() || time.Now().Before(i.recovered)):
		return "RECOVERING"
	}
	return db.option("STATE", "ONLINE")
}

// pace waits as long as the time scale makes of a modelled time.
func (i *Instance) pace(elapsed time.Duration, done <-chan struct{}) {
	wait := time.Duration(float64(elapsed) * i.config.TimeScale)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
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

func replicaStates(v *viewContext) {
	for _, name := range v.inst().config.Use.AvailabilityGroup {
		v.add(viewRow{"database_id": v.inst().lookup(name).id, "group_id": usedID, "is_local": true})
	}
}

func shippedDatabases(v *viewContext) {
	for _, name := range v.inst().config.Use.LogShipped {
		v.add(viewRow{"primary_id": usedID, "primary_database": name})
	}
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

// Messages that refuse a login, by number. The client always gets state 1.
// Source: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
var refusals = map[int]string{
	18401: "Login failed for user '%s'. Reason: Server is in script upgrade mode. Only administrator can connect at this time.",
	18456: "Login failed for user '%s'.",
	18470: "Login failed for user '%s'. Reason: The account is disabled.",
	18486: "Login failed for user '%s' because the account is currently locked out. The system administrator can unlock it.",
	18487: "Login failed for user '%s'.  Reason: The password of the account has expired.",
	18488: "Login failed for user '%s'.  Reason: The password of the account must be changed.",
}

// refusal is the message that refuses a login, nil if it may log in. The caller holds mu.
func (i *Instance) refusal(l tds.Login) *tds.Message {
	number := i.boot.Faults.RefuseLogins
	if number == 0 && !i.known(l) {
		number = 18456
	}
	if number == 0 {
		return nil
	}
	text := cmp.Or(refusals[number], refusals[18456])
	return &tds.Message{Number: int32(number), State: 1, Class: 14, Text: fmt.Sprintf(text, l.User)}
}

// count changes an account's login counts. The caller holds mu.
func (i *Instance) count(user string, change func(*guest.LoginCount)) {
	counted := i.logins[user]
	change(&counted)
	i.logins[user] = counted
}

// Logins are the logins of each account since the lab started.
func (i *Instance) Logins() map[string]guest.LoginCount {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.logins)
}
