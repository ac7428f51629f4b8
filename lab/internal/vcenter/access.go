package vcenter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

func (s *Server) account(user string) *scenario.Account {
	for i, account := range s.config.Scenario.Accounts {
		if account.User == user {
			return &s.config.Scenario.Accounts[i]
		}
	}
	return nil
}

// admit sees every request before the simulator does. It may refuse the request; and it registers the lab's own
// objects in place of the simulator's, which is possible only in the session's registry.
func (s *Server) admit(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	switch method.Name {
	case "LoginByToken": // the simulator would admit anyone
		if !s.validToken(ctx) {
			return nil, &types.InvalidLogin{}
		}
	case "LoginExtensionByCertificate", "CloneSession", "ImpersonateUser":
		return nil, &types.InvalidLogin{} // the simulator would admit anyone
	}
	if ctx.Session == nil || ctx.Session.UserName == "" {
		s.running.began(ctx, method.This)
		return nil, nil
	}
	if method.Name != "Logout" {
		if away := s.fault(scenario.VCenterRestart); away != nil {
			s.restart(seconds(away.Seconds))
			panic(http.ErrAbortHandler) // a request that hits it gets no answer
		}
		if s.fault(scenario.SessionExpired) != nil {
			s.endSessions()
			denied := types.NoPermission{Object: &method.This, PrivilegeId: "System.View"}
			return nil, &types.NotAuthenticated{NoPermission: denied}
		}
	}
	if slices.Contains(beyondTheLab, method.Name) {
		return nil, &types.NotSupported{}
	}
	if account := s.account(ctx.Session.UserName); account != nil {
		if missing := missingPrivilege(method, func(privilege string) bool { return s.holds(ctx, account, privilege, method.This) }); missing != "" {
			return nil, &types.NoPermission{Object: &method.This, PrivilegeId: missing}
		}
	}
	if fault := s.refused(method); fault != nil {
		return nil, fault
	}
	if req, ok := method.Body.(*types.RetrievePropertiesEx); ok {
		if req.Options.MaxObjects == 0 {
			req.Options.MaxObjects = page
		}
		s.findByBaseType(req.SpecSet)
	}
	s.substitute(ctx, method.This)
	s.running.began(ctx, method.This)
	return nil, nil
}

// findByBaseType lets requests call a cluster a ComputeResource, as Terraform's provider does: a vCenter knows its objects by
// their value alone.
func (s *Server) findByBaseType(specs []types.PropertyFilterSpec) {
	for _, spec := range specs {
		for i := range spec.ObjectSet {
			if ref := &spec.ObjectSet[i].Obj; ref.Type == "ComputeResource" && s.registry.Get(*ref) == nil {
				ref.Type = "ClusterComputeResource"
			}
		}
	}
}

// beyondTheLab are methods by which a VM would bypass the lab's rules; esxcli, whose object makes the simulator's later
// searches fail; and HasPrivilegeOnEntity, whose answer loses its `false` elements in the simulator's encoding
// (HasPrivilegeOnEntities replaced it).
var beyondTheLab = []string{
	"CloneVM_Task", "CreateVM_Task", "Destroy_Task", "HasPrivilegeOnEntity", "InstantClone_Task", "MigrateVM_Task", "PowerOnMultiVM_Task",
	"RegisterVM_Task", "RelocateVM_Task", "RetrieveManagedMethodExecuter", "RevertToCurrentSnapshot_Task", "RevertToSnapshot_Task", "StandbyGuest",
	"SuspendVM_Task", "UnregisterVM", "MarkAsTemplate", "ImportVApp", "CustomizeVM_Task",
}

// substitute replaces the simulator's object by the lab's in this session.
func (s *Server) substitute(ctx *simulator.Context, ref types.ManagedObjectReference) {
	if ctx.Session.Registry.Get(ref) != nil {
		return
	}
	if m, ok := s.machines[ref]; ok {
		ctx.WithLock(m.VirtualMachine, func() { ctx.Session.Registry.Put(m) })
	}
	if manager, ok := s.registry.Get(ref).(*simulator.AuthorizationManager); ok {
		ctx.WithLock(manager, func() { ctx.Session.Registry.Put(&authorization{manager, s}) })
	}
	if manager, ok := s.registry.Get(ref).(*simulator.PerformanceManager); ok {
		ctx.WithLock(manager, func() { ctx.Session.Registry.Put(&performance{manager, s}) })
	}
	s.substituteReaders(ctx, ref)
	if ref == s.registry.SessionManager().Self {
		if view, ok := ctx.Session.Get(ref).(*simulator.SessionManager); ok {
			ctx.WithLock(view, func() { ctx.Session.Registry.Put(&sessionManager{view, s}) })
		}
	}
}

func (s *Server) endSessions() {
	manager := s.registry.SessionManager()
	for _, session := range s.sessions() {
		manager.TerminateSession(s.model.Service.Context, &types.TerminateSession{This: manager.Self, SessionId: []string{session.Key}})
	}
}

// sessions are those that are logged in now.
func (s *Server) sessions() []types.UserSession {
	view, ok := s.model.Service.Context.Session.Get(s.registry.SessionManager().Self).(*simulator.SessionManager)
	if !ok {
		return nil
	}
	return view.SessionList
}

// userOf is the owner of the session with that key, "" if it has ended.
func (s *Server) userOf(key string) string {
	for _, session := range s.sessions() {
		if session.Key == key {
			return session.UserName
		}
	}
	return ""
}

// reads are the prefixes of methods that need no privilege but to see the inventory.
var reads = []string{
	"Retrieve", "Query", "Find", "Fetch", "HasPrivilege", "HasUserPrivilege", "WaitForUpdates", "CheckForUpdates",
	"CancelWaitForUpdates", "CreateFilter", "CreatePropertyCollector", "CreateContainerView", "CreateListView",
	"CreateInventoryView", "ModifyListView", "ResetListView", "DestroyView", "DestroyPropertyFilter",
	"DestroyPropertyCollector", "ContinueRetrieve", "CurrentTime", "SessionIsActive", "Logout", "Login",
}

// operations are the privileges of methods that change something.
var operations = map[string]string{
	"PowerOnVM_Task":              "VirtualMachine.Interact.PowerOn",
	"PowerOffVM_Task":             "VirtualMachine.Interact.PowerOff",
	"ShutdownGuest":               "VirtualMachine.Interact.PowerOff",
	"AnswerVM":                    "VirtualMachine.Interact.AnswerQuestion",
	"RebootGuest":                 "VirtualMachine.Interact.Reset",
	"ResetVM_Task":                "VirtualMachine.Interact.Reset",
	"CreateSnapshot_Task":         "VirtualMachine.State.CreateSnapshot",
	"RemoveAllSnapshots_Task":     "VirtualMachine.State.RemoveSnapshot",
	"Rename_Task":                 "VirtualMachine.Config.Rename",
	"SetCustomValue":              "Global.SetCustomField",
	"SetField":                    "Global.SetCustomField",
	"AddCustomFieldDef":           "Global.ManageCustomFields",
	"UpdateOptions":               "Host.Config.AdvancedConfig",
	"AcquireGenericServiceTicket": "System.View",
	"CreateCollectorForEvents":    "System.View",
	"ReadNextEvents":              "System.View",
	"ReadPreviousEvents":          "System.View",
	"ResetCollector":              "System.View",
	"DestroyCollector":            "System.View",
}

// holds reports whether an account has a privilege on an object: its own, or from a role granted there.
func (s *Server) holds(ctx *simulator.Context, account *scenario.Account, privilege string, on types.ManagedObjectReference) bool {
	if account.Has(privilege) {
		return true
	}
	permitted := false
	manager := s.authorizationManager()
	ctx.WithLock(manager, func() {
		permitted = (&authorization{manager, s}).permits(s.context(), account.User, privilege, on)
	})
	return permitted
}

// missingPrivilege names the first privilege that the account lacks for this request.
func missingPrivilege(method *simulator.Method, has func(string) bool) string {
	for _, prefix := range reads {
		if strings.HasPrefix(method.Name, prefix) {
			return ""
		}
	}
	needed := []string{operations[method.Name]}
	if req, ok := method.Body.(*types.ReconfigVM_Task); ok {
		needed = reconfigurePrivileges(&req.Spec)
	} else if needed[0] == "" {
		return "System.Modify" // in the lab only the administrator has it
	}
	for _, privilege := range needed {
		if !has(privilege) {
			return privilege
		}
	}
	return ""
}

// reconfigurePrivileges follows the comments of VirtualMachineConfigSpec. For cores per socket and
// virtualNuma the reference names none; the lab requires CPUCount.
func reconfigurePrivileges(spec *types.VirtualMachineConfigSpec) []string {
	var needed []string
	need := func(condition bool, privilege string) {
		if condition && !slices.Contains(needed, privilege) {
			needed = append(needed, privilege)
		}
	}
	need(spec.Name != "", "VirtualMachine.Config.Rename")
	need(spec.Annotation != "", "VirtualMachine.Config.Annotation")
	need(spec.NumCPUs != 0 || spec.NumCoresPerSocket != nil || spec.CpuHotAddEnabled != nil ||
		spec.VirtualNuma != nil || spec.SimultaneousThreads != 0, "VirtualMachine.Config.CPUCount")
	need(spec.MemoryMB != 0 || spec.MemoryHotAddEnabled != nil, "VirtualMachine.Config.Memory")
	need(spec.CpuAffinity != nil || spec.MemoryAffinity != nil || spec.CpuAllocation != nil ||
		spec.MemoryAllocation != nil || spec.MemoryReservationLockedToMax != nil || spec.LatencySensitivity != nil,
		"VirtualMachine.Config.Resource")
	need(len(spec.ExtraConfig) > 0, "VirtualMachine.Config.AdvancedConfig")
	need(spec.RebootPowerOff != nil || spec.GuestId != "", "VirtualMachine.Config.Settings")
	if len(needed) == 0 {
		needed = append(needed, "VirtualMachine.Config.Settings")
	}
	return needed
}

// The defaults of vCenter's single sign-on for wrong passwords: see "Edit the
// vCenter Single Sign-On Lockout Policy" in vSphere Authentication.
const (
	lockAfter  = 5
	lockWithin = 180 * time.Second
	lockFor    = 300 * time.Second
)

// logins counts successful and refused logins, and locks accounts.
type logins struct {
	mu sync.Mutex
	of map[string]*loginsOf
}

type loginsOf struct {
	guest.LoginCount

	failed      []time.Time // within the interval
	lockedUntil time.Time
}

// add counts a login; it reports whether the account is admitted.
func (l *logins) add(user string, valid bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*loginsOf{}
	}
	account := l.of[user]
	if account == nil {
		account = &loginsOf{}
		l.of[user] = account
	}
	if valid && now.After(account.lockedUntil) {
		account.Succeeded++
		account.failed = nil
		return true
	}
	account.Failed++
	account.failed = append(account.failed, now)
	if len(account.failed) > lockAfter {
		account.failed = account.failed[1:]
	}
	if len(account.failed) == lockAfter && now.Sub(account.failed[0]) <= lockWithin && now.After(account.lockedUntil) {
		account.lockedUntil = now.Add(lockFor)
		account.Locked++
	}
	return false
}

func (l *logins) counts() map[string]guest.LoginCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]guest.LoginCount{}
	for user, account := range l.of {
		counts[user] = account.LoginCount
	}
	return counts
}

// validLogin knows the administrator and the scenario's accounts; all have the same password.
func (s *Server) validLogin(login *types.Login) bool {
	known := login.UserName == s.administrator() || s.account(login.UserName) != nil
	valid := known && login.Password == s.config.Password && !s.refusesLogin() // it affects only right passwords
	return s.logins.add(login.UserName, valid, time.Now())
}

// assertion is the part of a SAML token that the lab reads.
type assertion struct {
	Subject    string `xml:"Assertion>Subject>NameID"`
	Conditions struct {
		NotOnOrAfter time.Time `xml:"NotOnOrAfter,attr"`
	} `xml:"Assertion>Conditions"`
	Proof string `xml:"Assertion>Signature>SignatureValue"`
}

// validToken accepts a recent token of a known account. Its signature is the lab's own: the hexadecimal
// HMAC-SHA256, with the one password as key, of the subject and the time exactly as in the token.
func (s *Server) validToken(ctx *simulator.Context) bool {
	element, ok := ctx.Header.Security.(*simulator.Element)
	var token assertion
	if !ok {
		return false
	}
	_ = element.Decode(&token) // it misses the end of the header's element, after reading everything
	until := token.Conditions.NotOnOrAfter
	sign := hmac.New(sha256.New, []byte(s.config.Password))
	sign.Write([]byte(token.Subject + " " + until.Format(time.RFC3339)))
	proven := hmac.Equal([]byte(hex.EncodeToString(sign.Sum(nil))), []byte(token.Proof))
	known := token.Subject == s.administrator() || s.account(token.Subject) != nil
	valid := known && proven && time.Now().Before(until) && !s.refusesLogin()
	return s.logins.add(token.Subject, valid, time.Now())
}

// refusesLogin reports whether the scenario refuses this login, as if the password had been changed.
func (s *Server) refusesLogin() bool { return s.fault(scenario.AccountRefused) != nil }

// countedLogins answers with the logins at vCenter and at the SQL Server of each VM, by account, and with
// the sessions that are open at vCenter now.
func (s *Server) countedLogins(w http.ResponseWriter, _ *http.Request) {
	inside := map[string]map[string]guest.LoginCount{}
	for _, m := range s.order {
		if counter, ok := m.service.(guest.LoginCounter); ok {
			inside[m.scenario.Path()] = counter.Logins()
		}
	}
	open := map[string]int{}
	for _, session := range s.sessions() {
		open[session.UserName]++
	}
	answer(w, http.StatusOK, map[string]any{"vcenter": s.logins.counts(), "sessions": open, "sql": inside})
}
