package tds

import "encoding/binary"

// PRELOGIN options.
const (
	preVersion    = 0
	preEncryption = 1
	preInstance   = 2
	preThread     = 3
	preMARS       = 4
	preEnd        = 0xFF
)

// Values of the encryption option.
const (
	encryptOff          = 0 // only the login
	encryptOn           = 1
	encryptNotSupported = 2
	encryptRequired     = 3
)

// parsePrelogin gives the options of a PRELOGIN message.
func parsePrelogin(b []byte) (map[byte][]byte, error) {
	options := map[byte][]byte{}
	for at := 0; ; at += 5 {
		if at >= len(b) {
			return nil, malformed("PRELOGIN without a terminator")
		}
		if b[at] == preEnd {
			return options, nil
		}
		if at+5 > len(b) {
			return nil, malformed("PRELOGIN option cut short")
		}
		offset, length := int(binary.BigEndian.Uint16(b[at+1:])), int(binary.BigEndian.Uint16(b[at+3:]))
		if offset+length > len(b) {
			return nil, malformed("PRELOGIN option %d outside the message", b[at])
		}
		options[b[at]] = b[offset : offset+length]
	}
}

// agreedEncryption is the reply of a server with a certificate to a client's wish: the whole session, only the
// login, or nothing if the client does not support encryption. Without a certificate there is none, and a client that
// demands it disconnects.
func agreedEncryption(options map[byte][]byte, certified bool) byte {
	wish := options[preEncryption]
	switch {
	case !certified || len(wish) == 0 || wish[0] == encryptNotSupported:
		return encryptNotSupported
	case wish[0] == encryptOff:
		return encryptOff
	}
	return encryptOn
}

// preloginReply answers a PRELOGIN: the server's version, what is encrypted, no multiple active result sets.
func preloginReply(version [4]byte, encryption byte) []byte {
	options := []struct {
		kind byte
		data []byte
	}{
		{preVersion, []byte{version[0], version[1], version[2], version[3], 0, 0}},
		{preEncryption, []byte{encryption}},
		{preInstance, []byte{0}},
		{preThread, nil},
		{preMARS, []byte{0}},
	}
	var heads, data []byte
	for _, o := range options {
		heads = append(heads, o.kind)
		heads = binary.BigEndian.AppendUint16(heads, uint16(5*len(options)+1+len(data)))
		heads = binary.BigEndian.AppendUint16(heads, uint16(len(o.data)))
		data = append(data, o.data...)
	}
	return append(append(heads, preEnd), data...)
}
