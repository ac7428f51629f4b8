package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asProgram makes the test binary run as the lab, so that the tests run the real program.
const asProgram = "VNUMA_LAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type program struct {
	*exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr *bytes.Buffer
	all    []string
}

func start(t *testing.T, arguments ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], arguments...), stderr: new(bytes.Buffer)}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = p.stderr
	var err error
	if p.stdin, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(stdout)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	return p
}

type event struct {
	Event   string
	Reason  string
	VCenter struct {
		Host   string
		Port   int
		CAFile string `json:"ca_file"`
	}
	VMs []struct {
		Path string
		SQL  struct {
			Host string
			Port int
			User string
		}
	}
	Simulated bool
}

func (p *program) next(t *testing.T) event {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("no further line; standard error: %s", p.stderr)
	}
	p.all = append(p.all, p.lines.Text())
	var e event
	if err := json.Unmarshal(p.lines.Bytes(), &e); err != nil {
		t.Fatalf("%s: %v", p.lines.Text(), err)
	}
	return e
}

// last reads to the end and returns the last event and how the program ended.
func (p *program) last(t *testing.T) (event, error) {
	t.Helper()
	var last event
	for p.lines.Scan() {
		p.all = append(p.all, p.lines.Text())
		if err := json.Unmarshal(p.lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
	}
	return last, p.Wait()
}

func TestReadyIsTheFirstLineAndEverythingAnswers(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--state-dir", dir, "--until-stdin-closes")
	ready := p.next(t)
	if ready.Event != "ready" || !ready.Simulated || len(ready.VMs) != 1 || ready.VMs[0].SQL.User != "sa" {
		t.Fatalf("%+v", ready)
	}
	if _, err := os.Stat(ready.VCenter.CAFile); err != nil || !filepath.IsAbs(ready.VCenter.CAFile) {
		t.Errorf("CA file %s: %v", ready.VCenter.CAFile, err)
	}
	for _, port := range []int{ready.VCenter.Port, ready.VMs[0].SQL.Port} {
		connection, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Error(err)
			continue
		}
		connection.Close()
	}
	p.stdin.Close()
	if last, err := p.last(t); last.Event != "stopped" || err != nil {
		t.Errorf("ended with %+v, %v", last, err)
	}
}

func TestBadInputToSQLServerIsToldOnStandardError(t *testing.T) {
	p := start(t, "--state-dir", t.TempDir(), "--until-stdin-closes")
	port := p.next(t).VMs[0].SQL.Port
	for p.next(t).Event != "sql_listening" {
	}
	connection, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, connection) // the server closes it, in good order or not
	connection.Close()
	p.stdin.Close()
	if _, err := p.last(t); err != nil {
		t.Fatal(err)
	}
	if said := p.stderr.String(); !strings.Contains(said, "bad input") || !strings.Contains(said, "vm=") {
		t.Errorf("standard error: %q", said)
	}
}

func TestThePasswordIsPrivateKeptAndNeverTold(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	var passwords []string
	for range 2 {
		p := start(t, "--state-dir", dir, "--password-file", file, "--until-stdin-closes")
		p.next(t)
		password, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		passwords = append(passwords, strings.TrimSpace(string(password)))
		p.stdin.Close()
		if _, err := p.last(t); err != nil {
			t.Fatal(err)
		}
		if told := strings.Join(p.all, "\n") + p.stderr.String(); strings.Contains(told, passwords[0]) {
			t.Errorf("the password was told: %s", told)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if len(passwords[0]) < 16 || passwords[0] != passwords[1] {
		t.Errorf("%d characters, kept %v", len(passwords[0]), passwords[0] == passwords[1])
	}
}

func TestSIGTERMStopsCleanly(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--state-dir", dir)
	p.next(t)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if last, err := p.last(t); last.Event != "stopped" || err != nil {
		t.Errorf("ended with %+v, %v", last, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMistakesEndTheProgramWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"scenario": {[]string{"--scenario", "papre"}, 1, "built in"},
		"flag":     {[]string{"--colour"}, exitUsage, "colour"},
		"argument": {[]string{"paper"}, exitUsage, "unexpected argument"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, append(c.arguments, "--state-dir", t.TempDir())...)
			_, err := p.last(t)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(p.stderr.String(), c.says) {
				t.Errorf("%v: %s", err, p.stderr)
			}
		})
	}
}
