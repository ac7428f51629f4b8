package tds

import (
	"net"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

// answerPrelogin answers PRELOGIN, and starts the encryption that both sides have agreed on.
func (c *connection) answerPrelogin(r *request) error {
	options, err := parsePrelogin(r.data)
	if err != nil {
		return err
	}
	encryption := agreedEncryption(options, c.server.options.Certificate != nil)
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
	login, err := parseLogin7(r.data)
	if err != nil {
		return err
	}
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
	case login.version < version73A:
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
