package vcenter

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const logPath = "/folder/sql16/vmware.log"

// ticket asks for a service ticket for the VM's log.
func (l *lab) ticket(manager *session.Manager) (string, error) {
	spec := types.SessionManagerHttpServiceRequestSpec{Method: "httpGet", Url: "https://esx01" + logPath + "?dsName=" + datastore}
	ticket, err := manager.AcquireGenericServiceTicket(l.ctx, &spec)
	if err != nil {
		return "", err
	}
	return ticket.Id, nil
}

// folder reads a file of the datastore with a cookie.
func (l *lab) folder(datacenter string, cookie *http.Cookie) (int, string) {
	l.t.Helper()
	query := url.Values{"dsName": {datastore}, "dcPath": {datacenter}}
	request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "https://"+l.server.Addr().String()+logPath+"?"+query.Encode(), nil)
	l.must(err)
	if cookie != nil {
		request.AddCookie(cookie)
	}
	response, err := (&http.Client{Transport: l.client.Client.DefaultTransport()}).Do(request)
	l.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	l.must(err)
	return response.StatusCode, string(text)
}

func (l *lab) sessionCookie() *http.Cookie {
	l.t.Helper()
	current, err := l.client.SessionManager.UserSession(l.ctx)
	l.must(err)
	return &http.Cookie{Name: soap.SessionCookieName, Value: current.Key}
}

// The log of a running VM is available from its host, with a ticket that is valid for one request.
func TestARunningVMsLogNeedsATicket(t *testing.T) {
	l := startLab(t, quick+"vms: [{name: sql16, cores_per_socket: 8}]")
	ticket, err := l.ticket(l.client.SessionManager)
	l.must(err)
	cookie := &http.Cookie{Name: ticketCookie, Value: ticket}
	status, text := l.folder(hostsDatacenter, cookie)
	if status != http.StatusOK || !strings.Contains(text, "numaHost: 2 virtual nodes, 2 virtual sockets, 2 physical domains") {
		t.Errorf("%d: %s", status, text)
	}
	for name, used := range map[string]*http.Cookie{"used up": cookie, "made up": {Name: ticketCookie, Value: "x"}, "none": nil} {
		if status, _ := l.folder(hostsDatacenter, used); status != http.StatusUnauthorized {
			t.Errorf("ticket %s: %d", name, status)
		}
	}
}

// vCenter serves the log of a VM that is off to every session, but not while the VM runs.
func TestVCenterServesALogAfterPowerOff(t *testing.T) {
	l := startLab(t, quick)
	if status, _ := l.folder("DC0", l.sessionCookie()); status != http.StatusUnauthorized {
		t.Errorf("while it runs: %d", status)
	}
	l.must(l.powerOff())
	if status, text := l.folder("DC0", l.sessionCookie()); status != http.StatusOK || !strings.Contains(text, "numaHost") {
		t.Errorf("%d: %s", status, text)
	}
	if status, _ := l.folder("DC9", l.sessionCookie()); status != http.StatusNotFound {
		t.Errorf("another datacenter: %d", status)
	}
}

// Without the privilege there is neither ticket nor file.
func TestTheLogNeedsAPrivilege(t *testing.T) {
	l := startLab(t, quick+"accounts: [{user: limited}, {user: browses, privileges: [Datastore.Browse]}]\nfaults: [{kind: ticket_refused}]")
	for user, want := range map[string]string{"limited": "Datastore.Browse", "browses": "Datastore.FileManagement"} {
		_, err := l.ticket(l.login(user).SessionManager)
		if missing := wantFault[types.NoPermission](t, err).PrivilegeId; missing != want {
			t.Errorf("%s misses %s", user, missing)
		}
	}
	_, err := l.ticket(l.client.SessionManager)
	wantFault[types.NoPermission](t, err) // the fault
	if _, err = l.ticket(l.client.SessionManager); err != nil {
		t.Error(err)
	}
}

// A log can be missing, or that of an earlier power-on.
func TestALogThatIsMissingOrStale(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: log_missing, boot: 2}, {kind: log_stale, boot: 3}]\nvms: [{name: sql16, cores_per_socket: 8}]")
	boot := func(cores int32) (int, string) {
		l.must(l.powerOff())
		l.must(l.reconfigure(spec{NumCoresPerSocket: &cores}))
		l.must(l.powerOn())
		ticket, err := l.ticket(l.client.SessionManager)
		l.must(err)
		return l.folder(hostsDatacenter, &http.Cookie{Name: ticketCookie, Value: ticket})
	}
	if status, _ := boot(4); status != http.StatusNotFound {
		t.Errorf("missing: %d", status)
	}
	if status, _ := boot(4); status != http.StatusNotFound {
		t.Errorf("stale after missing: %d", status)
	}
	if status, text := boot(2); status != http.StatusOK || !strings.Contains(text, "8 virtual nodes") {
		t.Errorf("%d: %s", status, text)
	}
}
