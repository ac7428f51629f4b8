package linux

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func served(t *testing.T) *Server {
	t.Helper()
	s, err := Serve(published(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Server, user, keyFile string) (*ssh.Client, error) {
	t.Helper()
	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	known, err := knownhosts.New(s.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.Dial("tcp", s.Addr().String(),
		&ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known})
	if err == nil {
		t.Cleanup(func() { client.Close() })
	}
	return client, err
}

func loggedIn(t *testing.T, s *Server) *ssh.Session {
	t.Helper()
	client, err := dial(t, s, User, s.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestACommandOverSSHHasItsOutputErrorsAndStatus(t *testing.T) {
	session := loggedIn(t, served(t))
	var stdout, stderr bytes.Buffer
	session.Stdout, session.Stderr = &stdout, &stderr
	err := session.Run("hostname; nothing; exit 3")
	var ended *ssh.ExitError
	if !errors.As(err, &ended) || ended.ExitStatus() != 3 || stdout.String() != "xeon5500\n" || stderr.String() != "sh: 1: nothing: not found\n" {
		t.Errorf("%v %q %q", err, &stdout, &stderr)
	}
}

func TestATerminalEndsLinesAsTerminalsDo(t *testing.T) {
	session := loggedIn(t, served(t))
	if err := session.RequestPty("xterm", 25, 80, nil); err != nil {
		t.Fatal(err)
	}
	if out, err := session.Output("id -u; nothing || true"); err != nil || string(out) != "0\r\nsh: 1: nothing: not found\r\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestAChannelRunsOneCommand(t *testing.T) {
	s := served(t)
	client, err := dial(t, s, User, s.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	channel, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	command := ssh.Marshal(struct{ Command string }{"read waits; id -u"})
	for _, wanted := range []bool{true, false} {
		if accepted, err := channel.SendRequest("exec", true, command); accepted != wanted || err != nil {
			t.Errorf("%v %v, wanted %v", accepted, err, wanted)
		}
	}
}

func TestTheMachineGoesOnWhenItsClientsGo(t *testing.T) {
	s := served(t)
	for range 5 {
		session := loggedIn(t, s)
		if err := session.Start("while true; do echo x; done"); err != nil {
			t.Fatal(err)
		}
		session.Close()
	}
	if out, err := loggedIn(t, s).Output("id -u"); err != nil || string(out) != "0\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestNobodyElseLogsIn(t *testing.T) {
	s, other := served(t), served(t)
	if _, err := dial(t, s, "somebody", s.KeyFile()); err == nil {
		t.Error("another user logs in")
	}
	if _, err := dial(t, s, User, other.KeyFile()); err == nil {
		t.Error("another key logs in")
	}
	if info, err := os.Stat(s.KeyFile()); err != nil || info.Mode().Perm() != 0o600 || filepath.Base(s.KeyFile()) != "xeon5500.key" {
		t.Errorf("%v %v", info, err)
	}
}
