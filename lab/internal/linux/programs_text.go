package linux

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

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
