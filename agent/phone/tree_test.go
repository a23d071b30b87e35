package phone

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone/phonetest"
)

const goodTree = `<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation="0"><node text="OK" package="com.shop" /></hierarchy>`

var dumpFile = regexp.MustCompile(`/data/local/tmp/phonerack-[a-z0-9]+-\d+\.xml`)

// wrote is the answer of a dumper that has written tree to the file asked for.
func wrote(r phonetest.Request, tree string) phonetest.Reply {
	return phonetest.Reply{Stdout: "UI hierchary dumped to: " + dumpFile.FindString(r.Command) + "\n" + tree}
}

func TestTreeDialogues(t *testing.T) {
	type turn = func(phonetest.Request) phonetest.Reply
	ok := func(r phonetest.Request) phonetest.Reply { return wrote(r, goodTree) }
	says := func(stdout, stderr string) turn {
		return func(phonetest.Request) phonetest.Reply { return phonetest.Reply{Stdout: stdout, Stderr: stderr} }
	}
	notIdle := says("ERROR: could not get idle state.\n", "cat: x: No such file or directory\n")
	noRoot := says("ERROR: null root node returned by UiTestAutomationBridge.\n", "cat: x\n")
	terminal := says(goodTree+"UI hierchary dumped to: /dev/tty\n", "")

	for name, c := range map[string]struct {
		turns []turn
		want  []string // what each request is: file, tty, with + for compressed
		err   error
	}{
		"at once": {[]turn{ok}, []string{"file"}, nil},
		"newer spelling": {[]turn{func(r phonetest.Request) phonetest.Reply {
			return phonetest.Reply{Stdout: "UI hierarchy dumped to: " + dumpFile.FindString(r.Command) + "\r\n" + goodTree}
		}}, []string{"file"}, nil},
		"behind a warning": {[]turn{func(r phonetest.Request) phonetest.Reply {
			return phonetest.Reply{Stdout: "WARNING: linker: x\n" + wrote(r, goodTree).Stdout}
		}}, []string{"file"}, nil},
		"not idle, then compressed": {[]turn{notIdle, ok}, []string{"file", "file+"}, nil},
		"never idle":                {[]turn{notIdle, notIdle}, []string{"file", "file+"}, ErrNotIdle},
		"no root, then one":         {[]turn{noRoot, noRoot, ok}, []string{"file", "file", "file"}, nil},
		"never a root":              {[]turn{noRoot, noRoot, noRoot, noRoot, noRoot}, []string{"file", "file", "file", "file", "file"}, ErrNoRoot},
		"silent failure":            {[]turn{says("", ""), terminal}, []string{"file", "tty"}, nil},
		"crash": {
			[]turn{says("java.lang.NullPointerException: x\n", ""), says("java.io.FileNotFoundException: /dev/tty\n", ""), ok},
			[]string{"file", "tty", "file"},
			nil,
		},
		"file of an earlier screen": {[]turn{
			says("ERROR: could not get idle state.\n"+goodTree, ""), ok,
		}, []string{"file", "file+"}, nil},
		"status of another file": {[]turn{says("UI hierchary dumped to: /sdcard/window_dump.xml\n"+goodTree, ""), terminal}, []string{"file", "tty"}, nil},
		"status only in the text": {
			[]turn{says(strings.Replace(goodTree, "OK", "UI hierchary dumped to: x", 1), ""), terminal},
			[]string{"file", "tty"},
			nil,
		},
		"truncated file": {[]turn{func(r phonetest.Request) phonetest.Reply {
			return wrote(r, goodTree[:len(goodTree)-3])
		}, terminal}, []string{"file", "tty"}, nil},
		"empty hierarchy": {[]turn{func(r phonetest.Request) phonetest.Reply {
			return wrote(r, `<?xml version='1.0' ?><hierarchy rotation="0" />`)
		}, ok}, []string{"file", "file"}, nil},
		"terminal without status": {
			[]turn{says("", ""), says(goodTree, ""), says("", ""), says(goodTree[:90], ""), says("", "")},
			[]string{"file", "tty", "file", "tty", "file"},
			ErrNoDump,
		},
		"connection lost": {[]turn{func(phonetest.Request) phonetest.Reply { return phonetest.Reply{Err: errLost} }}, []string{"file"}, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				files := map[string]bool{}
				p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
					rest, ok := strings.CutPrefix(r.Command, "uiautomator dump ")
					if !ok {
						return phonetest.Reply{}, false
					}
					kind, plus := "file", ""
					if rest, ok = strings.CutPrefix(rest, "--compressed "); ok {
						plus = "+"
					}
					if r.Exec {
						kind = "tty"
						if rest != "/dev/tty" {
							t.Errorf("sent %q", r.Command)
						}
					} else {
						file := dumpFile.FindString(rest)
						if file == "" || files[file] || rest != file+" 2>&1; cat "+file+"; rm -f "+file {
							t.Errorf("sent %q", r.Command)
						}
						files[file] = true
					}
					asked = append(asked, kind+plus)
					if len(asked) > len(c.turns) {
						t.Fatalf("a request too many: %q", asked)
					}
					return c.turns[len(asked)-1](r), true
				})
				tree, err := p.Tree(t.Context())
				if !errors.Is(err, c.err) || c.err == nil && string(tree) != goodTree {
					t.Errorf("got %q, %v", tree, err)
				}
				if got, want := strings.Join(asked, " "), strings.Join(c.want, " "); got != want {
					t.Errorf("asked %s, want %s", got, want)
				}
			})
		})
	}
}

var errLost = errors.New("lost")

func TestTreeHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
			if strings.HasPrefix(r.Command, "uiautomator") {
				return phonetest.Reply{Hang: true}
			}
			return phonetest.Handset{}.Reply(r)
		})
		p, err := Attach(t.Context(), a, Options{TreeTimeout: 7 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err = p.Tree(t.Context()); err == nil || time.Since(start) != 7*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
