package linux

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// shell runs POSIX shell scripts in a process. mvdan.cc/sh parses and expands the language; this package implements
// the commands, so that nothing touches the machine that the lab runs on.
type shell struct {
	*process
	parameters  []string // $0, $1, ...
	functions   map[string]*syntax.Stmt
	status      int
	substituted int // the status of the last command substitution
	errexit     bool
	tested      int // depth of conditions, in which `set -e` is ignored
	leaving     bool
	atExit      string
	jobs        []*job
}

func newShell(p *process, parameters []string) *shell {
	if p.args == nil {
		p.args = parameters
	}
	return &shell{process: p, parameters: parameters, functions: map[string]*syntax.Stmt{}}
}

// script runs a whole script, and returns the exit status.
func (s *shell) script(text string) int {
	s.evaluate(text)
	return s.ended()
}

// evaluate runs text in this shell.
func (s *shell) evaluate(text string) {
	parsed, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.fail("sh: syntax error: %v", err)
		return
	}
	s.statements(parsed.Stmts)
}

func (s *shell) fail(format string, values ...any) {
	fmt.Fprintf(s.stream(2), format+"\n", values...)
	s.status, s.leaving = 2, true
}

func (s *shell) statements(all []*syntax.Stmt) {
	for _, one := range all {
		if s.leaving {
			return
		}
		if s.session.statements.Add(1) > mostStatements {
			s.fail("sh: more than %d statements: the lab takes that for a loop without end", mostStatements)
			return
		}
		s.statement(one)
	}
}

// mostStatements limits what one command of the connection runs.
const mostStatements = 300_000

func (s *shell) statement(one *syntax.Stmt) {
	if one.Background {
		s.background(one)
		return
	}
	if one.Negated {
		s.tested++
		defer func() { s.tested-- }()
	}
	before := s.files
	s.files = maps.Clone(before)
	permanent := isBareExec(one.Cmd)
	if err := s.redirect(one.Redirs); err != nil {
		fmt.Fprintf(s.stream(2), "sh: 1: %s\n", err)
		s.status, s.leaving = 2, isSpecial(one.Cmd)
	} else if one.Cmd != nil {
		s.command(one.Cmd)
	} else {
		s.status = 0
	}
	if !permanent {
		s.files = before
	}
	if one.Negated {
		s.status = map[bool]int{true: 1, false: 0}[s.status == 0]
		return
	}
	s.perhapsLeave(one.Cmd)
}

// perhapsLeave implements `set -e`, which lists and conditions ignore.
func (s *shell) perhapsLeave(command syntax.Command) {
	counts := false
	switch c := command.(type) {
	case *syntax.CallExpr, *syntax.Subshell, nil:
		counts = true
	case *syntax.BinaryCmd:
		counts = c.Op == syntax.Pipe
	}
	if counts && s.errexit && s.tested == 0 && s.status != 0 {
		s.leaving = true
	}
}

// isBareExec is `exec` with only redirections, which become permanent.
func isBareExec(command syntax.Command) bool {
	call, ok := command.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == "exec"
}

// isSpecial is whether a command is a special built-in utility of POSIX: redirections of it that fail end the shell.
func isSpecial(command syntax.Command) bool {
	call, ok := command.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && slices.Contains(special, call.Args[0].Lit())
}

var special = []string{":", "exec", "exit", "export", "set", "trap"}

func (s *shell) command(command syntax.Command) {
	switch c := command.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		s.binary(c)
	case *syntax.Block:
		s.statements(c.Stmts)
	case *syntax.Subshell:
		s.status = s.child(c.Stmts, nil)
	case *syntax.IfClause:
		s.choose(c)
	case *syntax.WhileClause:
		s.loop(c)
	case *syntax.ForClause:
		s.forEach(c)
	case *syntax.FuncDecl:
		s.functions[c.Name.Value] = c.Body
		s.status = 0
	default:
		s.fail("sh: the lab's shell has no %T", command)
	}
}

func (s *shell) binary(c *syntax.BinaryCmd) {
	if c.Op == syntax.Pipe {
		s.pipe(c)
		return
	}
	s.condition([]*syntax.Stmt{c.X})
	if !s.leaving && (s.status == 0) == (c.Op == syntax.AndStmt) {
		s.statement(c.Y)
	}
}

// pipe runs one side after the other.
func (s *shell) pipe(c *syntax.BinaryCmd) {
	var between gathered
	s.child([]*syntax.Stmt{c.X}, map[int]any{1: &between})
	if between.tooMuch {
		s.fail("sh: a pipe: %v", errTooMuch)
		return
	}
	s.status = s.child([]*syntax.Stmt{c.Y}, map[int]any{0: &between.bytes})
}

// condition runs statements as a condition and returns whether their status was 0.
func (s *shell) condition(statements []*syntax.Stmt) bool {
	s.tested++
	s.statements(statements)
	s.tested--
	return s.status == 0 && !s.leaving
}

func (s *shell) choose(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 || s.condition(c.Cond) {
			s.status = 0
			s.statements(c.Then)
			return
		}
		if s.leaving {
			return
		}
	}
	s.status = 0
}

func (s *shell) loop(c *syntax.WhileClause) {
	last := 0
	for s.condition(c.Cond) != c.Until && !s.leaving {
		s.statements(c.Do)
		if s.leaving {
			return
		}
		last = s.status
	}
	if !s.leaving {
		s.status = last
	}
}

func (s *shell) forEach(c *syntax.ForClause) {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		s.fail("sh: the lab's shell has no %T", c.Loop)
		return
	}
	values := s.parameters[1:]
	if words.InPos.IsValid() {
		values = s.fields(words.Items)
	}
	s.status = 0
	for _, value := range values {
		s.let(words.Name.Value, value)
		s.statements(c.Do)
		if s.leaving {
			return
		}
	}
}

// isShell is whether a program's name is that of the shell.
func isShell(name string) bool { return path.Base(name) == "sh" }

// job is a command that runs in the background.
type job struct {
	process *process
	done    chan struct{}
}

// sub is a subshell that starts as a copy of this one.
func (s *shell) sub() *shell {
	child := *s
	child.process = s.fork(s.args)
	child.functions, child.jobs, child.atExit = maps.Clone(s.functions), nil, ""
	return &child
}

// child runs statements in a subshell, some of its files replaced, and returns the status.
func (s *shell) child(statements []*syntax.Stmt, files map[int]any) int {
	if s.exhausted() {
		s.leaving = true
		return 2
	}
	child := s.sub()
	for number, file := range files {
		child.files[number] = file
	}
	child.statements(statements)
	status := child.ended()
	s.reap(child.process)
	return status
}

// background starts a statement, with empty standard input unless redirected, and continues.
func (s *shell) background(one *syntax.Stmt) {
	if s.exhausted() {
		s.status, s.leaving = 2, true
		return
	}
	foreground := *one
	foreground.Background = false
	child := s.sub()
	child.tested = 0
	delete(child.files, 0)
	started := &job{process: child.process, done: make(chan struct{})}
	s.jobs = append(s.jobs, started)
	s.session.jobs.Add(1)
	s.env["!"] = strconv.Itoa(child.pid)
	s.status = 0
	go func() {
		defer close(started.done)
		defer child.survive(&child.status)
		child.statement(&foreground)
		child.ended()
	}()
}

// ended runs the exit trap, waits for background commands, and returns the exit status.
func (s *shell) ended() int {
	status := s.status
	if s.atExit != "" {
		trap := s.atExit
		s.atExit, s.leaving, s.errexit = "", false, false
		s.evaluate(trap)
		if s.leaving {
			status = s.status
		}
	}
	s.wait()
	return status
}

// wait waits for everything in the background. Commands started together count until the last has ended.
func (s *shell) wait() {
	for _, one := range s.jobs {
		<-one.done
	}
	for _, one := range s.jobs {
		s.session.jobs.Add(-1)
		s.reap(one.process)
	}
	s.jobs = nil
}

// mostGathered limits what goes through a pipe or a command substitution, in bytes.
const mostGathered = 1 << 20

var errTooMuch = fmt.Errorf("the lab carries no more than %d bytes", mostGathered)

var errNobodyReads = errors.New("Broken pipe")

// gathered collects what programs write, possibly several at once, to be read after they have ended.
type gathered struct {
	mu      sync.Mutex
	bytes   bytes.Buffer
	tooMuch bool
}

func (g *gathered) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bytes.Len()+len(data) > mostGathered {
		g.tooMuch = true
		return 0, errNobodyReads
	}
	return g.bytes.Write(data)
}
