package vcenter

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

// unanswered is what a task's work returns while it waits for a question's answer.
var unanswered = new(refusal)

// pending is a question that waits for an answer.
type pending struct {
	id, text string
	task     *simulator.Task // nil when no client's task waits for it
	answered func(ctx *simulator.Context, choice string) *refusal
}

// blocks is the refusal of whatever is asked of a VM that has a question.
func (p *pending) blocks() *refusal {
	message := "The operation is not allowed at the moment because the VM has a question pending: '" + p.text + "'."
	return &refusal{fault: &types.QuestionPending{Text: p.text}, message: message}
}

// ask shows a question with its choices, whose keys are their positions.
func (m *machine) ask(ctx *simulator.Context, text string, usual int32, labels []string, answered func(*simulator.Context, string) *refusal) {
	boot := m.boots.Load()
	if !m.isOn() {
		boot++ // the one to come
	}
	m.pending = &pending{id: fmt.Sprint(boot), text: text, answered: answered}
	choice := types.ChoiceOption{DefaultIndex: usual}
	for key, label := range labels {
		described := types.Description{Label: label, Summary: label}
		choice.ChoiceInfo = append(choice.ChoiceInfo, &types.ElementDescription{Key: fmt.Sprint(key), Description: described})
	}
	asked := types.VirtualMachineQuestionInfo{Id: m.pending.id, Text: text, Choice: choice}
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question", Val: asked}})
	m.lab.tell(Event{"event": "question", "vm": m.Name, "path": m.scenario.Path(), "boot": boot})
}

// asks raises the scenario's question, if any, for the next power-on.
func (m *machine) asks(ctx *simulator.Context) bool {
	if m.lab.faults.take(scenario.Question, m.scenario, int(m.boots.Load())+1) == nil {
		return false
	}
	text := "msg.uuid.altered:This virtual machine might have been moved or copied.\n" +
		"If you don't know, answer \"I Copied It\"."
	m.ask(ctx, text, 2, []string{"Cancel", "I Moved It", "I Copied It"}, func(ctx *simulator.Context, choice string) *refusal {
		if choice == "0" {
			return cannotPowerOn("The operation was cancelled by an answer")
		}
		return m.goOn(ctx)
	})
	return true
}

// stop makes a running VM stand still with a question, as one whose datastore is full. Text and choices are those of
// published support cases.
func (m *machine) stop(ctx *simulator.Context) {
	text := "msg.hbacommon.outofspace:There is no more space for virtual disk '" + m.Name + ".vmdk'. You might be able to " +
		"continue this session by freeing disk space on the relevant volume, and clicking Retry. Click Cancel to terminate this session."
	m.generation++ // what its boot would do next
	if m.service != nil {
		m.service.Pause()
	}
	m.ask(ctx, text, 0, []string{"Retry", "Cancel"}, func(ctx *simulator.Context, choice string) *refusal {
		if m.service != nil {
			m.service.Resume()
		}
		switch {
		case choice == "1":
			m.powerOff(ctx)
		case !m.toolsRunning():
			m.bootAfter(m.lab.config.Scenario.Boot)
		}
		return nil
	})
}

// AnswerVM answers the pending question: the operation continues, or is cancelled.
func (m *machine) AnswerVM(ctx *simulator.Context, req *types.AnswerVM) soap.HasFault {
	if m.pending == nil || req.QuestionId != m.pending.id {
		return &methods.AnswerVMBody{Fault_: invalidArgument("questionId", "no such question is pending").soap()}
	}
	asked := m.pending
	m.pending = nil
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question"}})
	refused := asked.answered(ctx, req.AnswerChoice)
	if asked.task != nil {
		m.lab.finish(asked.task, refused)
	}
	return &methods.AnswerVMBody{Res: new(types.AnswerVMResponse)}
}
