package vcenter

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// control sends a request to the lab's control, and returns the status and the answer.
func (l *lab) control(method, path, body, password string) (int, string) {
	l.t.Helper()
	pem, err := os.ReadFile(l.server.CAFile())
	l.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	address := fmt.Sprintf("https://127.0.0.1:%d%s", l.server.ControlPort(), path)
	request, err := http.NewRequest(method, address, bytes.NewReader([]byte(body)))
	l.must(err)
	request.SetBasicAuth(administrator, password)
	response, err := client.Do(request)
	l.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	l.must(err)
	return response.StatusCode, string(text)
}

func TestTransientFaultsPassAndNothingIsHalfDone(t *testing.T) {
	l := startLab(t, `
faults:
  - {kind: task_in_progress, boot: 2, method: ReconfigVM_Task}
  - {kind: host_communication, boot: 2, method: PowerOnVM_Task}
  - {kind: datastore_full, boot: 3}
`)
	l.must(l.powerOff())
	before := l.read().Config.ChangeVersion
	wantFault[types.TaskInProgress](t, l.reconfigure(types.VirtualMachineConfigSpec{NumCPUs: 8}))
	if after := l.read(); after.Config.ChangeVersion != before || after.Config.Hardware.NumCPU != 16 {
		t.Errorf("changed all the same: %d vCPUs", after.Config.Hardware.NumCPU)
	}
	l.must(l.reconfigure(types.VirtualMachineConfigSpec{NumCPUs: 8}))
	wantFault[types.HostCommunication](t, l.powerOn())
	l.must(l.powerOn())
	l.must(l.powerOff())
	wantFault[types.NoDiskSpace](t, l.powerOn())
	l.must(l.powerOn())
}

func TestAnAnswerThatIsLostDoesNotUndoWhatItTellsOf(t *testing.T) {
	l := startLab(t, `faults: [{kind: answer_lost, method: ReconfigVM_Task}, {kind: unavailable, method: PowerOffVM_Task}]`)
	if err := l.powerOff(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want 503", err)
	}
	l.must(l.powerOff())
	if err := l.reconfigure(types.VirtualMachineConfigSpec{NumCPUs: 8}); err == nil {
		t.Error("the answer arrived")
	}
	l.eventually("the change", func() bool { return l.read().Config.Hardware.NumCPU == 8 })
}

func TestARestartEndsSessionsAndComesBackAtTheSameAddress(t *testing.T) {
	l := startLab(t, `faults: [{kind: vcenter_restart, seconds: 0.2, boot: 2}]`)
	l.must(l.powerOff())
	task, err := l.vm.PowerOn(l.ctx)
	l.must(err)
	l.eventually("the restart", func() bool { task.Wait(l.ctx); return len(l.told("vcenter_up")) == 1 })
	var vm = l.vm
	_, err = vm.PowerState(l.ctx)
	wantFault[types.NotAuthenticated](t, err)
	l.client = l.login(administrator)
	l.vm = l.find(l.client, "/DC0/vm/sql16")
	if state := l.read().Runtime.PowerState; state != poweredOn {
		t.Errorf("the VM is %s", state)
	}
}

func TestSomebodyElsesChangeMakesANewVersion(t *testing.T) {
	l := startLab(t, `faults: [{kind: vm_changed, cpu_reservation_mhz: 500, boot: 2}]`)
	l.must(l.powerOff())
	before := l.read().Config.ChangeVersion
	l.must(l.powerOn())
	l.eventually("the change", func() bool { return len(l.told("changed")) == 1 })
	after := l.read().Config
	if *after.CpuAllocation.Reservation != 500 || after.ChangeVersion == before {
		t.Errorf("reservation %d, version %s", *after.CpuAllocation.Reservation, after.ChangeVersion)
	}
}

func TestFaultsAreAddedListedAndClearedWhileTheLabRuns(t *testing.T) {
	l := startLab(t, "")
	if status, _ := l.control("GET", "/faults", "", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a wrong password got %d", status)
	}
	for body, want := range map[string]string{
		`{"kind": "gremlins"}`:                           "want one of",
		`{"kind": "vm_moved"}`:                           "needs to",
		`{"kind": "vm_moved", "to": "nowhere"}`:          "no such host",
		`{"kind": "tools_never", "method": "Login"}`:     "does not belong",
		`{"kind": "vcenter_restart"}`:                    "needs seconds",
		`{"kind": "reconfigure_refused", "colour": "r"}`: "colour",
	} {
		if status, text := l.control("POST", "/faults", body, testPassword); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", body, status, text, want)
		}
	}
	l.control("POST", "/faults", `{"kind": "reconfigure_refused", "times": 0}`, testPassword)
	l.control("POST", "/faults", `{"kind": "session_expired", "boot": 9}`, testPassword)
	wantFault[types.SystemError](t, l.reconfigure(types.VirtualMachineConfigSpec{Annotation: "a"}))

	_, text := l.control("GET", "/faults", "", testPassword)
	var states []FaultState
	l.must(json.Unmarshal([]byte(text), &states))
	if len(states) != 2 || states[0].Used != 1 || states[1].Used != 0 || states[1].Kind != "session_expired" {
		t.Errorf("%+v", states)
	}
	if _, text := l.control("DELETE", "/faults", "", testPassword); !strings.Contains(text, `"removed":2`) {
		t.Error(text)
	}
	l.must(l.reconfigure(types.VirtualMachineConfigSpec{Annotation: "a"}))
}

func TestAFailureOfTheLabIsAFaultOfItsRequest(t *testing.T) {
	l := startLab(t, quick)
	admit := l.server.registry.Handler
	l.server.registry.Handler = func(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if method.Name == "CurrentTime" {
			panic("broken <inside>")
		}
		return admit(ctx, method)
	}
	_, err := methods.GetCurrentTime(l.ctx, l.client)
	wantFault[types.SystemError](t, err)
	if err == nil || !strings.Contains(err.Error(), "broken <inside>") {
		t.Errorf("it says: %v", err)
	}
	m := l.server.order[0]
	var failed types.ManagedObjectReference
	m.locked(func(ctx *simulator.Context) {
		failed = m.startTask(ctx, "resetVM", "reset", func(*simulator.Context) { panic("broken later") })
		m.after(0, func(*simulator.Context) { panic("broken at a boot") })
	})
	err = object.NewTask(l.client.Client, failed).Wait(l.ctx)
	wantFault[types.SystemError](t, err)
	m.locked(func(*simulator.Context) { m.pending = &pending{id: "none"} }) // whose answer lets nothing go on
	wantFault[types.SystemError](t, l.vm.Answer(l.ctx, "none", "1"))
	if state, err := l.vm.PowerState(l.ctx); err != nil || state == "" {
		t.Errorf("the next request: %q %v", state, err)
	}
}

// A request that fails inside the simulator's own method leaves its object free for later requests.
func TestAFailureOfTheSimulatorHangsNoLaterRequest(t *testing.T) {
	l := startLab(t, quick)
	fields, err := object.GetCustomFieldsManager(l.client.Client)
	l.must(err)
	field, err := fields.Add(l.ctx, "note", "VirtualMachine", nil, nil)
	l.must(err)
	nobody := types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-none"}
	wantFault[types.SystemError](t, fields.Set(l.ctx, nobody, field.Key, "a"))
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	l.must(fields.Set(ctx, l.vm.Reference(), field.Key, "b"))
}
