package linux

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/ports"
)

// User is the one account of every machine.
const User = "root"

const longestLogin = 30 * time.Second // from the connection to the login

// Server is a machine's SSH server: commands by `exec`, one user, one key.
type Server struct {
	guest.Gate // it answers neither logins nor commands during a pause

	address string
	config  *ssh.ServerConfig
	log     *slog.Logger
	keyFile string
	known   string

	mu      sync.Mutex
	clients *ports.Connections // since the last start
}

// Serve starts the server on a free port of the loopback interface.
func Serve(machine *Machine, folder string, log *slog.Logger) (*Server, error) {
	s, err := newServer(machine.config.Name, "127.0.0.1:0", folder, log)
	if err != nil {
		return nil, err
	}
	return s, s.listen(machine)
}

// newServer reserves an address. The client's key and the file of known hosts are written into a folder, for the user
// alone.
func newServer(name, address, folder string, log *slog.Logger) (*Server, error) {
	reserved, err := ports.Reserve(address)
	if err != nil {
		return nil, err
	}
	s := &Server{address: reserved, log: log, clients: &ports.Connections{},
		keyFile: filepath.Join(folder, name+".key"), known: filepath.Join(folder, name+".known_hosts")}
	authorized, err := clientKey(s.keyFile)
	if err != nil {
		return nil, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	hostKey, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: onlyKey(authorized), ServerVersion: "SSH-2.0-vnuma-lab"}
	s.config.AddHostKey(hostKey)
	line := fmt.Sprintf("[%s]:%d %s", s.Addr().Addr(), s.Addr().Port(), ssh.MarshalAuthorizedKey(hostKey.PublicKey()))
	return s, os.WriteFile(s.known, []byte(line), 0o600)
}

// listen serves a machine from now on; it may again after Close.
func (s *Server) listen(machine *Machine) error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = &ports.Connections{}
	s.clients.Accept(listener, s.log, func(connection net.Conn) { s.serve(connection, machine) })
	return nil
}

// clientKey makes the key with which the user logs in.
func clientKey(file string) (ssh.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "vnuma-lab")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(public)
}

var errUnknownKey = errors.New("unknown user or key")

func onlyKey(authorized ssh.PublicKey) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	return func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if who.User() != User || !bytes.Equal(key.Marshal(), authorized.Marshal()) {
			return nil, errUnknownKey
		}
		return nil, nil
	}
}

// Addr is where it listens: a reserved address.
func (s *Server) Addr() netip.AddrPort { return netip.MustParseAddrPort(s.address) }

// KeyFile is the private key of the machine's user.
func (s *Server) KeyFile() string { return s.keyFile }

// KnownHosts is the file that names the machine's own key.
func (s *Server) KnownHosts() string { return s.known }

// Close ends the server and every connection.
func (s *Server) Close() {
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	clients.Close()
	clients.Wait()
}

func (s *Server) serve(connection net.Conn, machine *Machine) {
	s.Await()
	connection.SetDeadline(time.Now().Add(longestLogin))
	_, channels, requests, err := ssh.NewServerConn(connection, s.config)
	connection.SetDeadline(time.Time{})
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.log.Info("ssh", "problem", err)
		}
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			offered.Reject(ssh.UnknownChannelType, "sessions alone")
			continue
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(machine, channel, asked)
	}
}

// session runs the one command of a channel. A terminal puts everything on the standard output, lines ended by CR LF.
func (s *Server) session(machine *Machine, channel ssh.Channel, requests <-chan *ssh.Request) {
	var terminal, runs bool
	for request := range requests {
		switch request.Type {
		case "pty-req":
			terminal = true
			request.Reply(true, nil)
		case "env":
			request.Reply(true, nil)
		case "exec":
			var asked struct{ Command string }
			accepted := ssh.Unmarshal(request.Payload, &asked) == nil && !runs
			request.Reply(accepted, nil)
			if accepted {
				runs = true
				go s.run(machine, channel, asked.Command, terminal)
			}
		default:
			request.Reply(false, nil) // the lab's machine has no interactive shell
		}
	}
}

func (s *Server) run(machine *Machine, channel ssh.Channel, command string, terminal bool) {
	s.Await()
	var stdout, stderr io.Writer = channel, channel.Stderr()
	if terminal {
		stdout = carriage{channel}
		stderr = stdout
	}
	status := machine.Run(command, channel, &whole{to: stdout}, &whole{to: stderr})
	ended := struct{ Status uint32 }{uint32(status)}
	channel.SendRequest("exit-status", false, ssh.Marshal(&ended)) // a client that has disconnected does not get it
	channel.Close()
}

// whole lets several programs write, each write undivided. A reader that has disconnected ends no program.
type whole struct {
	mu sync.Mutex
	to io.Writer
}

func (w *whole) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to.Write(data)
	return len(data), nil
}

// carriage is the output to a terminal.
type carriage struct{ to io.Writer }

func (c carriage) Write(data []byte) (int, error) {
	_, err := c.to.Write(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")))
	return len(data), err
}
