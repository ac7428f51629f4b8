package tds

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// freetdsLogin is a LOGIN7 message as FreeTDS 1.3 builds it.
const freetdsLogin = "d300000004000074001000000683f2f8a162000000000000e003001888ffffff360400005e0002006200020066000b007c0005" +
	"0086000900980004009c0000009c000a00b0000e0002fc00000001cc000000cc000000cc0000000000000076006d0073006100a0a5eba5f6a5f6" +
	"a5a7a5d2a5caa582a5e3a57628a548700072006f00620065003100320037002e0030002e0030002e003100cc000000750073005f0065006e0067" +
	"006c0069007300680041006400760065006e00740075007200650057006f0072006b0073000a0100000001ff"

// A real client's login is understood, its password included.
func TestLoginOfFreeTDS(t *testing.T) {
	r, err := tried(func() loginRequest { return parseLogin7(unhex(t, freetdsLogin)) })
	if err != nil {
		t.Fatal(err)
	}
	want := Login{User: "sa", Password: "Pä55 wörd😀", Database: "AdventureWorks", App: "probe", Host: "vm", Language: "us_english"}
	if r.Login != want {
		t.Errorf("login %+v", r.Login)
	}
	if r.version != version74 || r.packetSize != 4096 || r.integrated {
		t.Errorf("version %x, packets of %d, integrated %v", r.version, r.packetSize, r.integrated)
	}
}

// A login never prints its password, however it is formatted.
func TestLoginKeepsItsPassword(t *testing.T) {
	l := Login{User: "sa", Password: "secret", Host: "h"}
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		if s := fmt.Sprintf(format, l); strings.Contains(s, "secret") || !strings.Contains(s, "sa") {
			t.Errorf("%s prints %s", format, s)
		}
	}
}

// The client's packet size is limited to the protocol's bounds.
func TestPacketSizeNegotiation(t *testing.T) {
	for asked, want := range map[uint32]int{0: 4096, 1: 512, 512: 512, 8000: 8000, 32767: 32767, 32768: 32767, 1 << 31: 32767} {
		if got := negotiatePacketSize(asked); got != want {
			t.Errorf("asked %d, got %d, want %d", asked, got, want)
		}
	}
}

// A login cut anywhere, or pointing outside itself, is malformed.
func TestMalformedLogins(t *testing.T) {
	whole := unhex(t, freetdsLogin)
	for n := range loginFixed + 20 {
		if _, err := tried(func() loginRequest { return parseLogin7(whole[:n]) }); !errors.Is(err, errMalformed) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	for at, value := range map[int]byte{36: 3, 41: 0xFF, 43: 0x7F, 47: 1} {
		bad := bytes.Clone(whole)
		bad[at] = value
		if _, err := tried(func() loginRequest { return parseLogin7(bad) }); !errors.Is(err, errMalformed) {
			t.Errorf("byte %d = %d: %v", at, value, err)
		}
	}
}

// PRELOGIN is parsed, and an option that points outside its message is refused.
func TestPrelogin(t *testing.T) {
	freetds := unhex(t, "00001a00060100200001020021000c03002d00040400310001ff090000000000024d5353514c53657276657200a162000000")
	options, err := tried(func() map[byte][]byte { return parsePrelogin(freetds) })
	if err != nil || len(options) != 5 || string(options[preInstance]) != "MSSQLServer\x00" {
		t.Errorf("%v, %v", options, err)
	}
	for wish, agreed := range map[byte]byte{encryptOff: encryptOff, encryptOn: encryptOn, encryptNotSupported: encryptNotSupported} {
		freetds[32] = wish
		if options, err = tried(func() map[byte][]byte { return parsePrelogin(freetds) }); err != nil || agreedEncryption(options, true) != agreed {
			t.Errorf("a client that wishes %d: %v, %v", wish, options, err)
		}
		if agreedEncryption(options, false) != encryptNotSupported {
			t.Errorf("a client that wishes %d agreed with a server without a certificate", wish)
		}
	}
	for _, bad := range [][]byte{nil, {0, 0, 6}, {0, 0, 6, 0, 1, 0xFF}, {1, 0xFF, 0xFF, 0, 1, 0xFF}} {
		if _, err := tried(func() map[byte][]byte { return parsePrelogin(bad) }); !errors.Is(err, errMalformed) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	answer, err := tried(func() map[byte][]byte {
		return parsePrelogin(preloginReply(productVersion("16.0.4135.4"), encryptNotSupported))
	})
	if err != nil || !bytes.Equal(answer[preVersion], []byte{16, 0, 0x10, 0x27, 0, 0}) || !bytes.Equal(answer[preEncryption], []byte{2}) {
		t.Errorf("answer %v, %v", answer, err)
	}
}
