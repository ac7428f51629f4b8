package vcenter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caFile     = "ca.pem"
	serverFile = "server.pem" // certificate and key
	sqlFile    = "sql.pem"

	day      = 24 * time.Hour
	validity = 365 * day
)

// Certificates are those of one lab, signed by its own CA.
type Certificates struct {
	CAFile string          // the CA's certificate
	Server tls.Certificate // vCenter's and its hosts'
	SQL    tls.Certificate // every SQL Server's
}

// MakeCertificates stores them in dir, so that a client can trust a lab across restarts, unless vCenter's is to be valid
// for less than a year, or SQL Server's does not name all of the guests' addresses.
func MakeCertificates(dir string, now time.Time, days int, guests ...string) (*Certificates, error) {
	lasting := time.Duration(days)*day >= validity
	if kept, err := keptCertificates(dir, now, guests); err == nil && lasting {
		return kept, nil
	}
	made, err := newCertificates(now, time.Duration(days)*day, guests)
	if err != nil {
		return nil, err
	}
	for name, content := range made {
		mode := os.FileMode(0o600)
		if name == caFile {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, mode); err != nil {
			return nil, err
		}
	}
	return readCertificates(dir)
}

// keptCertificates reads those of an earlier lab if they are valid for at least another day.
func keptCertificates(dir string, now time.Time, guests []string) (*Certificates, error) {
	kept, err := readCertificates(dir)
	if err != nil {
		return nil, err
	}
	caPEM, err := os.ReadFile(kept.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	for _, pair := range []tls.Certificate{kept.Server, kept.SQL} {
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return nil, err
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(day)}); err != nil {
			return nil, err
		}
	}
	for _, address := range guests {
		if err := kept.SQL.Leaf.VerifyHostname(address); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func readCertificates(dir string) (*Certificates, error) {
	read := &Certificates{CAFile: filepath.Join(dir, caFile)}
	var err error
	for name, pair := range map[string]*tls.Certificate{serverFile: &read.Server, sqlFile: &read.SQL} {
		file := filepath.Join(dir, name)
		if *pair, err = tls.LoadX509KeyPair(file, file); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// newCertificates makes the content of each file.
func newCertificates(now time.Time, lasts time.Duration, guests []string) (map[string][]byte, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := template("vnuma lab CA", now)
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	if root, err = x509.ParseCertificate(rootDER); err != nil { // now with its key identifier
		return nil, err
	}
	made := map[string][]byte{caFile: block("CERTIFICATE", rootDER)}

	server := template("vnuma lab", now)
	server.NotBefore, server.NotAfter = now.Add(min(-time.Hour, lasts-day)), now.Add(lasts)
	server.DNSNames = []string{"localhost"}
	sql := template("vnuma lab SQL Server", now)
	// Microsoft's driver compares an address only with the names.
	sql.DNSNames = append([]string{"localhost", "127.0.0.1"}, guests...)
	for _, address := range guests {
		sql.IPAddresses = append(sql.IPAddresses, net.ParseIP(address))
	}
	for name, leaf := range map[string]*x509.Certificate{serverFile: server, sqlFile: sql} {
		if made[name], err = signed(leaf, root, caKey); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// signed is a server's certificate with its key.
func signed(leaf, root *x509.Certificate, caKey *ecdsa.PrivateKey) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.IPAddresses = append(leaf.IPAddresses, net.IPv4(127, 0, 0, 1), net.IPv6loopback)
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(block("CERTIFICATE", leafDER), block("PRIVATE KEY", keyDER)...), nil
}

func template(name string, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the system's random source does not fail
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
