package firmware

import (
	"log/slog"
	"testing"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

func TestAQuestionTakesOneAnswerWhichIsMaskedAsTheRecordCallsIt(t *testing.T) {
	answers, changed := make(chan string, 1), make(chan struct{})
	waiting := &task{
		id: "t", log: slog.New(slog.DiscardHandler), answers: answers, changed: changed,
		status: action.TaskStatus{ID: "t", State: action.Waiting, Question: &action.Question{Text: "Which?"}, Steps: 2},
	}
	r := &Rack{tasks: map[string]*task{"t": waiting}}
	status, err := r.AnswerTask("t", "hunter2", "somebody")
	if err != nil || status.State != action.Running || status.Question != nil {
		t.Fatalf("%+v, %v", status, err)
	}
	select {
	case <-changed:
	default:
		t.Error("those who watch are not told")
	}
	if got := <-answers; got != "hunter2" {
		t.Errorf("the task gets %q", got)
	}
	if _, err := r.AnswerTask("t", "another", "somebody"); !wire.Is(err, wire.TaskNotWaiting) || len(answers) != 0 {
		t.Errorf("a second answer: %v", err)
	}
	status.Message = "hunter2"
	if got := waiting.written(status).Message; got != "(answer 3)" {
		t.Errorf("written down: %q", got)
	}
}
