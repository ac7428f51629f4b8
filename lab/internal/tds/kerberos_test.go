package tds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

func TestSecurityTokenOfALogin(t *testing.T) {
	login := append(make([]byte, loginFixed), 1, 2, 3)
	binary.LittleEndian.PutUint16(login[sspiAt:], loginFixed)
	binary.LittleEndian.PutUint16(login[sspiAt+2:], 3)
	if token, err := tried(func() []byte { return sspiToken(login) }); err != nil || !bytes.Equal(token, []byte{1, 2, 3}) {
		t.Errorf("token %v, error %v", token, err)
	}
	binary.LittleEndian.PutUint16(login[sspiAt+2:], 4)
	if _, err := tried(func() []byte { return sspiToken(login) }); !errors.Is(err, errMalformed) {
		t.Errorf("a token behind the message's end: error %v", err)
	}
}

func TestNonsenseIsNoTicket(t *testing.T) {
	for _, token := range [][]byte{nil, {0x60}, {0x60, 0x0b, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2}, []byte("NTLMSSP\x00")} {
		if user, err := checkTicket(token, keytab.New()); err == nil {
			t.Errorf("%x logs in %q", token, user)
		}
	}
}
