package vcenter

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

type taskCounter struct{ atomic.Int64 }

// newTask is a running task of an object, not yet known to any client.
func (s *Server) newTask(of types.ManagedObjectReference, name string) *simulator.Task {
	task := simulator.CreateTask(of, name, nil)
	task.Self = s.tasks.reference()
	task.Info.Key, task.Info.Task, task.Info.State = task.Self.Value, task.Self, types.TaskInfoStateRunning
	return task
}

func (c *taskCounter) reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Task", Value: fmt.Sprintf("task-lab-%d", c.Add(1))}
}

// startTask registers a task on the machine and runs work after the scenario's task time, holding
// the machine's lock. The client finds the outcome in the task, as with a real vCenter.
// name is the method in the API without "_Task"; operation as in its description.
func (m *machine) startTask(ctx *simulator.Context, name, operation string, work func(*simulator.Context) *refusal) types.ManagedObjectReference {
	task := m.lab.newTask(m.Self, name+"Task")
	task.Info.DescriptionId, task.Info.EntityName = "VirtualMachine."+operation, m.Name
	started := time.Now()
	task.Info.StartTime = &started
	if ctx.Session != nil {
		task.Info.Reason = &types.TaskReasonUser{UserName: ctx.Session.UserName}
	}
	m.lab.registry.Put(task)
	time.AfterFunc(seconds(m.lab.config.Scenario.Boot.TaskSeconds), func() {
		var refused *refusal
		m.locked(func(ctx *simulator.Context) {
			if refused = m.barred(method(name)); refused == nil {
				refused = surviving(func() *refusal { return work(ctx) })
			}
			if refused == unanswered {
				m.pending.task = task
			}
		})
		if refused != unanswered {
			m.lab.finish(task, refused)
		}
	})
	return task.Self
}

// barred is why no task of this kind may run now, or nil.
func (m *machine) barred(method string) *refusal {
	if m.pending != nil {
		return m.pending.blocks()
	}
	for _, refused := range []*refusal{m.lab.restricted(), m.methodDisabled(method), m.hostLost(method), m.settling(method)} {
		if refused != nil {
			return refused
		}
	}
	return nil
}

// method is the API's name of a task's method: PowerOnVM_Task of powerOnVM.
func method(name string) string { return strings.ToUpper(name[:1]) + name[1:] + "_Task" }

func (s *Server) finish(task *simulator.Task, refused *refusal) {
	changes := []types.PropertyChange{{Name: "info.completeTime", Val: time.Now()}}
	if refused == nil {
		changes = append(changes, types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateSuccess})
	} else {
		changes = append(changes,
			types.PropertyChange{Name: "info.error", Val: types.LocalizedMethodFault{
				Fault: refused.fault, LocalizedMessage: refused.message,
			}},
			types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateError})
	}
	ctx := s.context()
	s.registry.AtomicUpdate(ctx, task, changes)
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }
