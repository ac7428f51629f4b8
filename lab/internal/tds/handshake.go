package tds

import (
	"encoding/binary"
	"net"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

// answerPrelogin answers PRELOGIN, and starts the encryption that both sides have agreed on.
func (c *connection) answerPrelogin(r *request) error {
	encryption := agreedEncryption(parsePrelogin(r.data), c.server.options.Certificate != nil)
	c.release()
	if err := c.reply(preloginReply(productVersion(c.server.options.Version), encryption)); err != nil {
		return err
	}
	if encryption == encryptNotSupported || c.secured {
		return nil
	}
	c.loginOnly = encryption == encryptOff
	return c.secure()
}

// answerLogin answers LOGIN7: a session, or an error and the end of the connection.
func (c *connection) answerLogin(r *request) error {
	login := parseLogin7(r.data)
	login.SPID = c.spid
	if c.loginOnly {
		c.unsecure()
	}
	login.Encrypted = c.secured
	if local, ok := c.net.LocalAddr().(*net.TCPAddr); ok {
		login.LocalAddress, login.LocalPort = local.IP.String(), local.Port
	}
	session, refusal := c.openSession(&login)
	if refusal != nil {
		c.release()
		b := appendMessage(nil, tokenError, *refusal, c.server.options.ServerName)
		if err := c.reply(appendDone(b, tokenDone, doneError, 0, 0)); err != nil {
			return err
		}
		return &refusedError{*refusal}
	}
	c.session, c.login = session, login
	if err := c.await(0); err != nil {
		return err
	}
	c.release()
	// The reply is still sent in packets of the default size; the next response uses the negotiated one.
	if err := c.reply(loginReply(session.Database(), login, c.server.options)); err != nil {
		return err
	}
	c.out = newPacketWriter(c.wire, login.packetSize, c.spid)
	return nil
}

// openSession asks the engine, unless this server does not implement the kind of login.
func (c *connection) openSession(login *loginRequest) (Session, *Message) {
	switch {
	case login.version < version73A && login.version != version80:
		return nil, &Message{Number: 50000, State: 1, Class: 16, Line: 1,
			Text: "This server speaks TDS 7.3 and 7.4 only: set TDS_Version=7.4."}
	case login.integrated && !c.byTicket(login):
		return nil, &Message{Number: 18452, State: 1, Class: 14, Line: 1, Text: "Login failed. The login is from an " +
			"untrusted domain and cannot be used with Integrated authentication."}
	}
	login.version = min(login.version, version74)
	return c.server.engine.Open(login.Login)
}

// byTicket logs in with a Kerberos ticket, if this server can read it.
func (c *connection) byTicket(login *loginRequest) bool {
	if c.server.options.Keytab == "" {
		return false
	}
	var user string
	keys, err := keytab.Load(c.server.options.Keytab)
	if err == nil {
		user, err = checkTicket(login.token, keys)
	}
	if err != nil {
		c.log.Info("a ticket was refused", "reason", err)
		return false
	}
	login.User, login.Password, login.Kerberos = user, "", true
	return true
}

// refusedError is the end of a connection whose login was refused.
type refusedError struct{ Message }

func (e *refusedError) Error() string { return "login refused: " + e.Text }

// Protocol versions that share this wire format (LOGIN7 and LOGINACK).
const (
	version73A = 0x730A0003
	version74  = 0x74000004
	version80  = 0x08000000 // of some clients that encrypt all (strict)
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
func parseLogin7(b []byte) loginRequest {
	var out loginRequest
	if len(b) < loginFixed {
		panic(malformed("LOGIN7 of %d bytes", len(b)))
	}
	out.version = binary.LittleEndian.Uint32(b[4:])
	out.packetSize = negotiatePacketSize(binary.LittleEndian.Uint32(b[8:]))
	out.integrated = b[25]&flagSSPI != 0
	out.token = sspiToken(b)
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
			panic(malformed("LOGIN7 field at %d: %d characters at %d of %d bytes", f.at, units, offset, len(b)))
		}
		field := b[offset : offset+2*units]
		if f.veil {
			field = unveil(field)
		}
		*f.to = DecodeUTF16(field)
	}
	return out
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
func parsePrelogin(b []byte) map[byte][]byte {
	options := map[byte][]byte{}
	for in := (&input{b: b}); ; {
		kind := in.u8()
		if kind == preEnd {
			return options
		}
		offset, length := int(binary.BigEndian.Uint16(in.take(2))), int(binary.BigEndian.Uint16(in.take(2)))
		if offset+length > len(b) {
			panic(malformed("PRELOGIN option %d outside the message", kind))
		}
		options[kind] = b[offset : offset+length]
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
