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

	day      = 24 * time.Hour
	validity = 365 * day
)

// certificate returns the server's certificate, signed by a CA of this lab's own, and the file with
// the CA's certificate. Both are kept in dir, so that a client may trust a lab across restarts, unless
// the scenario wants one that does not last.
func certificate(dir string, now time.Time, days int) (tls.Certificate, string, error) {
	ca, server := filepath.Join(dir, caFile), filepath.Join(dir, serverFile)
	lasting := time.Duration(days)*day >= validity
	if kept, ok := keptCertificate(ca, server, now); ok && lasting {
		return kept, ca, nil
	}
	caPEM, serverPEM, err := newCertificates(now, time.Duration(days)*day)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	if err := os.WriteFile(ca, caPEM, 0o644); err != nil {
		return tls.Certificate{}, "", err
	}
	if err := os.WriteFile(server, serverPEM, 0o600); err != nil {
		return tls.Certificate{}, "", err
	}
	pair, err := tls.X509KeyPair(serverPEM, serverPEM)
	return pair, ca, err
}

// keptCertificate reads an earlier lab's certificate if it still serves for a day.
func keptCertificate(ca, server string, now time.Time) (tls.Certificate, bool) {
	pair, err := tls.LoadX509KeyPair(server, server)
	if err != nil {
		return tls.Certificate{}, false
	}
	caPEM, err := os.ReadFile(ca)
	if err != nil {
		return tls.Certificate{}, false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return tls.Certificate{}, false
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(day)})
	return pair, err == nil
}

func newCertificates(now time.Time, lasts time.Duration) (caPEM, serverPEM []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	root := template("vnuma lab CA", now)
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, err
	}
	if root, err = x509.ParseCertificate(rootDER); err != nil { // now with its key identifier
		return nil, nil, err
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf := template("vnuma lab", now)
	leaf.NotBefore, leaf.NotAfter = now.Add(min(-time.Hour, lasts-day)), now.Add(lasts)
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, caKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	serverPEM = append(block("CERTIFICATE", leafDER), block("PRIVATE KEY", keyDER)...)
	return block("CERTIFICATE", rootDER), serverPEM, nil
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
