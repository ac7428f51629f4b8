package linux

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// entry is one name of the file tree: a folder, a file, a device, a named pipe, or a file of the kernel.
type entry struct {
	name     string
	mode     fs.FileMode
	inMemory bool // in /dev/shm
	fixed    bool // exists from the start and cannot be removed
	gone     bool // removed, but may still be open
	children map[string]*entry

	data []byte // content written; nil for a file with a size only
	size int64

	read   func(*process) string // of the kernel's files
	write  func(string) error
	device rune // n, z or r: null, zero, urandom
}

func folder(name string, inside ...*entry) *entry {
	made := &entry{name: name, mode: fs.ModeDir | 0o755, children: map[string]*entry{}}
	for _, child := range inside {
		made.children[child.name] = child
	}
	return made
}

func text(name, says string) *entry {
	return &entry{name: name, mode: 0o444, read: func(*process) string { return says }}
}

func says(name string, what func(*process) string) *entry {
	return &entry{name: name, mode: 0o444, read: what}
}

func device(name string, kind rune) *entry {
	return &entry{name: name, mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, device: kind}
}

// setting is a kernel file with a value; `accept` converts what is written to it.
func setting(name, value string, accept func(string) (string, error)) *entry {
	made := &entry{name: name, mode: 0o644}
	made.read = func(*process) string { return value + "\n" }
	made.write = func(written string) error {
		accepted, err := accept(strings.TrimSpace(written))
		if err == nil {
			value = accepted
		}
		return err
	}
	return made
}

func (e *entry) isFolder() bool { return e.mode.IsDir() }
func (e *entry) isPipe() bool   { return e.mode&fs.ModeNamedPipe != 0 }

// fix makes everything below permanent.
func (e *entry) fix() {
	e.fixed = true
	for _, child := range e.children {
		child.fix()
	}
}

// each calls `do` for every file below.
func (e *entry) each(do func(*entry)) {
	for _, name := range e.names() {
		if child := e.children[name]; child.isFolder() {
			child.each(do)
		} else if child.mode.IsRegular() && child.read == nil {
			do(child)
		}
	}
}

func (e *entry) names() []string { return slices.Sorted(maps.Keys(e.children)) }

// find is the entry of an absolute path, nil when there is none.
func (m *Machine) find(at string) *entry {
	at = path.Clean(at)
	if number, of := strings.CutPrefix(path.Dir(at), "/proc/"); of && path.Base(at) == "cmdline" {
		if pid, err := strconv.Atoi(number); err == nil {
			return m.commandLine(pid)
		}
	}
	here := m.root
	for _, name := range strings.Split(strings.Trim(at, "/"), "/") {
		if name == "" {
			continue
		}
		if here = here.children[name]; here == nil {
			return nil
		}
	}
	return here
}

// place is the folder of a path's last name.
func (m *Machine) place(at string) (*entry, string, error) {
	above, name := path.Split(path.Clean(at))
	here := m.find(above)
	if here == nil || !here.isFolder() {
		return nil, "", syscall.ENOENT
	}
	return here, name, nil
}

// add puts a new entry at a path; it is in memory where its folder is.
func (m *Machine) add(at string, made *entry) error {
	above, name, err := m.place(at)
	switch {
	case err != nil:
		return err
	case above.children[name] != nil:
		return syscall.EEXIST
	case above.mode.Perm()&0o200 == 0:
		return syscall.EACCES
	}
	made.name, made.inMemory = name, above.inMemory
	above.children[name] = made
	return nil
}

// remove deletes an entry with its content and frees its pages.
func (m *Machine) remove(at string) error {
	above, name, err := m.place(at)
	if err != nil || above.children[name] == nil {
		return syscall.ENOENT
	}
	gone := above.children[name]
	if gone.fixed {
		return syscall.EPERM
	}
	if gone.isFolder() {
		gone.each(m.lose)
	} else {
		m.lose(gone)
	}
	delete(above.children, name)
	return nil
}

// lose empties a file that has no name left.
func (m *Machine) lose(file *entry) {
	m.empty(file)
	file.gone = file.mode.IsRegular()
}

// empty frees what a file has on the disk and in the page cache.
func (m *Machine) empty(file *entry) {
	m.memory.forget(file)
	m.writtenBytes -= len(file.data)
	file.data, file.size = nil, 0
}

// opened is an open file; copies of a descriptor share it.
type opened struct {
	machine *Machine
	entry   *entry
	at      int64
	content string // a kernel file's content when it was opened
}

func (o *opened) Read(into []byte) (int, error) {
	o.machine.mu.Lock()
	defer o.machine.mu.Unlock()
	switch {
	case o.entry.isPipe():
		return o.readPipe(into)
	case o.entry.device == 'n':
		return 0, io.EOF
	case o.entry.device != 0:
		return 0, errEndless
	case o.entry.isFolder():
		return 0, syscall.EISDIR
	case o.entry.read != nil:
		return o.copyFrom(into, []byte(o.content))
	}
	return o.copyFrom(into, o.entry.data)
}

// errEndless is what a program gets that would read all of a device.
var errEndless = errors.New("the lab has no end of it: dd and head -c say how much")

func (o *opened) copyFrom(into, all []byte) (int, error) {
	if o.at >= int64(len(all)) {
		return 0, io.EOF
	}
	n := copy(into, all[o.at:])
	o.at += int64(n)
	return n, nil
}

// longestPipe is how long a reader of a named pipe waits for a writer.
const longestPipe = 30 * time.Second

func (o *opened) readPipe(into []byte) (int, error) {
	end := time.Now().Add(o.machine.pipeWait) // before the alarm is set, so it never fires too early
	alarm := time.AfterFunc(o.machine.pipeWait, o.machine.changed.Broadcast)
	defer alarm.Stop()
	for len(o.entry.data) == 0 {
		if !time.Now().Before(end) {
			return 0, io.EOF
		}
		o.machine.changed.Wait()
	}
	n := copy(into, o.entry.data)
	o.entry.data = o.entry.data[n:]
	return n, nil
}

// How much of what was written the lab keeps, in bytes.
const (
	pipeRoom = 64 << 10 // of a named pipe (pipe(7)); a writer beyond it gets an error instead of waiting
	diskRoom = 1 << 20  // of all files together; `grow` needs none of it
)

func (o *opened) Write(data []byte) (int, error) {
	o.machine.mu.Lock()
	defer o.machine.mu.Unlock()
	switch {
	case o.entry.device != 0:
		return len(data), nil
	case o.entry.write != nil:
		if err := o.entry.write(string(data)); err != nil {
			return 0, err
		}
		return len(data), nil
	case o.entry.read != nil:
		return 0, syscall.EACCES
	case o.entry.gone:
		return len(data), nil
	case o.entry.isPipe():
		if len(o.entry.data)+len(data) > pipeRoom {
			return 0, syscall.EAGAIN
		}
		o.entry.data = append(o.entry.data, data...)
		o.machine.changed.Broadcast()
		return len(data), nil
	}
	if o.machine.writtenBytes+len(data) > diskRoom {
		return 0, syscall.ENOSPC
	}
	o.machine.writtenBytes += len(data)
	o.entry.data = append(o.entry.data, data...)
	o.entry.size += int64(len(data))
	return len(data), nil
}

// grow writes this many bytes whose values are never read.
func (o *opened) grow(bytes int64, by policy) error {
	o.machine.mu.Lock()
	defer o.machine.mu.Unlock()
	if !o.entry.mode.IsRegular() || o.entry.read != nil || o.entry.gone {
		return nil
	}
	o.entry.size += bytes
	came, err := o.machine.memory.hold(o.entry, bytes, by)
	if err != nil && o.entry.inMemory {
		o.entry.size -= bytes - came*1024
		return syscall.ENOSPC
	}
	return nil // what does not fit in the page cache is on the disk
}

// message is an error as strerror(3) words it.
func message(err error) string {
	said := err.Error()
	return strings.ToUpper(said[:1]) + said[1:]
}

func (p *process) complain(program string, what string, err error) int {
	fmt.Fprintf(p.stream(2), "%s: %s: %s\n", program, what, message(err))
	return 1
}
