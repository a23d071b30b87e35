package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update and look at the difference):\n%s", name, got)
	}
}

// estimates are tokens, which follow the words of the tools.
var estimates = regexp.MustCompile(`("tokens":|, |<dt>Tokens</dt><dd>)(\d+)(,"| tokens|</dd>)`)

func TestTrajectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "task", "attempt-1")
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: `a.<script>alert("x")</script>`, pictures: true}
		r, _ := newRunner(s,
			wire.Refuse(wire.NoToolCall, map[string]any{"detail": "<em>it</em> said nothing"}),
			`launch_app {"package":"a.shop"}`,
			`input_text {"text":"<b>\"tea\" & more</b>","element":0,"generation":$gen}`,
			`tap {"element":1,"generation":99}`,
			tapAdd,
			`swipe {"direction":"up"}`,
			`finish {"success":true,"message":"</p>done"}`)
		s.write = func(act string) error {
			if act == "tap 1" {
				s.count++
				return phone.ErrUnknownOutcome
			}
			return nil
		}
		r.Trajectory = dir
		r.Phone = `Pixel & "R58N"`
		r.Clock = func() time.Time { return time.Now().UTC() }
		risky := task
		risky.Goal = `tea <img src=x onerror=alert(1)> in "basket"`
		wantEnd(t, run(t, r, risky), Succeeded, "")
	})

	lines, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "steps.jsonl", estimates.ReplaceAll(lines, []byte("$1 0 $3")))
	n := 0
	for sc := bufio.NewScanner(bytes.NewReader(lines)); sc.Scan(); {
		var step Step
		if err := json.Unmarshal(sc.Bytes(), &step); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
		n++
	}
	html, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "index.html", estimates.ReplaceAll(html, []byte("$1 0 $3")))
	for _, bad := range []string{"<script", "<img src=x", "<b>", "http://", "https://", "onerror=alert(1)>"} {
		if strings.Contains(string(html), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	if want := []string{"001.jpg", "002.jpg", "003.jpg", "004.jpg", "005.jpg", "006.jpg", "007.jpg", "index.html", "steps.jsonl", "task.json"}; !slices.Equal(names, want) || n != 7 {
		t.Errorf("%d lines, files %q", n, names)
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(hidden) > 0 {
		t.Errorf("left behind: %q, %v", hidden, err)
	}
}

func TestTrajectoryFaultsDoNotStopTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := &stage{app: "a.shop", pictures: true}
		r, _ := newRunner(s, tapAdd, finishWell)
		r.Trajectory = dir
		s.write = func(string) error { return os.Mkdir(filepath.Join(dir, "001.jpg"), 0o755) }
		result, err := r.Run(t.Context(), task)
		wantEnd(t, result, Succeeded, "")
		if err == nil || !strings.Contains(err.Error(), "001.jpg") || s.count != 1 {
			t.Errorf("%v, %d in the basket", err, s.count)
		}
	})
	t.Run("no folder, no start", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, finishWell)
		r.Trajectory = filepath.Join(file, "sub")
		if result, err := r.Run(t.Context(), task); err == nil || result.Outcome != Failed || len(p.requests) > 0 || s.looks > 0 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestPasswordsAreNotKept(t *testing.T) {
	var s Step
	s.Arguments, s.Tool, s.N = json.RawMessage(`{"text":"hunter2","element":0,"generation":1}`), "input_text", 1
	acted(&s, tools.Outcome{Target: &perception.Element{Role: "edit", Text: "•••", Password: true, Hint: "PIN"}})
	if line := pastLine(&s); strings.Contains(line, "hunter2") || !strings.Contains(line, "(not kept)") || strings.Contains(line, "•") {
		t.Error(line)
	}
}
