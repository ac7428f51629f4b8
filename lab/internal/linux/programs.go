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

// echo knows -n. A backslash is refused, as shells interpret it differently.
func echo(p *process, arguments []string) int {
	end := "\n"
	if len(arguments) > 0 && arguments[0] == "-n" {
		arguments, end = arguments[1:], ""
	}
	said := strings.Join(arguments, " ")
	if strings.Contains(said, `\`) {
		return p.unknown("echo", arguments)
	}
	if _, err := io.WriteString(p.stream(1), said+end); err != nil {
		return p.complain("echo", "write error", err)
	}
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
	if err != nil || last > 1<<16 {
		return p.unknown("seq", arguments)
	}
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
	if err != nil || !(seconds >= 0 && seconds <= longestRest) {
		return p.unknown("sleep", arguments)
	}
	p.now += time.Duration(seconds * float64(time.Second))
	time.Sleep(shortRest)
	return 0
}

// timeout is `timeout [-k SECONDS] SECONDS COMMAND...`: no command here takes long enough to be ended.
func timeout(p *process, arguments []string) int {
	if len(arguments) > 2 && arguments[0] == "-k" {
		arguments = arguments[2:]
	}
	if len(arguments) < 2 {
		return p.unknown("timeout", arguments)
	}
	if _, err := strconv.ParseFloat(arguments[0], 64); err != nil {
		return p.unknown("timeout", arguments)
	}
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
	if err != nil {
		return p.complain(name, "cannot be started", err)
	}
	return 0
}

// tail is `tail -c BYTES` of the standard input.
func tail(p *process, arguments []string) int {
	if len(arguments) != 2 || arguments[0] != "-c" {
		return p.unknown("tail", arguments)
	}
	most, err := strconv.Atoi(arguments[1])
	if err != nil || most < 0 {
		return p.unknown("tail", arguments)
	}
	text, status := p.text("tail", nil)
	io.WriteString(p.stream(1), text[max(0, len(text)-most):])
	return status
}

func cat(p *process, names []string) int {
	if len(names) == 0 {
		if _, err := io.Copy(p.stream(1), p.input()); err != nil {
			return p.complain("cat", "-", err)
		}
		return 0
	}
	status := 0
	for _, name := range names {
		text, err := p.contents(name)
		if err != nil {
			status = p.complain("cat", name, err)
			continue
		}
		if _, err := io.WriteString(p.stream(1), text); err != nil {
			return p.complain("cat", "write error", err)
		}
	}
	return status
}

func head(p *process, arguments []string) int {
	switch {
	case len(arguments) == 2 && arguments[0] == "-n":
		lines, err := strconv.Atoi(arguments[1])
		if err != nil || lines < 0 {
			return p.unknown("head", arguments)
		}
		text, status := p.text("head", nil)
		if status != 0 {
			return status
		}
		all := strings.SplitAfter(text, "\n")
		io.WriteString(p.stream(1), strings.Join(all[:min(lines, len(all))], ""))
		return 0
	case len(arguments) == 2 && arguments[0] == "-c":
		most, err := strconv.ParseInt(arguments[1], 10, 64)
		if err != nil || most < 0 {
			return p.unknown("head", arguments)
		}
		io.CopyN(p.stream(1), p.input(), most) // an input that is shorter is all of it
		return 0
	case len(arguments) == 3 && arguments[0] == "-c":
		bytes, err := strconv.ParseInt(arguments[1], 10, 64)
		if err != nil || bytes < 0 {
			return p.unknown("head", arguments)
		}
		return p.headOfDevice(bytes, arguments[2])
	}
	return p.unknown("head", arguments)
}

// headOfDevice is `head -c BYTES /dev/urandom > FILE`: the file's size matters, its content does not.
func (p *process) headOfDevice(bytes int64, name string) int {
	found := p.lookup(name)
	to, ok := p.files[1].(*opened)
	if found == nil || found.device == 0 || found.device == 'n' || !ok {
		return p.unknown("head", []string{"-c", strconv.FormatInt(bytes, 10), name})
	}
	if err := to.grow(bytes, p.memory); err != nil {
		return p.complain("head", "write error", err)
	}
	return 0
}

func wc(p *process, arguments []string) int {
	if !slices.Equal(arguments, []string{"-l"}) {
		return p.unknown("wc", arguments)
	}
	text, status := p.text("wc", nil)
	if status == 0 {
		fmt.Fprintln(p.stream(1), strings.Count(text, "\n"))
	}
	return status
}

// text is all of the files named, or of the standard input.
func (p *process) text(program string, names []string) (string, int) {
	if len(names) == 0 {
		all, err := io.ReadAll(p.input())
		if err != nil {
			return "", p.complain(program, "-", err)
		}
		return string(all), 0
	}
	var all strings.Builder
	for _, name := range names {
		text, err := p.contents(name)
		if err != nil {
			return "", p.complain(program, name, err) + 1
		}
		all.WriteString(text)
	}
	return all.String(), 0
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
	if len(arguments) == 0 {
		return p.unknown("awk", arguments)
	}
	column := func(row []string, number string) string {
		n, _ := strconv.Atoi(number)
		if n < 1 || n > len(row) {
			return ""
		}
		return row[n-1]
	}
	byField, byNumber := awkField.FindStringSubmatch(arguments[0]), awkNumber.FindStringSubmatch(arguments[0])
	if byField == nil && byNumber == nil {
		return p.unknown("awk", arguments)
	}
	text, status := p.text("awk", arguments[1:])
	for number, line := range lines(text) {
		row := strings.Fields(line)
		switch {
		case byField != nil && column(row, byField[1]) == byField[2]:
			fmt.Fprintln(p.stream(1), column(row, byField[3]))
		case byNumber != nil && strconv.Itoa(number+1) == byNumber[1]:
			fmt.Fprintln(p.stream(1), column(row, byNumber[2]))
		}
	}
	return status
}

var sedPrint = regexp.MustCompile(`^s/([^/]+)/([^/\\&]*)/p$`)

// sed knows `sed -n 's/REGULAR EXPRESSION/TEXT/p' [FILE]`; in a basic expression + and ? mean themselves.
func sed(p *process, arguments []string) int {
	if len(arguments) < 2 || arguments[0] != "-n" {
		return p.unknown("sed", arguments)
	}
	wanted := sedPrint.FindStringSubmatch(arguments[1])
	if wanted == nil {
		return p.unknown("sed", arguments)
	}
	expression, err := regexp.Compile(strings.NewReplacer("+", `\+`, "?", `\?`).Replace(wanted[1]))
	if err != nil {
		return p.unknown("sed", arguments)
	}
	text, status := p.text("sed", arguments[2:])
	if status != 0 {
		return status
	}
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
	if len(arguments) != 3 || arguments[0] != "-qs" {
		return p.unknown("grep", arguments)
	}
	text, err := p.contents(arguments[2])
	if err == nil && strings.Contains(text, arguments[1]) {
		return 0
	}
	return 1
}
