package factory_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"phonerack/firmware/factory"
)

// rack writes a state folder as a rack in use has it, an identity beside it, and the plan of a reset.
func rack(t *testing.T) factory.Plan {
	t.Helper()
	dir := t.TempDir()
	p := factory.Plan{
		State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run/cloud"), Identity: filepath.Join(dir, "etc/identity.json"), Database: "rackd.db",
		Kept: []string{filepath.Join(dir, "state/etc/board.toml"), filepath.Join(dir, "state/helpers")},
	}
	p.Reduce = func(from, to string) error {
		raw, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		old, _, _ := strings.Cut(string(raw), "+")
		return os.WriteFile(to, []byte(old), 0o600)
	}
	for _, name := range []string{
		"state/rackd.db", "state/rackd.db.copy", "state/rackd.db.lock", "state/rackd.db.damaged-1", "state/generation", "state/adbkey", "state/adbkey.next",
		"state/tasks/1/step.json", "state/inputs/abc", "state/log/1.log", "state/.tmp-1", "state/etc/board.toml", "state/etc/old.toml", "state/helpers/a/app.apk",
		"run/cloud/key.pem", "etc/identity.json", "etc/rackd.toml",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("power+all else"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// files lists what is there.
func files(t *testing.T, p factory.Plan) string {
	t.Helper()
	dir := filepath.Dir(p.State)
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

const (
	clean    = "etc/rackd.toml state/adbkey state/adbkey.next state/etc/board.toml state/generation state/helpers/a/app.apk state/rackd.db state/unenrolled"
	keyless  = "etc/rackd.toml state/etc/board.toml state/generation state/helpers/a/app.apk state/rackd.db state/unenrolled"
	steps    = 7
	database = "power"
)

func TestNothingIsRemovedUnlessItWasAskedFor(t *testing.T) {
	p := rack(t)
	before := files(t, p)
	if _, did, err := factory.Carry(p); did || err != nil || files(t, p) != before {
		t.Errorf("done %v, %v; there is %s", did, err, files(t, p))
	}
}

// TestAResetIsDoneAsAWholeOverEachCut cuts the power before each step, and once more in the next start.
func TestAResetIsDoneAsAWholeOverEachCut(t *testing.T) {
	cut := errors.New("the power is cut")
	for _, withKeys := range []bool{false, true} {
		for first := range steps {
			for second := range steps {
				t.Run(fmt.Sprintf("keys %v, cut at %d and %d", withKeys, first, second), func(t *testing.T) {
					p := rack(t)
					if err := factory.Ask(p.State, p.Identity, factory.Mark{By: "kim", Keys: withKeys}); err != nil {
						t.Fatal(err)
					}
					for _, at := range []int{first, second} {
						n := 0
						p.Step = func(string) error {
							if n++; n == at+1 {
								return cut
							}
							return nil
						}
						if m, did, err := factory.Carry(p); !did || !errors.Is(err, cut) || m.By != "kim" {
							t.Fatalf("cut at %d: %+v %v %v", at, m, did, err)
						}
						if _, is, err := factory.Asked(p.State); !is || err != nil {
							t.Fatalf("cut at %d: the mark is gone, %v", at, err)
						}
					}
					n := 0
					p.Step = func(string) error { n++; return nil }
					if _, did, err := factory.Carry(p); !did || err != nil || n != steps {
						t.Fatalf("done %v, %v, in %d steps", did, err, n)
					}
					want := clean
					if withKeys {
						want = keyless
					}
					if got := files(t, p); got != want {
						t.Errorf("there is %s\nwant %s", got, want)
					}
					if raw, err := os.ReadFile(filepath.Join(p.State, "rackd.db")); string(raw) != database || err != nil {
						t.Errorf("the database has %q, %v", raw, err)
					}
					if _, did, err := factory.Carry(p); did || err != nil {
						t.Errorf("done again: %v, %v", did, err)
					}
				})
			}
		}
	}
}

func TestAStepThatFailsLeavesTheRestToTheNextStart(t *testing.T) {
	p := rack(t)
	if err := factory.Ask(p.State, p.Identity, factory.Mark{By: "kim"}); err != nil {
		t.Fatal(err)
	}
	reduce, full := p.Reduce, errors.New("the disk is full")
	p.Reduce = func(string, string) error { return full }
	if _, did, err := factory.Carry(p); !did || !errors.Is(err, full) {
		t.Errorf("done %v, %v", did, err)
	}
	p.Reduce = reduce
	if _, did, err := factory.Carry(p); !did || err != nil || files(t, p) != clean {
		t.Errorf("done %v, %v; there is %s", did, err, files(t, p))
	}
}

func TestAMarkThatCannotBeReadIsAMark(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "half": `{"by":"ki`, "long": strings.Repeat("x", 5000), "another": "[1]"} {
		p := rack(t)
		if err := os.WriteFile(filepath.Join(p.State, "factory-reset"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, is, err := factory.Asked(p.State); !is || err != nil || m.Keys || m.By != "unknown" {
			t.Errorf("%s: %+v %v %v", name, m, is, err)
		}
	}
}

func TestAnIdentityMakesARackEnrolledAgain(t *testing.T) {
	p := rack(t)
	if factory.Unenrolled(p.State) {
		t.Error("unenrolled without a reset")
	}
	if err := factory.Ask(p.State, p.Identity, factory.Mark{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := factory.Carry(p); err != nil || !factory.Unenrolled(p.State) {
		t.Errorf("after the reset: %v", err)
	}
	if err := factory.Enrolled(p.State); err != nil || factory.Unenrolled(p.State) {
		t.Errorf("with an identity: %v", err)
	}
	if err := factory.Enrolled(p.State); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestWhatIsNamedStaysHoweverItIsWritten: a path that is not found again by its letters would lose what it names, or end each
// start with an error.
func TestWhatIsNamedStaysHoweverItIsWritten(t *testing.T) {
	for name, named := range map[string]func(dir string) []string{
		"a slash at the end": func(dir string) []string { return []string{dir + "/state/helpers/", dir + "/state/etc/board.toml/"} },
		"more than it needs": func(dir string) []string {
			return []string{dir + "//state/./helpers", dir + "/state/log/../etc/board.toml"}
		},
		"from here": func(dir string) []string {
			t.Chdir(dir)
			return []string{"state/helpers", "state/etc/board.toml"}
		},
		"by a link to the state folder": func(dir string) []string {
			return []string{dir + "/link/helpers", dir + "/link/etc/board.toml"}
		},
	} {
		p := rack(t)
		dir := filepath.Dir(p.State)
		if err := os.Symlink("state", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{p.State + "/", filepath.Join(dir, "link")} {
			p.State, p.Kept = state, named(dir)
			if err := factory.Ask(p.State, p.Identity, factory.Mark{By: "kim"}); err != nil {
				t.Fatal(err)
			}
			if _, did, err := factory.Carry(p); !did || err != nil {
				t.Errorf("%s: done %v, %v", name, did, err)
			}
			p.State = filepath.Join(dir, "state")
			if got := files(t, p); got != strings.Replace(clean, "state/adbkey ", "link state/adbkey ", 1) {
				t.Errorf("%s, the state folder as %s: there is %s", name, state, got)
			}
		}
	}
}

// TestWhatALinkLeadsToIsNotCleared: a link in the state folder to a folder that the configuration names something in.
func TestWhatALinkLeadsToIsNotCleared(t *testing.T) {
	p := rack(t)
	dir := filepath.Dir(p.State)
	if err := errors.Join(os.Rename(filepath.Join(p.State, "etc"), filepath.Join(dir, "site")), os.Symlink("../site", filepath.Join(p.State, "etc"))); err != nil {
		t.Fatal(err)
	}
	if err := factory.Ask(p.State, p.Identity, factory.Mark{By: "kim"}); err != nil {
		t.Fatal(err)
	}
	if _, did, err := factory.Carry(p); !did || err != nil {
		t.Errorf("done %v, %v", did, err)
	}
	for _, name := range []string{"site/board.toml", "site/old.toml", "state/etc/board.toml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
