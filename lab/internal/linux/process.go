package linux

import (
	"fmt"
	"io"
	"log"
	"maps"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one running program; its clock is ahead of the real one by the simulated time.
type process struct {
	machine *Machine
	session *session
	pid     int
	args    []string
	dir     string
	env     map[string]string
	files   map[int]any // *opened, or an io.Reader or io.Writer of the connection
	cpuNode int
	memory  policy
	now     time.Duration
	depth   int // nested processes and functions around it
	parts   int // of a file it has read in this session
}

// session is all programs of one command that came over the connection.
type session struct {
	jobs       atomic.Int32 // in the background and not yet waited for
	statements atomic.Int64 // that it has run
	read       int          // number of its read in the pass; 0: it has read nothing
}

// Run runs a command as the root user's shell does, and returns its exit status.
func (m *Machine) Run(command string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	m.mu.Lock()
	p := &process{
		machine: m, session: &session{}, dir: "/root", env: map[string]string{"HOME": "/root", "PATH": "/bin", "USER": "root"},
		files: map[int]any{0: stdin, 1: stdout, 2: stderr}, memory: policy{kind: local, nodes: []int{0}}, now: m.passed,
	}
	m.begin(p)
	m.mu.Unlock()
	defer m.end(p)
	defer p.survive(&status)
	return newShell(p, []string{"sh"}).script(command)
}

// survive, deferred, turns a panic into the message and exit status of the process in which it happened.
func (p *process) survive(status *int) {
	if problem := recover(); problem != nil {
		log.Printf("vnuma-lab failed: %v\n%s", problem, debug.Stack())
		fmt.Fprintf(p.stream(2), "vnuma-lab failed inside this command: %v\n", problem)
		*status = 70
	}
}

// begin gives a process its number. The machine is locked.
func (m *Machine) begin(p *process) {
	m.nextPID++
	p.pid = m.nextPID
	m.running[p.pid] = p
}

// end takes a process off the list and advances the machine's clock to the process's.
func (m *Machine) end(p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, p.pid)
	m.passed = max(m.passed, p.now)
	m.changed.Broadcast()
}

// fork is a child with copies of everything that a child inherits.
func (p *process) fork(args []string) *process {
	child := *p
	child.depth++
	child.args, child.env, child.files = args, maps.Clone(p.env), maps.Clone(p.files)
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	p.machine.begin(&child)
	return &child
}

// Limits for scripts that start themselves.
const (
	deepest       = 200  // nested processes and functions
	mostProcesses = 1000 // processes of the machine at once
)

// exhausted reports, also on standard error, that this process may start no other.
func (p *process) exhausted() bool {
	p.machine.mu.Lock()
	tooMany := p.depth > deepest || len(p.machine.running) >= mostProcesses
	p.machine.mu.Unlock()
	if tooMany {
		fmt.Fprintln(p.stream(2), "sh: Cannot fork")
	}
	return tooMany
}

// reap ends a child that has run and sets the parent's clock to the child's.
func (p *process) reap(child *process) {
	p.now = max(p.now, child.now)
	p.parts = max(p.parts, child.parts)
	p.machine.end(child)
}

func (p *process) stream(number int) io.Writer {
	if to, ok := p.files[number].(io.Writer); ok {
		return to
	}
	return io.Discard
}

func (p *process) input() io.Reader {
	if from, ok := p.files[0].(io.Reader); ok {
		return from
	}
	return strings.NewReader("")
}

func (p *process) absolute(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(p.dir, name)
}

// lookup is the entry of a name as this process sees it, nil when there is none.
func (p *process) lookup(name string) *entry {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	return p.machine.find(p.absolute(name))
}

// open opens a file that exists for reading.
func (p *process) open(name string) (*opened, error) {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	found := p.machine.find(p.absolute(name))
	if found == nil {
		return nil, syscall.ENOENT
	}
	return p.openEntry(found), nil
}

// openEntry is an open file at its beginning. The machine is locked.
func (p *process) openEntry(found *entry) *opened {
	open := &opened{machine: p.machine, entry: found}
	if found.read != nil {
		open.content = found.read(p)
	}
	return open
}

// create opens a file for writing, creating it if missing; it is emptied unless `keep`.
func (p *process) create(name string, keep bool) (*opened, error) {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	found := p.machine.find(p.absolute(name))
	switch {
	case found == nil:
		found = &entry{mode: 0o644}
		if err := p.machine.add(p.absolute(name), found); err != nil {
			return nil, err
		}
	case found.isFolder():
		return nil, syscall.EISDIR
	case found.mode.IsRegular() && found.read == nil && !keep:
		p.machine.empty(found)
	}
	return p.openEntry(found), nil
}

// make adds an entry at a name.
func (p *process) make(name string, made *entry) error {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	return p.machine.add(p.absolute(name), made)
}

// unlink removes what is at a name.
func (p *process) unlink(name string) error {
	p.machine.mu.Lock()
	defer p.machine.mu.Unlock()
	return p.machine.remove(p.absolute(name))
}

// contents is all of a small file or of a kernel's file.
func (p *process) contents(name string) (string, error) {
	file, err := p.open(name)
	switch {
	case err != nil:
		return "", err
	case file.entry.isFolder():
		return "", syscall.EISDIR
	}
	all, err := io.ReadAll(file)
	return string(all), err
}

// missing is a shell's message for a program that does not exist.
func (p *process) missing(program string) int {
	fmt.Fprintf(p.stream(2), "sh: 1: %s: not found\n", program)
	return 127
}
