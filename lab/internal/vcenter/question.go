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

// pending is a question that waits for an answer, and what continues after it.
type pending struct {
	id   string
	task *simulator.Task // nil when no client's task waits for it
	goOn func(*simulator.Context) *refusal
}

const cancelChoice = "0"

// asks raises the scenario's question, if any, for the next power-on.
func (m *machine) asks(ctx *simulator.Context, goOn func(*simulator.Context) *refusal) bool {
	boot := int(m.boots.Load()) + 1
	if m.lab.faults.take(scenario.Question, m.scenario, boot) == nil {
		return false
	}
	m.pending = &pending{id: fmt.Sprintf("%d", boot), goOn: goOn}
	choice := func(key, label string) types.BaseElementDescription {
		return &types.ElementDescription{Key: key, Description: types.Description{Label: label, Summary: label}}
	}
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question", Val: types.VirtualMachineQuestionInfo{
		Id: m.pending.id,
		Text: "msg.uuid.altered:This virtual machine might have been moved or copied.\n" +
			"If you don't know, answer \"I Copied It\".",
		Choice: types.ChoiceOption{
			ChoiceInfo:   []types.BaseElementDescription{choice(cancelChoice, "Cancel"), choice("1", "I Moved It"), choice("2", "I Copied It")},
			DefaultIndex: 2,
		},
	}}})
	m.lab.tell(Event{"event": "question", "vm": m.Name, "path": m.scenario.Path(), "boot": boot})
	return true
}

// AnswerVM answers the pending question: the operation continues, or is cancelled.
func (m *machine) AnswerVM(ctx *simulator.Context, req *types.AnswerVM) soap.HasFault {
	if m.pending == nil || req.QuestionId != m.pending.id {
		return &methods.AnswerVMBody{Fault_: invalidArgument("questionId", "no such question is pending").soap()}
	}
	asked := m.pending
	m.pending = nil
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question"}})
	refused := cannotPowerOn("The operation was cancelled by an answer")
	if req.AnswerChoice != cancelChoice {
		refused = asked.goOn(ctx)
	}
	if asked.task != nil {
		m.lab.finish(asked.task, refused)
	}
	return &methods.AnswerVMBody{Res: new(types.AnswerVMResponse)}
}
