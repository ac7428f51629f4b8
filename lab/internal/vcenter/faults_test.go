package vcenter

import (
	"slices"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

const quick = "boot: {tools_seconds: 0.01, sql_seconds: 0, shutdown_seconds: 0}\n"

func TestAReconfigureIsRefusedOnce(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: reconfigure_refused, boot: 2}]")
	l.must(l.powerOff())
	wantFault[types.SystemError](t, l.reconfigure(spec{NumCoresPerSocket: number(int32(8))}))
	l.must(l.reconfigure(spec{NumCoresPerSocket: number(int32(8))}))
}

func TestAFaultWithTimesZeroStrikesAlways(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: power_on_refused, times: 0}]\n"+offVM)
	for range 3 {
		wantFault[types.GenericVmConfigFault](t, l.powerOn())
	}
}

func TestAShutdownThatNeverEnds(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: shutdown_never, vm: sql16, boot: 1}]")
	l.must(l.vm.ShutdownGuest(l.ctx))
	if vm := l.read(); vm.Runtime.PowerState != poweredOn || vm.Guest.GuestState != "running" {
		t.Errorf("power %s, guest %s", vm.Runtime.PowerState, vm.Guest.GuestState)
	}
	l.must(l.vm.ShutdownGuest(l.ctx))
	l.wait("runtime.powerState", poweredOff)
}

func TestToolsThatNeverComeLeaveSQLAlone(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: tools_never, boot: 2}]")
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.eventually("SQL listens", l.service.answers)
	if got := l.read().Guest.ToolsRunningStatus; got != "guestToolsNotRunning" {
		t.Errorf("Tools are %s", got)
	}
}

func TestAStuckTopologyIsThatOfTheBootBefore(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: topology_stuck, boot: 2}]")
	l.must(l.powerOff())
	l.must(l.reconfigure(spec{NumCoresPerSocket: number(int32(8))}))
	l.must(l.powerOn())
	l.eventually("SQL listens", l.service.answers)
	if boot := l.service.lastBoot(); boot.Sockets != 4 || !slices.Equal(sizes(boot), []int{4, 4, 4, 4}) {
		t.Errorf("boot %+v, want the first boot's four nodes", boot)
	}
}

func TestSQLFaultsReachTheBootThatTheyName(t *testing.T) {
	l := startLab(t, quick+`faults: [{kind: drop_mid_result, rows: 100, boot: 2}, {kind: slow, factor: 1.5, boot: 2}, {kind: login_refused, boot: 2},
  {kind: database_recovering, boot: 2}, {kind: sql_never, boot: 3}]`)
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.eventually("boot 2", func() bool { return l.service.started() == 2 })
	if f := l.service.lastBoot().Faults; f.DropAfterRows != 100 || f.SlowFactor != 1.5 || f.RefuseLogins != 18456 || !f.DatabaseRecovering || f.NeverListens {
		t.Errorf("boot 2: %+v", f)
	}
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.eventually("boot 3", func() bool { return l.service.started() == 3 })
	if f := l.service.lastBoot().Faults; !f.NeverListens || f.RefuseLogins != 0 {
		t.Errorf("boot 3: %+v", f)
	}
}

func TestSessionsExpire(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: session_expired, boot: 1}]\nvms: [{name: sql16, power: off}]")
	if _, err := l.vm.PowerOn(l.ctx); err != nil {
		t.Fatal(err)
	}
	var err error
	l.eventually("the session ends", func() bool {
		_, err = l.vm.PowerState(l.ctx)
		return err != nil
	})
	wantFault[types.NotAuthenticated](t, err)
	again := l.login(administrator)
	if _, err := l.find(again, "/DC0/vm/sql16").PowerState(l.ctx); err != nil {
		t.Errorf("after a new login: %v", err)
	}
}

func TestAQuestionHoldsAPowerOnUntilItIsAnswered(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: question, times: 2}]\n"+offVM)
	ask := func() (*object.Task, *types.VirtualMachineQuestionInfo) {
		task, err := l.vm.PowerOn(l.ctx)
		l.must(err)
		l.eventually("a question", func() bool { return l.read().Runtime.Question != nil })
		return task, l.read().Runtime.Question
	}
	task, question := ask()
	if len(question.Choice.ChoiceInfo) != 3 || l.read().Runtime.PowerState != poweredOff {
		t.Errorf("%+v", question)
	}
	wantFault[types.QuestionPending](t, l.powerOn())
	wantFault[types.InvalidArgument](t, l.vm.Answer(l.ctx, "x", "1"))
	l.must(l.vm.Answer(l.ctx, question.Id, "0"))
	wantFault[types.GenericVmConfigFault](t, task.Wait(l.ctx))
	task, question = ask()
	l.must(l.vm.Answer(l.ctx, question.Id, "1"))
	l.must(task.Wait(l.ctx))
	if vm := l.read(); vm.Runtime.PowerState != poweredOn || vm.Runtime.Question != nil {
		t.Errorf("%s, question %v", vm.Runtime.PowerState, vm.Runtime.Question)
	}
}

// A question on a running VM stops its guest and refuses every task until it is answered: Retry continues, Cancel ends.
func TestAQuestionStopsARunningVM(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: question_running, boot: 1}, {kind: question_running, boot: 2}]")
	for boot, answer := range []string{"0", "1"} {
		l.eventually("a question", func() bool { return l.read().Runtime.Question != nil })
		if !l.service.still.Load() || l.read().Runtime.PowerState != poweredOn {
			t.Error("the VM does not stand still, powered on")
		}
		wantFault[types.QuestionPending](t, l.powerOff())
		wantFault[types.QuestionPending](t, l.vm.ShutdownGuest(l.ctx))
		l.must(l.vm.Answer(l.ctx, l.read().Runtime.Question.Id, answer))
		if l.service.still.Load() {
			t.Error("the VM still stands after an answer")
		}
		if boot == 0 {
			l.must(l.powerOff())
			l.must(l.powerOn())
		}
	}
	if state := l.read().Runtime.PowerState; state != poweredOff {
		t.Errorf("cancelled, and %s", state)
	}
}

// One guest takes its time to shut down, the next does not.
func TestOneShutdownIsSlow(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: shutdown_slow, boot: 1, seconds: 0.4}]")
	began := time.Now()
	l.must(l.vm.ShutdownGuest(l.ctx))
	l.wait("runtime.powerState", poweredOff)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("off after %v", took)
	}
}
