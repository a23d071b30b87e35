package orders_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"phonerack/cloud/api"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

// submit submits a task for a slot of the rack.
func (s *site) submit(goal, slot string, more ...string) (v fleet.Task) {
	s.T.Helper()
	s.Do(&v, append([]string{"task", "submit", "--goal", goal, "--rack", s.ID, "--slot", slot}, more...)...)
	return v
}

func TestTasksKeysAndRacksAsOperatorsHandleThem(t *testing.T) {
	s := newSite(t)

	s.In("a task is waited for, and its decisions are shown", func(t *testing.T) {
		v := s.submit("end", "1", "--wait")
		if v.State != wire.TaskSucceeded || len(v.Attempts) != 1 || v.Attempts[0].Message != "there is nothing to do" || v.Attempts[0].Rack != s.ID {
			t.Errorf("%+v", v)
		}
		var all []api.Decision
		s.Do(&all, "decisions", v.TaskID)
		if len(all) != 1 || all[0].ToolName != "finish" || all[0].StepIndex != 0 {
			t.Errorf("%+v", all)
		}
		var bad fleet.Task
		if exit := s.try(&bad, "task", "submit", "--goal", "nobody knows what this is", "--rack", s.ID, "--slot", "1", "--wait"); exit != 1 || bad.State != wire.TaskFailure {
			t.Errorf("exit code %d, %+v", exit, bad)
		}
	})
	s.In("a task that runs is cancelled", func(t *testing.T) {
		v := s.submit("wait", "1", "--key", "only-one")
		if again := s.submit("wait", "1", "--key", "only-one"); again.TaskID != v.TaskID {
			t.Errorf("the same key has made %s and %s", v.TaskID, again.TaskID)
		}
		s.taskState(v.TaskID, wire.TaskRunning)
		var list []fleet.Task
		s.Do(&list, "task", "list", "--state", "running", "--rack", s.ID)
		if len(list) != 1 || list[0].TaskID != v.TaskID {
			t.Errorf("%+v", list)
		}
		var told fleet.Task
		s.Do(&told, "task", "cancel", v.TaskID)
		if !told.Cancel {
			t.Errorf("%+v", told)
		}
		if v = s.taskState(v.TaskID, wire.TaskStopped); v.Attempts[0].Error == nil || v.Attempts[0].Error.Code != wire.TaskCancelled {
			t.Errorf("%+v", v.Attempts)
		}
		var again refused
		if exit := s.try(&again, "task", "answer", v.TaskID, "red"); exit != 1 || again.Error.Code != wire.TaskNotWaiting {
			t.Errorf("exit code %d, %+v", exit, again)
		}
	})
	s.In("a question is answered by an operator", func(t *testing.T) {
		v := s.submit("ask", "1")
		v = s.taskState(v.TaskID, wire.TaskWaiting)
		if v.Question == nil || v.Question.Text != "Which colour?" || !slices.Equal(v.Question.Choices, []string{"red", "blue"}) {
			t.Fatalf("%+v", v.Question)
		}
		s.Do(nil, "task", "answer", v.TaskID, "red")
		if v = s.taskState(v.TaskID, wire.TaskSucceeded); v.Attempts[0].Message != "it shall be red" {
			t.Errorf("%+v", v.Attempts)
		}
	})
	s.In("a new key seals while the old one is still known", s.rotateKeys)
	s.In("a revoked rack is nobody's any longer", func(t *testing.T) {
		var h fleet.Host
		s.Do(&h, "host", "revoke", s.ID)
		var all []fleet.Host
		s.Do(&all, "host", "list")
		if h.Revoked == 0 || len(all) != 1 || all[0].Revoked == 0 || all[0].Name != "site" {
			t.Errorf("%+v, %+v", h, all)
		}
		var r refused
		if exit := s.try(&r, "command", "send", "ping", s.ID); exit != 1 || r.Error.Code != wire.Conflict {
			t.Errorf("exit code %d, %+v", exit, r)
		}
	})
}

// refused is what rackcloud prints of a refusal.
type refused struct {
	Error wire.Refusal `json:"error"`
}

func (s *site) rotateKeys(t *testing.T) {
	key := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		s.Must(os.WriteFile(path, []byte("sk-"+name+"\n"), 0o600))
		return path
	}
	s.Do(nil, "provider", "add", "other", "--provider", "openai", "--model", "m", "--base-url", "https://127.0.0.1:1/v1", "--key", key("one"))
	profile := func() api.Provider {
		var all []api.Provider
		s.Do(&all, "provider", "list")
		i := slices.IndexFunc(all, func(p api.Provider) bool { return p.Name == "other" })
		if i < 0 {
			t.Fatalf("%+v", all)
		}
		return all[i]
	}
	s.Do(nil, "provider", "rotate", "other", "--key", key("two"))
	if p := profile(); p.KeyVersion != 2 || p.State != "ok" {
		t.Errorf("%+v", p)
	}
	var added struct {
		KeyID string `json:"key_id"`
	}
	s.Do(&added, "key", "add", filepath.Join(s.Cloud.State(), "kek"))
	if p := profile(); p.State != "ok" { // the service goes on with what it has read
		t.Errorf("%+v", p)
	}
	s.Must(s.Cloud.Close())
	s.Must(s.Cloud.Restart(s.Ctx))
	if p := profile(); p.State != "ok" {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(s.Cloud.Log(), added.KeyID) {
		t.Errorf("the log does not tell of the key %s", added.KeyID)
	}
	s.presence("online")
	var c fleet.Command
	s.Do(&c, "command", "send", "ping", s.ID, "--wait", "60s")
	if c.State != wire.CommandSucceeded {
		t.Errorf("%+v", c)
	}
}
