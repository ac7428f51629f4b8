package linux

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// job is a command that runs in the background.
type job struct {
	process *process
	done    chan struct{}
}

// sub is a shell of its own that starts as a copy of this one.
func (s *shell) sub() *shell {
	child := *s
	child.process = s.fork(s.args)
	child.env, child.jobs, child.atExit = child.process.env, nil, ""
	return &child
}

// child runs statements in a subshell, some of its files replaced, and returns the status.
func (s *shell) child(statements []*syntax.Stmt, files map[int]any) int {
	if s.tooDeep() {
		s.leaving = true
		return 2
	}
	child := s.sub()
	for number, file := range files {
		child.files[number] = file
	}
	child.statements(statements)
	s.reap(child.process)
	return child.status
}

// background starts a statement and goes on.
func (s *shell) background(one *syntax.Stmt) {
	foreground := *one
	foreground.Background = false
	child := s.sub()
	child.tested, child.errexit = 0, s.errexit
	started := &job{process: child.process, done: make(chan struct{})}
	s.jobs = append(s.jobs, started)
	s.session.jobs.Add(1)
	s.env["!"] = strconv.Itoa(child.pid)
	s.status = 0
	go func() {
		defer close(started.done)
		child.statement(&foreground)
	}()
}

// wait waits for everything in the background. What was started together counts as such until the last has ended.
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
