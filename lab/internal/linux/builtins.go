package linux

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// builtins are the shell's built-in commands.
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

// export sets variables: this shell passes every variable to what it starts.
func (s *shell) export(words []string) {
	s.status = 0
	for _, word := range words {
		name, value, set := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
			s.fail("sh: the lab's shell has no export %s", word)
		case set:
			s.let(name, value)
		}
	}
}

// await is `wait` without arguments.
func (s *shell) await(words []string) {
	if len(words) > 0 {
		s.fail("sh: the lab's shell waits for everything alone, not for %s", words[0])
		return
	}
	s.wait()
	s.status = 0
}

// start runs a program, or another shell, in a child.
func (s *shell) start(words []string) int {
	if s.exhausted() {
		return 2
	}
	child := s.fork(words)
	status := child.run(words)
	s.reap(child)
	return status
}

// run executes a command line in a process.
func (p *process) run(words []string) (status int) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case exitStatus:
			status = int(problem)
		default:
			panic(problem)
		}
	}()
	if isShell(words[0]) {
		return p.runShell(words)
	}
	name := strings.TrimPrefix(strings.TrimPrefix(words[0], "/usr"), "/bin/")
	if slices.Contains(p.machine.config.Real, name) {
		return p.runReal(name, words[1:])
	}
	program := programs[name]
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
	return newShell(p, parameters).script(words[2])
}

func (s *shell) exit(words []string) {
	s.leaving = true
	if len(words) == 0 {
		return
	}
	status, err := strconv.ParseUint(words[0], 10, 31)
	if err != nil {
		s.fail("sh: 1: exit: Illegal number: %s", words[0])
		return
	}
	s.status = int(status & 0xff)
}

// replace is `exec`: it replaces the shell by the program, or makes redirections permanent.
func (s *shell) replace(words []string) {
	if len(words) > 0 {
		s.status = s.start(words)
		s.atExit, s.leaving = "", true
	}
}

// readLine is `read NAME` or `read -r NAME`, which do the same for lines without backslashes.
func (s *shell) readLine(words []string) {
	raw := len(words) > 0 && words[0] == "-r"
	if raw {
		words = words[1:]
	}
	if len(words) != 1 || strings.HasPrefix(words[0], "-") {
		s.fail("sh: the lab's shell reads into one variable alone")
		return
	}
	line := s.line()
	if !raw && strings.Contains(line, `\`) {
		s.fail("sh: the lab's shell reads backslashes with read -r alone")
		return
	}
	s.let(words[0], strings.TrimSpace(line))
}

// line is the next line of the standard input; the status is 1 if the input ends before a newline.
func (s *shell) line() string {
	s.status = 0
	var line strings.Builder
	one := make([]byte, 1)
	for {
		n, err := s.input().Read(one)
		if n == 1 && one[0] == '\n' {
			break
		}
		if err != nil || line.Len() >= longestValue {
			s.status = 1
			break
		}
		line.Write(one[:n])
	}
	return line.String()
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
	s.atExit, s.status = strings.TrimPrefix(words[0], "-"), 0
}

// which is `command -v NAME`.
func (s *shell) which(words []string) {
	if len(words) != 2 || words[0] != "-v" {
		s.fail("sh: the lab's shell has command -v alone")
		return
	}
	name := words[1]
	s.status = 0
	switch {
	case s.functions[name] != nil || builtins[name] != nil:
		io.WriteString(s.stream(1), name+"\n")
	case programs[name] != nil || slices.Contains(s.machine.config.Real, name):
		io.WriteString(s.stream(1), "/bin/"+name+"\n")
	default:
		s.status = 127
	}
}
