package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// maxLearned bounds the result and answer lines of a prompt together, in bytes.
const maxLearned = 8 << 10

// learned are the result and answer lines, the oldest first.
type learned struct {
	lines []string
	bytes int
}

// add adds a line and drops the oldest ones that there is no room for.
func (l *learned) add(line string) {
	l.lines = append(l.lines, line)
	l.bytes += len(line)
	for l.bytes > maxLearned && len(l.lines) > 1 {
		l.bytes -= len(l.lines[0])
		l.lines = l.lines[1:]
	}
}

// learn keeps what a reading tool brought.
func (a *attempt) learn(step *Step, out tools.Outcome) {
	a.show = a.show || out.Screenshot
	if out.Result == "" {
		return
	}
	step.Result = clip(out.Result, tools.MaxResult)
	a.learned.add(fmt.Sprintf("result %d: %s", step.N, quote(step.Result)))
}

// maxAnswer bounds a person's answer, in characters.
const maxAnswer = 4000

// ask parks the attempt until a person has answered. The screen is looked at
// again afterwards. The answer may be a secret: it is not written down, and
// where it is typed as it is, the record holds its name.
func (a *attempt) ask(ctx context.Context, step *Step, q tools.Question) *Result {
	a.scene = nil
	a.tell(Waiting)
	begun := time.Now()
	answer, err := a.Ask(ctx, q)
	step.Times.Waited = time.Since(begun).Milliseconds()
	a.tell(Running)
	if err == nil {
		answer = clip(answer, maxAnswer)
		a.learned.add(fmt.Sprintf("answer %d: %s", step.N, quote(answer)))
		a.mask = a.mask.Whole(fmt.Sprintf("answer %d", step.N), answer)
		return nil
	}
	refusal, isRefusal := errors.AsType[*wire.Refusal](err)
	if ctx.Err() != nil && (!isRefusal || !final(refusal.Code)) {
		refusal = a.whyEnded(ctx)
	} else if !isRefusal {
		refusal = wire.From(err)
	}
	if refusal.Code == wire.DeadlinePassed {
		refusal = wire.Refuse(wire.QuestionUnanswered, map[string]any{"question": q.Text}).Because(refusal)
	}
	went(step, record.Partly, refusal)
	if ctx.Err() != nil || final(refusal.Code) || refusal.Code == wire.Internal || refusal.Code == wire.QuestionUnanswered {
		return a.ended(refusal)
	}
	return nil
}
