package linux

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// program implements a command; it returns the exit status.
type program func(p *process, arguments []string) int

// programs are all commands of this machine.
var programs map[string]program

func init() {
	programs = map[string]program{
		"[": bracket, "awk": awk, "cat": cat, "dd": dd, "df": df, "dirname": dirname, "echo": echo, "env": env,
		"false": func(*process, []string) int { return 1 }, "grep": grep, "head": head, "hostname": hostname, "id": id,
		"ls": ls, "mkdir": mkdir, "mkfifo": mkfifo, "mktemp": mktemp, "numactl": numactl, "rm": rm, "rmdir": rmdir,
		"sed": sed, "seq": seq, "sleep": sleep, "stat": stat, "tail": tail, "sync": func(*process, []string) int { return 0 },
		"test": test, "timeout": timeout, "true": func(*process, []string) int { return 0 }, "uname": uname, "wc": wc,
	}
}

// unknown is a program's message for options that the lab does not implement.
func (p *process) unknown(name string, arguments []string) int {
	fmt.Fprintf(p.stream(2), "%s: the lab's %s does not know: %s\n", name, name, strings.Join(arguments, " "))
	return 2
}

// exitStatus is what a program panics with that ends at once.
type exitStatus int

// refuse ends a program whose arguments the lab does not implement.
func (p *process) refuse(are bool, name string, arguments []string) {
	if are {
		panic(exitStatus(p.unknown(name, arguments)))
	}
}

// check ends a program that an error prevents from going on.
func (p *process) check(err error, program, what string) {
	if err != nil {
		panic(exitStatus(p.complain(program, what, err)))
	}
}

// echo knows -n. A backslash is refused, as shells interpret it differently.
func echo(p *process, arguments []string) int {
	end := "\n"
	if len(arguments) > 0 && arguments[0] == "-n" {
		arguments, end = arguments[1:], ""
	}
	said := strings.Join(arguments, " ")
	p.refuse(strings.Contains(said, `\`), "echo", arguments)
	_, err := io.WriteString(p.stream(1), said+end)
	p.check(err, "echo", "write error")
	return 0
}

func hostname(p *process, _ []string) int {
	fmt.Fprintln(p.stream(1), p.machine.config.Name)
	return 0
}

func id(p *process, arguments []string) int {
	if slices.Equal(arguments, []string{"-u"}) {
		fmt.Fprintln(p.stream(1), "0")
	} else {
		fmt.Fprintln(p.stream(1), "uid=0(root) gid=0(root) groups=0(root)")
	}
	return 0
}

func uname(p *process, arguments []string) int {
	switch strings.Join(arguments, " ") {
	case "":
		fmt.Fprintln(p.stream(1), "Linux")
	case "-r":
		fmt.Fprintln(p.stream(1), kernelRelease)
	default:
		return p.unknown("uname", arguments)
	}
	return 0
}

func seq(p *process, arguments []string) int {
	last, err := strconv.Atoi(strings.Join(arguments, " "))
	p.refuse(err != nil || last > 1<<16, "seq", arguments)
	for number := 1; number <= last; number++ {
		fmt.Fprintln(p.stream(1), number)
	}
	return 0
}

const (
	shortRest   = time.Millisecond // lets others run while a process sleeps on the machine's clock
	longestRest = 1e6              // seconds
)

func sleep(p *process, arguments []string) int {
	seconds, err := strconv.ParseFloat(strings.Join(arguments, " "), 64)
	p.refuse(err != nil || !(seconds >= 0 && seconds <= longestRest), "sleep", arguments)
	p.now += time.Duration(seconds * float64(time.Second))
	time.Sleep(shortRest)
	return 0
}

// timeout is `timeout [-k SECONDS] SECONDS COMMAND...`: no command here takes long enough to be ended.
func timeout(p *process, arguments []string) int {
	if len(arguments) > 2 && arguments[0] == "-k" {
		arguments = arguments[2:]
	}
	p.refuse(len(arguments) < 2, "timeout", arguments)
	_, err := strconv.ParseFloat(arguments[0], 64)
	p.refuse(err != nil, "timeout", arguments)
	return p.run(arguments[1:])
}

// env is `env NAME=VALUE... COMMAND...`.
func env(p *process, arguments []string) int {
	for len(arguments) > 0 {
		name, value, set := strings.Cut(arguments[0], "=")
		if !set {
			return p.run(arguments)
		}
		p.env[name] = value
		arguments = arguments[1:]
	}
	return p.unknown("env", arguments)
}

// runReal runs a program of the machine that the lab runs on, with this process's output and no input.
func (p *process) runReal(name string, arguments []string) int {
	command := exec.Command(name, arguments...)
	command.Stdout, command.Stderr = p.stream(1), p.stream(2)
	err := command.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode()
	}
	p.check(err, name, "cannot be started")
	return 0
}

// tail is `tail -c BYTES` of the standard input.
func tail(p *process, arguments []string) int {
	p.refuse(len(arguments) != 2 || arguments[0] != "-c", "tail", arguments)
	most, err := strconv.Atoi(arguments[1])
	p.refuse(err != nil || most < 0, "tail", arguments)
	text := p.text("tail", nil)
	io.WriteString(p.stream(1), text[max(0, len(text)-most):])
	return 0
}

func cat(p *process, names []string) int {
	if len(names) == 0 {
		_, err := io.Copy(p.stream(1), p.input())
		p.check(err, "cat", "-")
		return 0
	}
	status := 0
	for _, name := range names {
		text, err := p.contents(name)
		if err != nil {
			status = p.complain("cat", name, err)
			continue
		}
		_, err = io.WriteString(p.stream(1), text)
		p.check(err, "cat", "write error")
	}
	return status
}

func head(p *process, arguments []string) int {
	switch {
	case len(arguments) == 2 && arguments[0] == "-n":
		lines, err := strconv.Atoi(arguments[1])
		p.refuse(err != nil || lines < 0, "head", arguments)
		text := p.text("head", nil)
		all := strings.SplitAfter(text, "\n")
		io.WriteString(p.stream(1), strings.Join(all[:min(lines, len(all))], ""))
		return 0
	case len(arguments) == 2 && arguments[0] == "-c":
		most, err := strconv.ParseInt(arguments[1], 10, 64)
		p.refuse(err != nil || most < 0, "head", arguments)
		io.CopyN(p.stream(1), p.input(), most) // an input that is shorter is all of it
		return 0
	case len(arguments) == 3 && arguments[0] == "-c":
		bytes, err := strconv.ParseInt(arguments[1], 10, 64)
		p.refuse(err != nil || bytes < 0, "head", arguments)
		return p.headOfDevice(bytes, arguments[2])
	}
	return p.unknown("head", arguments)
}

// headOfDevice is `head -c BYTES /dev/urandom > FILE`: the file's size matters, its content does not.
func (p *process) headOfDevice(bytes int64, name string) int {
	found := p.lookup(name)
	to, ok := p.files[1].(*opened)
	unknown := found == nil || found.device == 0 || found.device == 'n' || !ok
	p.refuse(unknown, "head", []string{"-c", strconv.FormatInt(bytes, 10), name})
	p.check(to.grow(bytes, p.memory), "head", "write error")
	return 0
}

func wc(p *process, arguments []string) int {
	p.refuse(!slices.Equal(arguments, []string{"-l"}), "wc", arguments)
	text := p.text("wc", nil)
	fmt.Fprintln(p.stream(1), strings.Count(text, "\n"))
	return 0
}

// text is all of the files named, or of the standard input.
func (p *process) text(program string, names []string) string {
	if len(names) == 0 {
		all, err := io.ReadAll(p.input())
		p.check(err, program, "-")
		return string(all)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := p.contents(name)
		if err != nil {
			panic(exitStatus(p.complain(program, name, err) + 1))
		}
		all.WriteString(text)
	}
	return all.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

var (
	awkField  = regexp.MustCompile(`^\$([1-9]\d?) == "([^"\\]*)" \{ print \$([1-9]\d?) \}$`)
	awkNumber = regexp.MustCompile(`^NR == (\d+) \{ print \$([1-9]\d?) \}$`)
)

// awk knows two programs: `$3 == "TEXT" { print $4 }` and `NR == 2 { print $4 }`.
func awk(p *process, arguments []string) int {
	p.refuse(len(arguments) == 0, "awk", arguments)
	column := func(row []string, number string) string {
		n, _ := strconv.Atoi(number)
		if n < 1 || n > len(row) {
			return ""
		}
		return row[n-1]
	}
	byField, byNumber := awkField.FindStringSubmatch(arguments[0]), awkNumber.FindStringSubmatch(arguments[0])
	p.refuse(byField == nil && byNumber == nil, "awk", arguments)
	text := p.text("awk", arguments[1:])
	for number, line := range lines(text) {
		row := strings.Fields(line)
		switch {
		case byField != nil && column(row, byField[1]) == byField[2]:
			fmt.Fprintln(p.stream(1), column(row, byField[3]))
		case byNumber != nil && strconv.Itoa(number+1) == byNumber[1]:
			fmt.Fprintln(p.stream(1), column(row, byNumber[2]))
		}
	}
	return 0
}

var sedPrint = regexp.MustCompile(`^s/([^/]+)/([^/\\&]*)/p$`)

// sed knows `sed -n 's/REGULAR EXPRESSION/TEXT/p' [FILE]`; in a basic expression + and ? mean themselves.
func sed(p *process, arguments []string) int {
	p.refuse(len(arguments) < 2 || arguments[0] != "-n", "sed", arguments)
	wanted := sedPrint.FindStringSubmatch(arguments[1])
	p.refuse(wanted == nil, "sed", arguments)
	expression, err := regexp.Compile(strings.NewReplacer("+", `\+`, "?", `\?`).Replace(wanted[1]))
	p.refuse(err != nil, "sed", arguments)
	text := p.text("sed", arguments[2:])
	for _, line := range lines(text) {
		if at := expression.FindStringIndex(line); at != nil {
			fmt.Fprintln(p.stream(1), line[:at[0]]+wanted[2]+line[at[1]:])
		}
	}
	return 0
}

// grep knows `grep -qs TEXT FILE`, and `grep -lzxF LINE FILE...`, which finds no process here by its environment.
func grep(p *process, arguments []string) int {
	if len(arguments) > 2 && arguments[0] == "-lzxF" {
		return 1
	}
	p.refuse(len(arguments) != 3 || arguments[0] != "-qs", "grep", arguments)
	text, err := p.contents(arguments[2])
	if err == nil && strings.Contains(text, arguments[1]) {
		return 0
	}
	return 1
}
