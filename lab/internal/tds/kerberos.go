package tds

import (
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

const (
	sspiAt      = 78 // the token's offset and length in LOGIN7
	sspiLongAt  = 82 // its length, if two bytes are too few
	allowedSkew = 5 * time.Minute
)

// The token identifier of a Kerberos request in GSS-API (RFC 4121 4.1), and the mechanism.
var (
	tokenAPReq = [2]byte{1, 0}
	kerberos5  = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}
)

// sspiToken is the security token of a LOGIN7 message, nil when it has none.
// Source: [MS-TDS] 2.2.6.4.
func sspiToken(b []byte) []byte {
	offset, length := int(binary.LittleEndian.Uint16(b[sspiAt:])), int(binary.LittleEndian.Uint16(b[sspiAt+2:]))
	if length == 0xFFFF {
		if long := int(binary.LittleEndian.Uint32(b[sspiLongAt:])); long > 0 {
			length = long
		}
	}
	if length == 0 {
		return nil
	}
	if offset < loginFixed-8 || length < 0 || offset+length > len(b) {
		panic(malformed("LOGIN7 with a security token of %d bytes at %d of %d", length, offset, len(b)))
	}
	return b[offset : offset+length]
}

// checkTicket returns the login, EXAMPLE\svc, of a raw Kerberos token, as sent by FreeTDS and Microsoft's driver. The
// server sends no SSPI token (0xED) in reply: FreeTDS 1.3.17 and msodbcsql 18.6 logged in without one, and with one
// msodbcsql 18.6 kept waiting. The reason is unknown, and so is what a real SQL Server sends.
func checkTicket(token []byte, keys *keytab.Keytab) (string, error) {
	var mechanism asn1.ObjectIdentifier
	rest, err := asn1.UnmarshalWithParams(token, &mechanism, "application,explicit,tag:0")
	if err != nil {
		return "", fmt.Errorf("no GSS-API token: %w", err)
	}
	if !mechanism.Equal(kerberos5) || len(rest) < 2 || [2]byte(rest) != tokenAPReq {
		return "", fmt.Errorf("no Kerberos request but mechanism %v", mechanism)
	}
	var request messages.APReq
	if err := request.Unmarshal(rest[2:]); err != nil {
		return "", err
	}
	if ok, err := request.Verify(keys, allowedSkew, types.HostAddress{}, nil); err != nil || !ok {
		return "", fmt.Errorf("the ticket for %s is not valid: %w", request.Ticket.SName.PrincipalNameString(), err)
	}
	domain, _, _ := strings.Cut(request.Ticket.DecryptedEncPart.CRealm, ".")
	return domain + `\` + request.Ticket.DecryptedEncPart.CName.PrincipalNameString(), nil
}
