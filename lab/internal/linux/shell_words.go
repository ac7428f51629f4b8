package linux

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// redirect opens a statement's redirections.
func (s *shell) redirect(all []*syntax.Redirect) error {
	for _, one := range all {
		number := 1
		if one.Op == syntax.RdrIn || one.Op == syntax.RdrInOut || one.Op == syntax.DplIn {
			number = 0
		}
		if one.N != nil {
			number, _ = strconv.Atoi(one.N.Value)
		}
		file, err := s.redirected(one)
		if err != nil {
			return err
		}
		if file == nil {
			delete(s.files, number)
			continue
		}
		s.files[number] = file
	}
	return nil
}

// redirected is what a redirection opens, nil for one that closes.
func (s *shell) redirected(one *syntax.Redirect) (any, error) {
	name := s.literal(one.Word)
	cannot := func(what string, err error, missing string) error {
		said := message(err)
		if errors.Is(err, syscall.ENOENT) {
			said = missing
		}
		return fmt.Errorf("cannot %s %s: %s", what, name, said)
	}
	switch one.Op {
	case syntax.DplOut, syntax.DplIn:
		if name == "-" {
			return nil, nil
		}
		number, err := strconv.Atoi(name)
		if file, open := s.files[number]; err == nil && open {
			return file, nil
		}
		return nil, fmt.Errorf("%s: Bad file descriptor", name)
	case syntax.RdrIn:
		file, err := s.open(name)
		if err != nil {
			return nil, cannot("open", err, "No such file")
		}
		return file, nil
	case syntax.RdrOut, syntax.ClbOut, syntax.AppOut, syntax.RdrInOut:
		file, err := s.create(name, one.Op == syntax.AppOut || one.Op == syntax.RdrInOut)
		if err != nil {
			return nil, cannot("create", err, "Directory nonexistent")
		}
		return file, nil
	}
	return nil, fmt.Errorf("the lab's shell has no redirection %s", one.Op)
}

// call runs a simple command.
func (s *shell) call(c *syntax.CallExpr) {
	s.substituted = 0
	words := s.fields(c.Args)
	if s.leaving {
		return
	}
	if len(words) == 0 {
		s.assign(c.Assigns)
		if !s.leaving {
			s.status = s.substituted
		}
		return
	}
	if len(c.Assigns) > 0 {
		s.fail("sh: the lab's shell has no variables for one command")
		return
	}
	if body := s.functions[words[0]]; body != nil {
		s.function(body, words)
		return
	}
	if run := builtins[words[0]]; run != nil {
		run(s, words[1:])
		return
	}
	s.status = s.start(words)
}

func (s *shell) function(body *syntax.Stmt, words []string) {
	if s.exhausted() {
		s.status, s.leaving = 2, true
		return
	}
	outer := s.parameters
	s.parameters = append([]string{outer[0]}, words[1:]...)
	s.depth++
	s.statement(body)
	s.depth--
	s.parameters = outer
}

// assign sets variables; its status is that of the last substitution in them.
func (s *shell) assign(all []*syntax.Assign) {
	for _, one := range all {
		value := ""
		if one.Value != nil {
			value = s.literal(one.Value)
		}
		s.let(one.Name.Value, value)
	}
}

// expansions configures how this shell's words expand.
func (s *shell) expansions() *expand.Config {
	return &expand.Config{
		Env: environment{s},
		CmdSubst: func(to io.Writer, c *syntax.CmdSubst) error {
			var said gathered
			s.substituted = s.child(c.Stmts, map[int]any{1: &said})
			if said.tooMuch {
				return errTooMuch
			}
			_, err := said.bytes.WriteTo(to)
			return err
		},
		ReadDir2: s.readFolder,
	}
}

func (s *shell) fields(words []*syntax.Word) (found []string) {
	s.expand(func() (err error) {
		found, err = expand.Fields(s.expansions(), words...)
		return err
	})
	return found
}

func (s *shell) literal(word *syntax.Word) (found string) {
	s.expand(func() (err error) {
		found, err = expand.Literal(s.expansions(), word)
		return err
	})
	return found
}

// expand ends the script with a message when words do not expand. The library panics on some of them.
func (s *shell) expand(words func() error) {
	defer func() {
		if problem := recover(); problem != nil {
			s.fail("sh: %v", problem)
		}
	}()
	if err := words(); err != nil {
		s.fail("sh: %v", err)
	}
}

func (s *shell) readFolder(name string) ([]fs.DirEntry, error) {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	found := s.machine.find(s.absolute(name))
	switch {
	case found == nil:
		return nil, fs.ErrNotExist
	case !found.isFolder():
		return nil, syscall.ENOTDIR
	}
	var all []fs.DirEntry
	for _, child := range found.names() {
		all = append(all, listed{found.children[child]})
	}
	return all, nil
}

var errNotListed = errors.New("the lab has no more of it")

// listed is an entry in a folder's listing.
type listed struct{ *entry }

func (l listed) Name() string               { return l.name }
func (l listed) IsDir() bool                { return l.isFolder() }
func (l listed) Type() fs.FileMode          { return l.mode.Type() }
func (l listed) Info() (fs.FileInfo, error) { return nil, errNotListed }

// environment is a shell's variables and special parameters for the expansion.
type environment struct{ *shell }

// Get is a variable's value.
func (e environment) Get(name string) expand.Variable {
	if name == "@" || name == "*" {
		return expand.Variable{Set: len(e.parameters) > 1, Kind: expand.Indexed, List: e.parameters[1:]}
	}
	value, set := e.parameter(name)
	return expand.Variable{Set: set, Kind: expand.String, Str: value}
}

// Set is what an expansion assigns.
func (e environment) Set(name string, value expand.Variable) error {
	e.let(name, value.String())
	return nil
}

// longestValue is the longest word that may be passed to a program (MAX_ARG_STRLEN of Linux).
const longestValue = 128 << 10

// let gives a variable its value.
func (s *shell) let(name, value string) {
	if len(value) > longestValue {
		s.fail("sh: %s: Argument list too long", name)
		return
	}
	s.env[name] = value
}

// Each yields every variable.
func (e environment) Each(yield func(string, expand.Variable) bool) {
	for name := range e.env {
		if !yield(name, e.Get(name)) {
			return
		}
	}
}

// homeOf starts the name under which the library asks for another user's home, before it asks the real machine.
const homeOf = "HOME "

func (e environment) parameter(name string) (string, bool) {
	if user, asked := strings.CutPrefix(name, homeOf); asked {
		return map[bool]string{true: "/root", false: "~" + user}[user == User], true
	}
	switch name {
	case "$":
		return strconv.Itoa(e.pid), true
	case "?":
		return strconv.Itoa(e.status), true
	case "#":
		return strconv.Itoa(len(e.parameters) - 1), true
	}
	if number, err := strconv.Atoi(name); err == nil {
		if number < len(e.parameters) {
			return e.parameters[number], true
		}
		return "", false
	}
	value, set := e.env[name]
	return value, set
}
