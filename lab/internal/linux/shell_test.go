package linux

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/scenario"
)

func published(t *testing.T) *Machine {
	t.Helper()
	return New(Config{
		Scenario: "closson2009", Cost: cost.Default(), Seed: 1,
		Machine: scenario.Machine{Name: "xeon5500", CPUModel: "a CPU",
			Nodes: []scenario.MachineNode{{CPUs: 4, MemoryMB: 8052, UsedMB: 2106}, {CPUs: 4, MemoryMB: 8080, UsedMB: 93}}},
	})
}

// ran is what a script prints, and its status.
func ran(m *Machine, script string) (string, string, int) {
	var stdout, stderr bytes.Buffer
	status := m.Run(script, strings.NewReader(""), &whole{to: &stdout}, &whole{to: &stderr})
	return stdout.String(), stderr.String(), status
}

func TestAFailureOfTheLabEndsTheCommandAlone(t *testing.T) {
	programs["broken"] = func(*process, []string) int { panic("inside") }
	defer delete(programs, "broken")
	m := published(t)
	for script, want := range map[string]int{"broken; echo more": 70, "broken & wait; echo more": 0, "echo again": 0} {
		if _, stderr, status := ran(m, script); status != want || strings.Contains(stderr, "inside") != strings.Contains(script, "broken") {
			t.Errorf("%s: status %d, %q", script, status, stderr)
		}
	}
}

// asDash are scripts that touch no file: a real shell must print the same.
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
	`exec 3>&1; { echo open >&3 3>&-; echo closed 3>&- >&3; echo still >&3; } 2>/dev/null`,
	`echo lost 2>/dev/null >/dev/null; echo kept`,
	`for n in 1 2; do (exit $n) & done; wait; echo done`,
	`export LC_ALL=C; echo $LC_ALL`,
	`exit 3`,
	`sh -c 'echo from sh'`,
	`seq 4 | head -n 2`,
	`echo 'single $x' "double \$x"`,
	`f() { for a in "$@"; do echo "<$a>"; done; }; f "x y" z`,
	`f() { for a; do echo "<$a>"; done; echo $# "$*"; }; f "x y" z; f`,
	`(f() { echo in; }); f`,
	`(trap 'echo x' EXIT; echo y); echo z`,
	`trap 'echo bye' EXIT; exec echo hi`,
	`trap 'exit 5' EXIT; exit 3`,
	`trap 'echo bye' EXIT; trap - EXIT; echo x`,
	`set -e; true | false; echo not reached`,
	`set -e; f() { false; echo in; }; f || echo or; echo on`,
	`exit abc`,
	`exit 300`,
	`echo -n a; echo b`,
	`x=$( (sleep 0.01; echo late) & ); echo "[$x]"`,
	`(echo a & wait) | cat`,
	`i=0; while [ $i -lt 1 ]; do i=1; false; done; echo $?`,
	`: > /nosuch/y; echo not reached`,
	`exec 3< /nosuch; echo not reached`,
	`f() { :; }; command -v f; command -v :; command -v nosuch; echo $?`,
	`cat & wait; echo $?`,
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
		"awk 'NR == 1 { print $1 }' /dev/x":        "No such file",
		"case a in a) ;; esac":                     "the lab's shell has no",
		"dd if=/nowhere of=/dev/null":              "failed to open '/nowhere': No such file or directory",
		"echo (":                                   "syntax error",
		"cat /var/tmp":                             "Is a directory",
		"echo x > /proc/uptime":                    "write error: Permission denied",
		"echo x > /proc/sys/kernel/numa_balancing": "write error: Invalid argument",
		"cat /proc/401/status":                     "No such file or directory",
		"for n in $(seq 40); do mktemp /tmp/a.X; done; false": "File exists",
		"echo 'a\\tb'":              "echo: the lab's echo does not know",
		"echo a | { read x y; }":    "reads into one variable alone",
		"wait 1":                    "waits for everything alone",
		"export -p":                 "has no export -p",
		"timeout -s 9 2 id":         "does not know",
		"seq 3 | head -n -1":        "does not know: -n -1",
		"awk '{ print }' /dev/null": "does not know",
		"cat < /dev/zero":           "has no end of it",
		"cat /dev/urandom":          "has no end of it",
		"cat < /tmp":                "Is a directory",
		"sleep inf":                 "does not know: inf",
		"rm -rf /proc":              "Operation not permitted",
		"cat /proc/400/cmdline/x":   "No such file",
		"dd if=/dev/zero of=/tmp/f bs=1G count=1G": "does not know",
	} {
		_, stderr, status := ran(published(t), script)
		if status == 0 || !strings.Contains(stderr, said) {
			t.Errorf("%s: %d %q", script, status, stderr)
		}
	}
}

func TestAScriptThatWouldNeverEndIsEnded(t *testing.T) {
	for script, said := range map[string]string{
		"while true; do :; done":                                                     "more than 300000 statements",
		"f() { f & f & }; f; false":                                                  "Cannot fork",
		"for n in $(seq 2000); do : & done; wait":                                    "Cannot fork",
		"x=aaaaaaaa; while true; do x=$x$x; done":                                    "Argument list too long",
		"set -e; echo x > f; while true; do cat f f >> g; cat g g >> f; done":        "No space left on device",
		"echo x > f; cat < f >> f":                                                   "No space left on device",
		"seq 40000 > f; x=$(while cat f; do :; done)":                                "the lab carries no more",
		"set -e; mkfifo p; seq 4000 > f; exec 1<> p; while cat f; do :; done; false": "temporarily unavailable",
	} {
		m := published(t)
		_, stderr, status := ran(m, script)
		if status == 0 || !strings.Contains(stderr, said) {
			t.Errorf("%s: %d %.300q", script, status, stderr)
		}
		if len(m.running) > 0 {
			t.Errorf("%s: %d processes are left", script, len(m.running))
		}
	}
}

func TestWhatIsRemovedTakesNoRoom(t *testing.T) {
	m := published(t)
	_, stderr, _ := ran(m, `mkdir a; echo x > a/f; echo y > g; exec 3> h; rm -rf a g h; echo z >&3`)
	if m.writtenBytes != 0 || stderr != "" {
		t.Errorf("%d bytes: %s", m.writtenBytes, stderr)
	}
}

func TestNothingOfTheRealMachineIsTold(t *testing.T) {
	out, _, _ := ran(published(t), "echo ~ ~root ~daemon ~nobody/x; echo /*; echo $USER $SHELL $PPID")
	if out != "/root /root ~daemon ~nobody/x\n/bin /dev /etc /proc /root /sys /tmp /var\nroot\n" {
		t.Errorf("%q", out)
	}
}

func TestFunctionsAreDefinedInSeveralShellsAtOnce(t *testing.T) {
	out, _, status := ran(published(t), `for n in $(seq 20); do (f() { echo $n; }; f) & f() { echo; }; done; wait`)
	if status != 0 || strings.Count(out, "\n") != 20 {
		t.Errorf("%d %q", status, out)
	}
}

func TestAProgramIsSeenWhileItRuns(t *testing.T) {
	out, _, status := ran(published(t), `/bin/sh -c 'grep -qs marked-so /proc/$$/cmdline && echo seen' marked-so
grep -qs marked-so /proc/402/cmdline || echo gone`)
	if out != "seen\ngone\n" || status != 0 {
		t.Errorf("%d %q", status, out)
	}
}
