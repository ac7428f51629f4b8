package linux

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vnuma.dev/lab/internal/cost"
)

const (
	file   = "head -c 1472000000 /dev/urandom > /var/tmp/f; echo 1 > /proc/sys/vm/drop_caches\n"
	onNode = "numactl --cpunodebind=0 "
	read   = " dd if=/var/tmp/f of=/dev/null bs=1M\n"
)

// pages are each node's FilePages in MB.
func pages(t *testing.T, m *Machine) []int {
	t.Helper()
	out, _, _ := ran(m, `for n in 0 1; do awk '$3 == "FilePages:" { print $4 }' /sys/devices/system/node/node$n/meminfo; done`)
	var all []int
	for _, word := range strings.Fields(out) {
		kb, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, kb/1024)
	}
	return all
}

func TestPagesLieWhereThePolicyPutsThem(t *testing.T) {
	const whole = 1472000000 / (1 << 20)
	for policy, wanted := range map[string][2]int{
		"--membind=0":                  {whole, 0},
		"--membind=1":                  {0, whole},
		"--interleave=0,1":             {whole / 2, whole / 2},
		"--localalloc":                 {whole, 0},
		"--membind=1 --cpunodebind=0":  {0, whole}, // in either order
		"--localalloc --cpunodebind=1": {0, whole},
	} {
		m := published(t)
		_, stderr, status := ran(m, file+onNode+policy+read)
		if got := pages(t, m); status != 0 || got[0] != wanted[0] || got[1] != wanted[1] {
			t.Errorf("%s: %v MB, wanted %v (%d %s)", policy, got, wanted, status, stderr)
		}
	}
}

func TestADepletedNodeSendsPagesToTheOther(t *testing.T) {
	m := published(t)
	_, stderr, status := ran(m, file+`numactl --membind=0 dd if=/dev/zero of=/dev/shm/ballast bs=1M count=5906
`+onNode+"--localalloc"+read)
	got := pages(t, m)
	if status != 0 || got[0] != 5906+40 || got[1] < 1360 {
		t.Errorf("%v MB: %d %s", got, status, stderr)
	}
	if ran(m, "rm -rf /dev/shm/ballast"); pages(t, m)[0] != 40 {
		t.Errorf("%v MB after the ballast has gone", pages(t, m))
	}
}

func TestABoundFileThatFindsNoMemoryIsAnError(t *testing.T) {
	_, stderr, status := ran(published(t), `numactl --membind=1 dd if=/dev/zero of=/dev/shm/ballast bs=1M count=7987
`+file+onNode+"--membind=1"+read)
	if status != 1 || !strings.Contains(stderr, "Cannot allocate memory") {
		t.Errorf("%d %q", status, stderr)
	}
}

func TestDroppedPagesAreGoneAndThoseOfFilesInMemoryStay(t *testing.T) {
	m := published(t)
	ran(m, file+"numactl --membind=1 dd if=/dev/zero of=/dev/shm/x bs=1M count=100\n"+onNode+"--membind=0"+read)
	ran(m, "echo 1 > /proc/sys/vm/drop_caches")
	if got := pages(t, m); got[0] != 0 || got[1] != 100 {
		t.Errorf("%v MB", got)
	}
}

func TestAnotherReaderIsFasterThanTheOneThatPlaces(t *testing.T) {
	m := published(t)
	m.config.OtherReader = new(int)
	*m.config.OtherReader = 1
	ran(m, file+onNode+"--membind=0"+read)
	if got := pages(t, m); got[0] != 0 || got[1] != 1403 {
		t.Errorf("%v MB", got)
	}
}

var copied_ = regexp.MustCompile(`copied, (\S+) s`)

// seconds are the times that each dd of a script printed.
func seconds(t *testing.T, m *Machine, script string) []float64 {
	t.Helper()
	out, stderr, status := ran(m, script)
	if status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	var all []float64
	for _, found := range copied_.FindAllStringSubmatch(out+stderr, -1) {
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
	}
	return all
}

func withoutNoise(t *testing.T, effect cost.Effect) *Machine {
	m := published(t)
	m.config.Cost.BootSD, m.config.Cost.IterationSD, m.config.Cost.Effect = 0, 0, effect
	return m
}

func TestAReadTakesThePublishedTime(t *testing.T) {
	local, remote := onNode+"--membind=0"+read, onNode+"--membind=1"+read
	for _, c := range []struct {
		script string
		effect cost.Effect
		wanted float64
	}{
		{local, cost.Paper, 0.2447 * 1472000 / 1472115},
		{remote, cost.Paper, 0.3002 * 1472000 / 1472115},
		{remote, cost.None, 0.2447 * 1472000 / 1472115},
	} {
		times := seconds(t, withoutNoise(t, c.effect), file+c.script+onNode+read)
		if math.Abs(times[1]/c.wanted-1) > 0.001 || times[0] < 10 {
			t.Errorf("%s %s: %v, wanted %g", c.effect, c.script, times, c.wanted)
		}
	}
}

func TestReadersAtOnceShareThePathOfTheirNode(t *testing.T) {
	times := seconds(t, withoutNoise(t, cost.Paper), file+onNode+"--membind=0"+read+
		`mkfifo /tmp/gate; : > /tmp/ready; exec 3<> /tmp/gate
for n in $(seq 4); do `+onNode+`sh -c 'echo r >> /tmp/ready; read go < /tmp/gate; `+strings.TrimSpace(read)+`' & done
while [ "$(wc -l < /tmp/ready)" -lt 4 ]; do sleep 0.05; done
for n in $(seq 4); do echo >&3; done; wait`)
	for _, one := range times[1:] {
		if math.Abs(one/(1.472/18*4)-1) > 0.001 {
			t.Errorf("%v", times)
		}
	}
}

func TestTheClockPassesByWhatSleepsAndReadsTake(t *testing.T) {
	out, _, _ := ran(withoutNoise(t, cost.Paper), file+onNode+"--membind=0"+read+
		"cat /proc/uptime; "+onNode+strings.TrimSuffix(read, "\n")+"; sleep 10; cat /proc/uptime")
	words := strings.Fields(out)
	from, _ := strconv.ParseFloat(words[0], 64)
	to, _ := strconv.ParseFloat(words[2], 64)
	if passed := to - from; passed < 10.24 || passed > 11 { // and what the test itself took
		t.Errorf("%g s", passed)
	}
}

func TestAnExecutionRepeatsExactly(t *testing.T) {
	script := file + onNode + "--membind=1" + read + onNode + read + onNode + read
	one, two := seconds(t, published(t), script), seconds(t, published(t), script)
	for i := range one {
		if one[i] != two[i] {
			t.Errorf("%v and %v", one, two)
		}
	}
	if one[1] == one[2] {
		t.Errorf("no noise: %v", one)
	}
}
