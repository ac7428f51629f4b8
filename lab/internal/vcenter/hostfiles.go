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
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

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
