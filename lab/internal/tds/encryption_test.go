package tds

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"math/big"
	"net"
	"testing"
	"time"
)

// clientHandshake carries a client's handshake inside PRELOGIN packets, as handshakePackets does the server's.
func clientHandshake(t *testing.T, c *client, config *tls.Config) (*tls.Conn, *handshakePackets) {
	t.Helper()
	inside := &handshakePackets{Conn: c.Conn}
	secured := tls.Client(inside, config)
	if err := secured.Handshake(); err != nil {
		t.Fatal(err)
	}
	inside.done = true
	return secured, inside
}

// trusted is a certificate for 127.0.0.1 and a client's settings that trust it alone.
func trusted(t *testing.T) (*tls.Certificate, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

// prelogin asks for encryption as FreeTDS does and gives the server's answer.
func prelogin(t *testing.T, c *client, wish byte) byte {
	t.Helper()
	asked := unhex(t, "00001a00060100200001020021000c03002d00040400310001ff090000000000024d5353514c53657276657200a162000000")
	asked[32] = wish
	c.send(packetPrelogin, asked)
	answer, err := tried(func() map[byte][]byte { return parsePrelogin(c.receive()) })
	if err != nil {
		t.Fatal(err)
	}
	return answer[preEncryption][0]
}

func echo() *script {
	return &script{batch: func(_ context.Context, text string, _ []Param, w *Writer) { w.Info(Message{Number: 1, Text: text}) }}
}

// A session that requests encryption has it, from the login to its last statement; one that requests it only for its login
// continues unencrypted after it.
func TestEncryptionAsTheClientAsks(t *testing.T) {
	for _, wish := range []byte{encryptOn, encryptOff} {
		certificate, config := trusted(t)
		server, _ := start(t, echo(), Options{Certificate: certificate})
		c := connect(t, server)
		if agreed := prelogin(t, c, wish); agreed != wish {
			t.Fatalf("agreed on %d", agreed)
		}
		secured, _ := clientHandshake(t, c, config)
		if version := secured.ConnectionState().Version; version != tls.VersionTLS12 {
			t.Errorf("TLS version %x before TDS 8", version)
		}
		inside := &client{t, secured}
		inside.send(packetLogin7, unhex(t, freetdsLogin))
		if wish == encryptOff {
			inside = c
		}
		if b := inside.receive(); !bytes.Contains(b, []byte{tokenLoginAck, 0x32}) {
			t.Fatalf("login: %x", b)
		}
	}
}

// TDS 8 starts with TLS; PRELOGIN and everything else is sent inside. A login names version 7.4, as mssql-jdbc's does, or
// 8.0, as go-mssqldb's.
func TestTDS8(t *testing.T) {
	for _, version := range []uint32{version74, version80} {
		certificate, config := trusted(t)
		server, _ := start(t, echo(), Options{Certificate: certificate})
		c := connect(t, server)
		config.NextProtos = []string{"tds/8.0"}
		secured := tls.Client(c.Conn, config)
		inside := &client{t, secured}
		prelogin(t, inside, encryptNotSupported)
		if secured.ConnectionState().NegotiatedProtocol != "tds/8.0" {
			t.Error("no ALPN")
		}
		login := unhex(t, freetdsLogin)
		binary.LittleEndian.PutUint32(login[4:], version)
		inside.send(packetLogin7, login)
		answer := binary.BigEndian.AppendUint32([]byte{tokenLoginAck, 0x32, 0, 1}, version)
		if b := inside.receive(); !bytes.Contains(b, answer) {
			t.Fatalf("login: %x", b)
		}
	}
}
