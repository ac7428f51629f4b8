package linux

import (
	"testing"
	"time"
)

// FuzzScript: every script ends, and the machine keeps running.
func FuzzScript(f *testing.F) {
	for _, script := range asDash {
		f.Add(script)
	}
	f.Add(file + onNode + "--membind=1" + read)
	f.Add("f() { f; }; f")
	f.Add("export X='sh -c \"$X\"'; sh -c \"$X\"")
	f.Add("seq 3 | head -n 2 | wc -l; cat < /dev/zero; numactl -H > f; timeout 5 sleep 1")
	f.Add("dd if=/dev/zero of=/dev/shm/x bs=1M count=3 skip=1; (f() { :; }) & f() { :; }; wait")
	f.Add("at=$(mktemp -d /tmp/a.XXX); mkfifo $at/p; exec 3<> $at/p; echo x >&3; read y < $at/p; echo $y; rm -rf $at /")
	f.Fuzz(func(t *testing.T, script string) {
		m := published(t)
		m.pipeWait = time.Millisecond // each wait of its own: many in one script, and none is a hang
		done := make(chan struct{})
		go func() { ran(m, script); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * longestPipe):
			t.Fatalf("does not end: %q", script)
		}
		if out, _, status := ran(m, "id -u"); out != "0\n" || status != 0 {
			t.Errorf("the machine says %q afterwards", out)
		}
	})
}
