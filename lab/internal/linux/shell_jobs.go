package linux

import (
	"maps"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

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
