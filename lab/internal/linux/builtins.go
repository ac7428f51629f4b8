package linux

import (
	"io"
	"strconv"
	"strings"
)

// builtins are the commands that work on the shell itself.
var builtins map[string]func(*shell, []string)

func init() {
	builtins = map[string]func(*shell, []string){
		":":       (*shell).nothing,
		"command": (*shell).which,
		"exec":    (*shell).replace,
		"exit":    (*shell).exit,
		"export":  (*shell).export,
		"read":    (*shell).readLine,
		"set":     (*shell).set,
		"trap":    (*shell).trap,
		"umask":   (*shell).nothing,
		"wait":    (*shell).await,
	}
}

func (s *shell) nothing([]string) { s.status = 0 }

// export sets variables: all of them go to what the shell starts anyway.
func (s *shell) export(words []string) {
	for _, word := range words {
		if name, value, set := strings.Cut(word, "="); set {
			s.env[name] = value
		}
	}
	s.status = 0
}

func (s *shell) await([]string) {
	s.wait()
	s.status = 0
}

// start runs a program, or another shell, in a child.
func (s *shell) start(words []string) int {
	if s.tooDeep() {
		return 2
	}
	child := s.fork(words)
	status := child.run(words)
	s.reap(child)
	return status
}

// run is what a process does that was given a command line.
func (p *process) run(words []string) int {
	if isShell(words[0]) {
		return p.runShell(words)
	}
	program := programs[strings.TrimPrefix(strings.TrimPrefix(words[0], "/usr"), "/bin/")]
	if program == nil {
		return p.missing(words[0])
	}
	return program(p, words[1:])
}

// runShell is `sh -c SCRIPT [NAME ARGUMENT...]`.
func (p *process) runShell(words []string) int {
	if len(words) < 3 || words[1] != "-c" {
		return p.missing(strings.Join(words, " "))
	}
	parameters := words[3:]
	if len(parameters) == 0 {
		parameters = words[:1]
	}
	inner := newShell(p, parameters)
	status := inner.script(words[2])
	inner.wait()
	return status
}

func (s *shell) exit(words []string) {
	if len(words) > 0 {
		s.status, _ = strconv.Atoi(words[0])
	}
	s.leaving = true
}

// replace is `exec`: the program in the shell's place, or redirections that stay.
func (s *shell) replace(words []string) {
	if len(words) > 0 {
		s.status = s.start(words)
		s.leaving = true
	}
}

// readLine is `read NAME`.
func (s *shell) readLine(words []string) {
	s.status = 0
	var line strings.Builder
	one := make([]byte, 1)
	for {
		n, err := s.input().Read(one)
		if n == 1 && one[0] == '\n' {
			break
		}
		if err != nil || line.Len() > 1<<16 {
			s.status = 1
			break
		}
		line.Write(one[:n])
	}
	if len(words) > 0 {
		s.env[words[len(words)-1]] = strings.TrimSpace(line.String())
	}
}

func (s *shell) set(words []string) {
	s.status = 0
	for _, word := range words {
		switch word {
		case "-e":
			s.errexit = true
		case "+e":
			s.errexit = false
		default:
			s.fail("sh: the lab's shell has no set %s", word)
		}
	}
}

// trap is `trap COMMAND EXIT`.
func (s *shell) trap(words []string) {
	if len(words) != 2 || words[1] != "EXIT" {
		s.fail("sh: the lab's shell has traps for EXIT alone")
		return
	}
	s.atExit, s.status = words[0], 0
}

// which is `command -v NAME`.
func (s *shell) which(words []string) {
	if len(words) != 2 || words[0] != "-v" {
		s.fail("sh: the lab's shell has command -v alone")
		return
	}
	if programs[words[1]] == nil && builtins[words[1]] == nil {
		s.status = 127
		return
	}
	s.status = 0
	io.WriteString(s.stream(1), "/bin/"+words[1]+"\n")
}
