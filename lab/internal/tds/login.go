package tds

import "encoding/binary"

// Protocol versions that share this wire format (LOGIN7 and LOGINACK).
const (
	version73A = 0x730A0003
	version74  = 0x74000004
)

const (
	loginFixed    = 94   // bytes before the variable part
	flagSSPI      = 0x80 // OptionFlags2: integrated security
	maxLoginField = 128  // characters of a name or password
)

// loginRequest is a LOGIN7 message.
type loginRequest struct {
	Login
	version    uint32
	packetSize int // as negotiated
	integrated bool
	token      []byte // with integrated security
}

// parseLogin7 reads a LOGIN7 message and decodes the password.
func parseLogin7(b []byte) (loginRequest, error) {
	var out loginRequest
	if len(b) < loginFixed {
		return out, malformed("LOGIN7 of %d bytes", len(b))
	}
	out.version = binary.LittleEndian.Uint32(b[4:])
	out.packetSize = negotiatePacketSize(binary.LittleEndian.Uint32(b[8:]))
	out.integrated = b[25]&flagSSPI != 0
	var err error
	if out.token, err = sspiToken(b); err != nil {
		return out, err
	}
	for _, f := range []struct {
		at   int // of the offset and length pair
		to   *string
		veil bool
	}{
		{36, &out.Host, false}, {40, &out.User, false}, {44, &out.Password, true}, {48, &out.App, false},
		{64, &out.Language, false}, {68, &out.Database, false},
	} {
		offset, units := int(binary.LittleEndian.Uint16(b[f.at:])), int(binary.LittleEndian.Uint16(b[f.at+2:]))
		if units == 0 {
			continue
		}
		if units > maxLoginField || offset < loginFixed-8 || offset+2*units > len(b) {
			return out, malformed("LOGIN7 field at %d: %d characters at %d of %d bytes", f.at, units, offset, len(b))
		}
		field := b[offset : offset+2*units]
		if f.veil {
			field = unveil(field)
		}
		*f.to = DecodeUTF16(field)
	}
	return out, nil
}

// unveil reverses the obfuscation of a password: the client swapped the nibbles of each byte, then XORed it with 0xA5.
func unveil(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		c ^= 0xA5
		out[i] = c<<4 | c>>4
	}
	return out
}

// negotiatePacketSize is the size both sides use after the login: 0 requests the server's default.
func negotiatePacketSize(asked uint32) int {
	if asked == 0 {
		return defaultPacketSize
	}
	return int(min(max(asked, minPacketSize), maxPacketSize))
}
