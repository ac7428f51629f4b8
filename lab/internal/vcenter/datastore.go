package vcenter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

const (
	folderPath      = "/folder/"
	ticketCookie    = "vmware_cgi_ticket"
	hostsDatacenter = scenario.HostsDatacenter

	browse = "Datastore.Browse"
)

// reading are the privileges that reading a datastore's files needs ("Privilege Requirements for HTTP Access", vSphere Web
// Services SDK Programming Guide).
var reading = []string{browse, "Datastore.FileManagement"}

// tickets are service tickets that have been issued and not yet used, with what each permits.
type tickets struct {
	mu   sync.Mutex
	good map[string]string
}

func (t *tickets) issue(for_ string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.good == nil {
		t.good = map[string]string{}
	}
	id := uuid.NewString()
	t.good[id] = for_
	return id
}

// redeem reports whether a ticket permits this, once.
func (t *tickets) redeem(id, for_ string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	issued, known := t.good[id]
	delete(t.good, id)
	return known && issued == for_
}

// sessionManager issues tickets for a host's own HTTP service.
type sessionManager struct {
	*simulator.SessionManager

	lab *Server
}

// AcquireGenericServiceTicket returns a ticket for one HTTP request to a host.
func (s *sessionManager) AcquireGenericServiceTicket(ctx *simulator.Context, req *types.AcquireGenericServiceTicket) soap.HasFault {
	spec, ok := req.Spec.(*types.SessionManagerHttpServiceRequestSpec)
	if !ok {
		return &methods.AcquireGenericServiceTicketBody{Fault_: invalidArgument("spec", "only HTTP requests are served").soap()}
	}
	wanted, err := url.Parse(spec.Url)
	if err != nil {
		return &methods.AcquireGenericServiceTicketBody{Fault_: invalidArgument("spec.url", "%v", err).soap()}
	}
	if refused := s.lab.refusesTicket(ctx.Session.UserName, wanted); refused != nil {
		return &methods.AcquireGenericServiceTicketBody{Fault_: refused.soap()}
	}
	ticket := types.SessionManagerGenericServiceTicket{
		Id: s.lab.tickets.issue(spec.Method + " " + wanted.Path), HostName: s.ServiceHostName, TicketType: "HttpServiceTicket",
	}
	s.lab.endorse(&ticket)
	return &methods.AcquireGenericServiceTicketBody{Res: &types.AcquireGenericServiceTicketResponse{Returnval: ticket}}
}

func (s *Server) refusesTicket(user string, wanted *url.URL) *refusal {
	m := s.ownerOf(wanted.Path)
	missing := s.unreadable(user)
	if missing == "" && m != nil && m.fault(scenario.TicketRefused) != nil {
		missing = browse
	}
	if missing == "" {
		return nil
	}
	datacenter := s.registry.Any("Datacenter").Reference()
	return &refusal{fault: &types.NoPermission{Object: &datacenter, PrivilegeId: missing}, message: "Permission to perform this operation was denied."}
}

// unreadable names the first privilege that a user lacks for reading files.
func (s *Server) unreadable(user string) string {
	for _, privilege := range reading {
		if !s.may(user, privilege) {
			return privilege
		}
	}
	return ""
}

// may reports whether a user has a privilege.
func (s *Server) may(user, privilege string) bool {
	if user == s.administrator() {
		return true
	}
	account := s.account(user)
	return account != nil && account.Has(privilege)
}

// ownerOf is the VM in whose log directory a file of the datastore lies.
func (s *Server) ownerOf(path string) *machine {
	folder, _, _ := strings.Cut(strings.TrimPrefix(path, folderPath), "/")
	for _, m := range s.order {
		if m.logFolder() == folder {
			return m
		}
	}
	return nil
}

// serveFolder serves the datastore's files: as the host that runs a VM does, to clients with a ticket;
// and as the server of a session does, to that session. vCenter does not serve the open log of a running
// VM; its host does.
func (s *Server) serveFolder(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	status := s.admitsToFolder(r, query.Get("dcPath"))
	if status == http.StatusOK && query.Get("dsName") != datastore {
		status = http.StatusNotFound
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, folderPath)
	if !filepath.IsLocal(name) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	http.ServeFile(w, r, filepath.Join(s.storage, name))
}

func (s *Server) admitsToFolder(r *http.Request, datacenter string) int {
	if ticket, err := r.Cookie(ticketCookie); err == nil {
		method := "http" + r.Method[:1] + strings.ToLower(r.Method[1:])
		if !s.tickets.redeem(ticket.Value, method+" "+r.URL.Path) {
			return http.StatusUnauthorized
		}
		if datacenter != "" && datacenter != hostsDatacenter {
			return http.StatusNotFound
		}
		return http.StatusOK
	}
	session, err := r.Cookie(soap.SessionCookieName)
	if err != nil {
		return http.StatusUnauthorized
	}
	user := s.userOf(strings.Trim(session.Value, `"`))
	m := s.ownerOf(r.URL.Path)
	switch {
	case user == "" || s.unreadable(user) != "", m != nil && m.running.Load() && !s.config.Scenario.Standalone:
		return http.StatusUnauthorized
	case datacenter != s.config.Scenario.Datacenter():
		return http.StatusNotFound
	}
	return http.StatusOK
}

// hostFiles is the hosts' own file service, if separate from vCenter's: with a self-signed certificate,
// as on a host that vCenter's CA does not manage.
type hostFiles struct {
	address    string
	thumbprint []byte // DER of the certificate named in tickets
	http       *http.Server
}

// startHostFiles serves the hosts' files apart from vCenter, if the scenario wants that.
func (s *Server) startHostFiles() error {
	if s.config.Scenario.HostCertificate == "" {
		return nil
	}
	shown, err := selfSigned(time.Now())
	if err != nil {
		return err
	}
	said := shown
	if s.config.Scenario.HostCertificate == scenario.AnotherIsSaid {
		if said, err = selfSigned(time.Now()); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(folderPath, s.serveFolder)
	s.hostFiles = &hostFiles{
		address: listener.Addr().String(), thumbprint: said.Certificate[0], http: serveTLS(listener, mux, shown, "the hosts' file service"),
	}
	return nil
}

// endorse adds to a ticket the address of its host, and the thumbprint of its certificate.
func (s *Server) endorse(ticket *types.SessionManagerGenericServiceTicket) {
	der := s.pair.Certificate[0]
	if s.hostFiles != nil {
		ticket.HostName, der = s.hostFiles.address, s.hostFiles.thumbprint
	}
	ticket.SslThumbprint = colons(fmt.Sprintf("%X", sha1.Sum(der)))
	ticket.CertThumbprintList = []types.VirtualMachineCertThumbprint{{
		Thumbprint:    colons(fmt.Sprintf("%X", sha256.Sum256(der))),
		HashAlgorithm: string(types.VirtualMachineCertThumbprintHashAlgorithmSha256),
	}}
}

// colons puts a colon between the bytes of a thumbprint, as vSphere does.
func colons(hex string) string {
	var pairs []string
	for ; len(hex) > 2; hex = hex[2:] {
		pairs = append(pairs, hex[:2])
	}
	return strings.Join(append(pairs, hex), ":")
}

func selfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf := template("localhost.localdomain", now) // ESXi's name before it is given one
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
