package linux

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

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
		s.files[number] = file
	}
	return nil
}

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
