package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/agent/runner/replay"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/phonesimtest"
	"phonerack/usb/phonesim/phonetest"
	"phonerack/usb/phonesim/screen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type live struct{}

func (live) Check() error { return nil }

// simulated attaches to a simulated phone with these apps, in a bubble; c is its
// clock, nil for the bubble's.
func simulated(t *testing.T, apps fs.FS, c *phonesimtest.Clock) *phone.Phone {
	t.Helper()
	display := screen.Config{Width: phonetest.Width, Height: phonetest.Height, Density: 140, Apps: apps, Seed: 1}
	config := phonetest.Config{Display: display}
	if c != nil {
		config.Display.Clock = c.Now
		config.Change = func(system *android.Config) { system.Clock, system.Sleep = c.Now, c.Sleep }
	}
	sim := phonetest.Start(t, config)
	conn, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p, err := phone.Attach(t.Context(), conn, phone.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const goal = "search the shop for a kettle and put it in the basket"

// recorded runs the shop's task once and returns its trajectory.
func recorded(t *testing.T, task runner.Task, decide planner.Planner) string {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil, nil)
		r := &runner.Runner{
			Observer: perception.NewObserver(p, perception.Options{}), Controls: p.Under(live{}), Planner: decide,
			Slot: 1, Phone: "SIM7", Trajectory: dir,
		}
		result, err := r.Run(t.Context(), task)
		if err != nil || result.Outcome != runner.Succeeded {
			t.Fatalf("%+v, %v", result, err)
		}
	})
	return dir
}

func shipped(t *testing.T) *script.Rules {
	t.Helper()
	rules, err := script.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// again takes a record again on a phone with these apps.
func again(t *testing.T, dir string, apps fs.FS, o replay.Options) (replay.Report, error) {
	t.Helper()
	rec, err := replay.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var report replay.Report
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, apps, nil)
		report, err = replay.Run(t.Context(), rec, replay.Phone{Source: p, Controls: p.Under(live{})}, o)
	})
	return report, err
}

func TestReplayFindsNothingOnTheSamePhone(t *testing.T) {
	dir := recorded(t, runner.Task{Goal: goal}, shipped(t))
	for _, fast := range []bool{false, true} {
		report, err := again(t, dir, nil, replay.Options{Fast: fast})
		if err != nil || report.Steps != report.Of || report.Steps < 4 || report.Differs != 0 || report.Result.Outcome != runner.Succeeded {
			t.Errorf("fast %t: %+v, %v", fast, report, err)
		}
	}
}

// thoughtful thinks about each decision.
type thoughtful struct {
	planner.Planner
	thinks time.Duration
}

func (p thoughtful) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	time.Sleep(p.thinks)
	return p.Planner.Decide(ctx, req)
}

// TestReplayKeepsTheTimeOfTheRecord: what an app does by itself comes at the same
// step, however long the planner thought, and how fast the replay is.
func TestReplayKeepsTheTimeOfTheRecord(t *testing.T) {
	for _, thinks := range []time.Duration{0, 400 * time.Millisecond, time.Second, 3 * time.Second, 20 * time.Second} {
		t.Run(thinks.String(), func(t *testing.T) {
			dir := recorded(t, runner.Task{Goal: goal}, thoughtful{shipped(t), thinks})
			rec, err := replay.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // another day
				c := phonesimtest.NewClock(rec.Task.Started)
				p := simulated(t, nil, c)
				report, err := replay.Run(t.Context(), rec, replay.Phone{Source: p, Controls: p.Under(live{})}, replay.Options{Fast: true, At: c.Set})
				if err != nil || report.Steps != report.Of {
					t.Errorf("by the record's time: %v\n%s", err, strings.Join(report.Lines, "\n"))
				}
			})
			if report, err := again(t, dir, nil, replay.Options{}); err != nil {
				t.Errorf("as slowly as the record: %v\n%s", err, strings.Join(report.Lines, "\n"))
			}
		})
	}
}

// alter copies a record with one line of steps.jsonl changed. Unless forged is
// false its sum is made to fit.
func alter(t *testing.T, dir string, forged bool, change func(s *record.Step) bool) (copied string, step int) {
	t.Helper()
	copied = t.TempDir()
	for _, name := range []string{"task.json", "steps.jsonl"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "steps.jsonl" {
			var out bytes.Buffer
			for line := range bytes.Lines(b) {
				var s record.Step
				if err := json.Unmarshal(line, &s); err != nil {
					t.Fatal(err)
				}
				if step == 0 && change(&s) {
					step = s.N
					if forged {
						s.Sum = s.SumOf()
					}
				}
				line, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(line, '\n'))
			}
			b = out.Bytes()
		}
		if err := os.WriteFile(filepath.Join(copied, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if step == 0 {
		t.Fatal("nothing was altered")
	}
	return copied, step
}

// wantDiffers wants a refusal that names the step and says what.
func wantDiffers(t *testing.T, report replay.Report, err error, step int, what string) {
	t.Helper()
	if !wire.Is(err, wire.ReplayDiffers) {
		t.Fatalf("not refused: %v, %+v", err, report)
	}
	args := wire.From(err).Args
	reason, _ := args["reason"].(string)
	if args["step"] != step || report.Differs != step || !strings.Contains(reason, what) {
		t.Errorf("step %v (want %d): %s (want %q)\n%s", args["step"], step, reason, what, strings.Join(report.Lines, "\n"))
	}
}

func TestAlteringOneDecisionFailsNamingTheStep(t *testing.T) {
	dir := recorded(t, runner.Task{Goal: goal}, shipped(t))
	args := func(s *record.Step, tool, old, new string) bool {
		if s.Tool != tool || !strings.Contains(string(s.Arguments), old) {
			return false
		}
		s.Arguments = json.RawMessage(strings.Replace(string(s.Arguments), old, new, 1))
		return true
	}
	for _, c := range []struct {
		name   string
		change func(s *record.Step) bool
		what   string
	}{
		{"another element", func(s *record.Step) bool {
			if s.Tool != "tap" {
				return false
			}
			var m map[string]int
			if json.Unmarshal(s.Arguments, &m) != nil {
				return false
			}
			m["element"]--
			b, err := json.Marshal(m)
			s.Arguments = b
			return err == nil
		}, "target"},
		{"another text", func(s *record.Step) bool { return args(s, "input_text", "kettle", "kettl") }, "Results"},
		{"another app", func(s *record.Step) bool { return args(s, "launch_app", "shop", "messenger") }, "app com.phonerack.messenger"},
		{"another message", func(s *record.Step) bool { return args(s, "finish", "kettle is", "kettle was") }, "message"},
		{"another end", func(s *record.Step) bool { return args(s, "finish", "true", "false") }, "end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			altered, step := alter(t, dir, true, c.change)
			report, err := again(t, altered, nil, replay.Options{Fast: true})
			wantDiffers(t, report, err, step, c.what)
		})
		t.Run(c.name+", its sum is not made to fit", func(t *testing.T) {
			altered, step := alter(t, dir, false, c.change)
			report, err := again(t, altered, nil, replay.Options{Fast: true})
			wantDiffers(t, report, err, step, "altered")
		})
	}
	t.Run("another time to wait, which no screen shows", func(t *testing.T) {
		waits := written("launch_app {\"package\":\"com.phonerack.shop\"}", `wait {"ms":1500}`, `finish {"success":true,"message":"x"}`)
		dir := recorded(t, runner.Task{Goal: "wait"}, waits)
		altered, step := alter(t, dir, false, func(s *record.Step) bool { return args(s, "wait", "1500", "1400") })
		report, err := again(t, altered, nil, replay.Options{Fast: true})
		wantDiffers(t, report, err, step, "altered")
	})
}

// written is a planner with one answer after the other, each "tool arguments".
// $gen stands for the number of the screen.
func written(answers ...string) *lines { return &lines{answers} }

type lines struct{ left []string }

func (l *lines) Decide(_ context.Context, req planner.Request) (planner.Decision, error) {
	if len(l.left) == 0 {
		return planner.Decision{}, wire.Refuse(wire.ProviderAuth, nil)
	}
	answer := l.left[0]
	l.left = l.left[1:]
	_, at, _ := strings.Cut(req.UserPrompt, "\nscreen ")
	generation, _, _ := strings.Cut(at, ":")
	tool, args, _ := strings.Cut(strings.ReplaceAll(answer, "$gen", generation), " ")
	return planner.Decision{Tool: tool, Arguments: json.RawMessage(args)}, nil
}

// edited are the shipped apps with one text of a file replaced.
func edited(t *testing.T, file, old, new string) fs.FS {
	t.Helper()
	apps := os.DirFS("../../../usb/phonesim/screen/apps")
	copied := fstest.MapFS{}
	err := fs.WalkDir(apps, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(apps, name)
		if name == file {
			if !bytes.Contains(b, []byte(old)) {
				t.Errorf("%s does not hold %q", file, old)
			}
			b = bytes.Replace(b, []byte(old), []byte(new), 1)
		}
		copied[name] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestAlteringOneScreenOfTheAppFailsNamingTheStep(t *testing.T) {
	dir := recorded(t, runner.Task{Goal: goal}, shipped(t))
	rec, err := replay.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The step before which the altered screen comes up: it is its effect that differs.
	leadsTo := func(activity string) int {
		for i := range rec.Steps {
			if rec.Steps[i].Activity == activity {
				return rec.Steps[i-1].N
			}
		}
		t.Fatalf("no step on %s", activity)
		return 0
	}
	for _, c := range []struct {
		name, file, old, new, what string
		step                       int
	}{
		{"a button says something else", "com.phonerack.shop/app.yaml", "add: {en: Add to basket", "add: {en: Buy", "Buy", leadsTo(".ProductActivity")},
		{"a product costs more", "com.phonerack.shop/products.yaml", "price: 24.9", "price: 25.9", "$25.90", leadsTo(".MainActivity")},
		{"results are counted in other words", "com.phonerack.shop/app.yaml", "found: {en: \"Products found", "found: {en: \"Items found", "Items", leadsTo(".ResultsActivity")},
		{"another icon", "com.phonerack.shop/app.yaml", "app_name: {en: Shop", "app_name: {en: Mall", "Mall", rec.Steps[0].N},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := again(t, dir, edited(t, c.file, c.old, c.new), replay.Options{Fast: true})
			wantDiffers(t, report, err, c.step, "")
			if lines := strings.Join(report.Lines, "\n"); !strings.Contains(lines, c.what) {
				t.Errorf("the difference does not tell %q:\n%s", c.what, lines)
			}
		})
	}
}

func TestReplayOfARecordThatWasCutOff(t *testing.T) {
	dir := recorded(t, runner.Task{Goal: goal}, shipped(t))
	whole, err := replay.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	task := whole.Task
	task.End = nil
	b, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "task.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	steps, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "steps.jsonl"), steps[:len(steps)-100], 0o600); err != nil { // in the middle of the last line
		t.Fatal(err)
	}
	report, err := again(t, dir, nil, replay.Options{Fast: true})
	if err != nil || report.Of != len(whole.Steps)-1 || report.Steps != report.Of {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReplayTypesParametersThatItIsGiven(t *testing.T) {
	task := runner.Task{Goal: "look for it", Params: map[string]string{"item": "kettle", "unused": "12345678"}}
	dir := recorded(t, task, written(
		`launch_app {"package":"com.phonerack.shop"}`, `input_text {"element":2,"generation":$gen,"text":"kettle"}`,
		`finish {"success":true,"message":"typed kettle"}`))
	kept, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil || bytes.Contains(kept, []byte(`"text":"kettle"`)) || bytes.Contains(kept, []byte("typed kettle")) {
		t.Errorf("the record holds the value:\n%s", kept)
	}
	if _, err := again(t, dir, nil, replay.Options{Fast: true}); !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "item") {
		t.Errorf("without its value: %v", err)
	}
	report, err := again(t, dir, nil, replay.Options{Fast: true, Params: map[string]string{"item": "kettle"}})
	if err != nil {
		t.Errorf("%v\n%s", err, strings.Join(report.Lines, "\n"))
	}
	report, err = again(t, dir, nil, replay.Options{Fast: true, Params: map[string]string{"item": "teapot"}})
	if err != nil { // nothing on the screens depends on it
		t.Errorf("%v\n%s", err, strings.Join(report.Lines, "\n"))
	}
}

func TestLoadRefusesDamagedRecords(t *testing.T) {
	const (
		task = `{"version":1,"goal":"x","max_steps":3,"popups":true,"slot":1,"phone":{"rotation":0},"started":"2026-01-02T03:04:05Z","end":{"at":"2026-01-02T03:04:06Z","outcome":"succeeded","message":"","steps":1,"tokens":1,"wrote":false}}`
		step = `{"n":1,"at":"2026-01-02T03:04:05Z","times":{"observe_ms":0,"decide_ms":0,"act_ms":0,"settle_ms":0,"all_ms":0},"screen":1,"hash":"0","size":[1,1],"tool":"tap","arguments":{},"decision":0,"outcome":"done","effect":"no change"}` + "\n"
	)
	write := func(name, task, steps string) string {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"task.json": task, "steps.jsonl": steps} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	if rec, err := replay.Load(write("good", task, step)); err != nil || len(rec.Steps) != 1 {
		t.Fatalf("%+v, %v", rec, err)
	}
	for _, c := range []struct{ name, task, steps, want string }{
		{"no task", "", step, "task.json cannot be used"},
		{"half a task", task[:40], step, "unexpected EOF"},
		{"another version", strings.Replace(task, `"version":1`, `"version":9`, 1), step, "version 9"},
		{"no goal", strings.Replace(task, `"goal":"x"`, `"goal":""`, 1), step, "no goal"},
		{"an unknown name", strings.Replace(task, `"slot":1`, `"slot":1,"x":1`, 1), step, `unknown field "x"`},
		{"two tasks", task + task, step, "something follows"},
		{"a huge task", task + strings.Repeat(" ", 1<<20), step, "larger than"},
		{"a line that is none", task, "hello\n", "line 1 of steps.jsonl"},
		{"a line without its end", task, strings.TrimSuffix(step, "\n"), "has no end"},
		{"a long line", task, strings.Repeat("x", 2<<20) + "\n", "longer than"},
		{"a line twice", task, step + step, "line 2 of steps.jsonl cannot be used because it is step 1"},
		{"no decision", task, strings.Replace(step, `"tool":"tap",`, "", 1), "no decision"},
		{"no outcome", task, strings.Replace(step, `"outcome":"done",`, "", 1), "no outcome"},
		{"an unknown kind", task, strings.Replace(step, `"n":1,`, `"n":1,"kind":"dance",`, 1), `kind "dance"`},
		{"a bad refusal", task, strings.Replace(step, `"effect"`, `"refusal":{"code":"BAD CODE"},"effect"`, 1), "not of the form"},
	} {
		_, err := replay.Load(write(c.name, c.task, c.steps))
		if !errors.Is(err, record.ErrDamaged) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := replay.Load(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"version":1,"goal":"x"}`), []byte("{\"n\":1,\"kind\":\"failed\",\"outcome\":\"failed\"}\n"))
	f.Fuzz(func(t *testing.T, task, steps []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"task.json": task, "steps.jsonl": steps} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := replay.Load(dir)
		if err == nil && rec.Task.Goal == "" {
			t.Error("a record without a goal")
		}
	})
}
