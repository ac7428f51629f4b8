package linux

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"vnuma.dev/lab/internal/cost"
)

func published(t *testing.T) *Machine {
	t.Helper()
	return New(Config{
		Name: "xeon5500", Scenario: "closson2009", CPUModel: "a CPU", OtherReader: -1, Cost: cost.Default(), Seed: 1,
		Nodes: []Node{{CPUs: 4, MemoryMB: 8052, UsedMB: 2106}, {CPUs: 4, MemoryMB: 8080, UsedMB: 93}},
	})
}

// ran is what a script prints, and its status.
func ran(m *Machine, script string) (string, string, int) {
	var stdout, stderr bytes.Buffer
	status := m.Run(script, strings.NewReader(""), &whole{to: &stdout}, &whole{to: &stderr})
	return stdout.String(), stderr.String(), status
}

// asDash are scripts that touch no file: a real shell must say the same of them.
var asDash = []string{
	`echo a  b "c  d"`,
	`x=1; y=$((x + 2)); echo $y "${y}z"`,
	`for n in $(seq 3); do echo n$n; done`,
	`n=/a/node7; echo "${n##*/node}" "${n%/*}"`,
	`at=; echo [${at:+"$at"}]; at="a b"; echo [${at:+"$at"}]`,
	`say() { echo "@@ $1"; }; say one; say two`,
	`false || echo or; true && echo and; ! false; echo $?`,
	`if [ 1 -gt 2 ]; then echo a; elif [ x = x ]; then echo b; else echo c; fi`,
	`s=0; while [ $s -lt 3 ]; do s=$((s + 1)); done; echo $s`,
	`set -e; echo before; false; echo after`,
	`set -e; if false; then echo no; fi; false || true; echo on`,
	`set -e; x=$(false); echo not reached`,
	`set -e; (exit 3); echo not reached`,
	`trap 'echo bye' EXIT; echo hi; exit 4`,
	`trap 'echo bye' EXIT; set -e; false`,
	`(exit 7); echo $?; x=$(exit 5); echo $?`,
	`/bin/sh -c 'echo "$0" "$1" $#' name one two`,
	`/bin/sh -c 'exit 9'; echo $?`,
	`printf() { echo mine; }; printf x`,
	`echo one; exec echo two; echo three`,
	`[ ! -d /nowhere ] && [ -n x ] && [ -z "" ]; echo $?`,
	`echo words | wc -l | grep_is_not_asked 2>/dev/null; echo $?`,
	`exec 3>&1; echo to three >&3`,
	`echo lost 2>/dev/null >/dev/null; echo kept`,
	`for n in 1 2; do (exit $n) & done; wait; echo done`,
	`export LC_ALL=C; echo $LC_ALL`,
	`exit 3`,
	`sh -c 'echo from sh'`,
	`seq 4 | head -n 2`,
	`echo 'single $x' "double \$x"`,
}

func TestTheShellSaysWhatARealOneSays(t *testing.T) {
	real, err := exec.LookPath("dash")
	if err != nil {
		t.Skip("no dash to compare with")
	}
	for _, script := range asDash {
		command := exec.Command(real, "-c", script)
		var theirs bytes.Buffer
		command.Stdout = &theirs
		command.Run() // its status is compared
		ours, stderr, status := ran(published(t), script)
		if ours != theirs.String() || status != command.ProcessState.ExitCode() {
			t.Errorf("%s\n  dash: %q, %d\n  lab:  %q, %d %s", script, theirs.String(), command.ProcessState.ExitCode(), ours, status, stderr)
		}
	}
}

func TestReadersWaitAtANamedPipeUntilTheyAreLetGo(t *testing.T) {
	out, stderr, status := ran(published(t), `
at=$(mktemp -d /var/tmp/x.XXXXXX); mkfifo "$at/gate"; : > "$at/ready"; exec 3<> "$at/gate"
for n in $(seq 5); do /bin/sh -c 'echo r >> "$1/ready"; read go < "$1/gate"; echo went > "$1/$2"' reader "$at" $n & done
while [ "$(wc -l < "$at/ready")" -lt 5 ]; do sleep 0.05; done
for n in $(seq 5); do echo >&3; done
wait
for n in $(seq 5); do cat "$at/$n"; done`)
	if strings.Count(out, "went\n") != 5 || status != 0 {
		t.Errorf("%d: %q %q", status, out, stderr)
	}
}

func TestWhatTheMachineDoesNotHaveIsSaid(t *testing.T) {
	for script, said := range map[string]string{
		"perl -e 1":                                "perl: not found",
		"awk '{ print }' /dev/x":                   "No such file",
		"case a in a) ;; esac":                     "the lab's shell has no",
		"dd if=/nowhere of=/dev/null":              "failed to open '/nowhere': No such file or directory",
		"echo (":                                   "syntax error",
		"cat /var/tmp":                             "Is a directory",
		"echo x > /proc/uptime":                    "write error: Permission denied",
		"echo x > /proc/sys/kernel/numa_balancing": "write error: Invalid argument",
		"cat /proc/401/status":                     "No such file or directory",
		"for n in $(seq 40); do mktemp /tmp/a.X; done; false": "File exists",
		"while true; do :; done":                              "a loop of more than",
	} {
		_, stderr, status := ran(published(t), script)
		if status == 0 || !strings.Contains(stderr, said) {
			t.Errorf("%s: %d %q", script, status, stderr)
		}
	}
}

func TestAProgramIsSeenWhileItRuns(t *testing.T) {
	out, _, status := ran(published(t), `/bin/sh -c 'grep -qs marked-so /proc/$$/cmdline && echo seen' marked-so
grep -qs marked-so /proc/402/cmdline || echo gone`)
	if out != "seen\ngone\n" || status != 0 {
		t.Errorf("%d %q", status, out)
	}
}
