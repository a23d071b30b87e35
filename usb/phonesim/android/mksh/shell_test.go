package mksh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/usb/phonesim/android/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a System with a few files and commands.
type machine struct{ *memfs.View }

func newMachine(t testing.TB) *machine {
	t.Helper()
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	f := memfs.New(8<<20, now)
	for p, text := range map[string]string{
		"/d/a.txt": "alpha\n", "/d/b.txt": "beta\n", "/d/.hidden": "", "/d/run.sh": "echo script $1 $#\n", "/secret": "no\n",
	} {
		if err := f.Put(p, 0o644, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	root := f.As(0, 0)
	root.Chmod("/d", 0o777)
	root.Chmod("/secret", 0o600)
	root.Chmod("/d/run.sh", 0o755)
	return &machine{f.As(2000, 2000)}
}

func (m *machine) Open(p string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	f, err := m.View.Open(p, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (m *machine) ReadDir(p string) ([]fs.DirEntry, error) {
	infos, err := m.View.ReadDir(p)
	var list []fs.DirEntry
	for _, i := range infos {
		list = append(list, fs.FileInfoToDirEntry(i))
	}
	return list, err
}

func (m *machine) Which(name string) (string, bool) {
	switch path.Base(name) {
	case "cat", "yes", "sleep", "env", "boom", "wait4ever", "run":
		return "/bin/" + path.Base(name), true
	}
	return "", false
}

func (m *machine) Exec(ctx context.Context, p *Process) int {
	switch path.Base(p.Args[0]) {
	case "cat":
		if len(p.Args) > 1 {
			f, err := m.Open(path.Join("/", p.Dir, p.Args[1]), os.O_RDONLY, 0)
			if err != nil {
				return 1
			}
			defer f.Close()
			io.Copy(p.Stdout, f)
			return 0
		}
		io.Copy(p.Stdout, p.Stdin)
	case "yes":
		for ctx.Err() == nil {
			if _, err := io.WriteString(p.Stdout, "y\n"); err != nil {
				return 1
			}
		}
	case "sleep":
		d, _ := time.ParseDuration(p.Args[1])
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	case "env":
		io.WriteString(p.Stdout, strings.Join(p.Environ(), "\n")+"\n")
	case "boom":
		panic("boom")
	case "wait4ever":
		<-ctx.Done()
	case "run":
		return p.Run(ctx, p.Args[1:])
	}
	return 0
}

func runScript(t testing.TB, ctx context.Context, script, stdin string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errOut bytes.Buffer
	c := Config{
		System: newMachine(t), Env: map[string]string{"HOME": "/d", "HOSTNAME": "sim"}, Dir: "/d",
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errOut,
	}
	status = Run(ctx, c, script)
	return out.String(), errOut.String(), status
}

func TestScripts(t *testing.T) {
	tests := []struct {
		script, out, err string
		status           int
	}{
		{script: `echo a  "b  c" 'd $x'`, out: "a b  c d $x\n"},
		{script: `x=1; y=$x$x; echo ${y}2 ${z:-none}`, out: "112 none\n"},
		{script: `echo "a\tb"; echo -E 'a\tb'; echo -n x; echo 'end\c'`, out: "a\tb\na\\tb\nxend"},
		{script: `false; echo $?; true && echo yes || echo no; ! true; echo $?`, out: "1\nyes\n1\n"},
		{script: `exit 300`, status: 44},
		{script: `(exit 3); echo $?; (exit 4)`, out: "3\n", status: 4},
		{script: `nothere a b`, err: "/system/bin/sh: nothere: inaccessible or not found\n", status: 127},
		{script: `/d/nothere`, err: "/system/bin/sh: /d/nothere: inaccessible or not found\n", status: 127},
		{script: `/d/a.txt`, err: "/system/bin/sh: /d/a.txt: can't execute: Permission denied\n", status: 126},
		{script: `/d`, err: "/system/bin/sh: /d: can't execute: Is a directory\n", status: 126},
		{script: `./run.sh one; sh run.sh; sh -c 'echo $0 $1' n x`, out: "script one 1\nscript 0\nn x\n"},
		{script: `echo *.txt; echo /d/*.sh; echo *.none; set -f; echo *`, out: "a.txt b.txt\n/d/run.sh\n*.none\n*\n"},
		{script: `cat a.txt | cat | cat`, out: "alpha\n"},
		{script: `echo x > new; echo y >> new; cat new; cat < new`, out: "x\ny\nx\ny\n"},
		{script: `echo e >&2; nothere 2>/d/err; cat err`, out: "/system/bin/sh: nothere: inaccessible or not found\n", err: "e\n"},
		{script: `{ echo out; echo err >&2; } > both 2>&1; cat both`, out: "out\nerr\n"},
		{script: `cat < /none; echo $?`, out: "1\n", err: "/system/bin/sh: can't open /none: No such file or directory\n"},
		{script: `echo x > /secret; echo $?`, out: "1\n", err: "/system/bin/sh: can't create /secret: Permission denied\n"},
		{script: `echo x > /d`, err: "/system/bin/sh: can't create /d: Is a directory\n", status: 1},
		{script: `for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done`, out: "1\n3\n"},
		{script: `i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done; until true; do :; done`, out: "1\n2\n3\n"},
		{script: `for i in 1 2; do for j in 1 2; do [ $j = 2 ] && break 2; echo $i$j; done; done`, out: "11\n"},
		{script: `case foo.txt in *.sh) echo sh;; *.t?t|x) echo txt;; *) echo other;; esac`, out: "txt\n"},
		{script: `if false; then echo a; elif true; then echo b; else echo c; fi`, out: "b\n"},
		{script: `f() { local x=in; echo $x $1 $#; return 5; }; x=out; f a b; echo $? $x`, out: "in a 2\n5 out\n"},
		{script: `set -- a b c; shift; echo $1 $# "$@"`, out: "b 2 b c\n"},
		{script: `set -e; false; echo not`, status: 1},
		{script: `set -e; if false; then :; fi; false || true; echo yes`, out: "yes\n"},
		{script: `set -u; echo $none; echo not`, err: "/system/bin/sh: none: parameter not set\n", status: 1},
		{script: "cat <<E\nhi $((1+2))\nE\n", out: "hi 3\n"},
		{script: `printf '%s:%03d\n' a 7 b 0x10; printf '%b' 'x\n'; printf '%5.1f|%-3s|%x\n' 2.25 a 255`, out: "a:007\nb:016\nx\n  2.2|a  |ff\n"},
		{script: `echo one two | while read a b; do echo "$b $a"; done`, out: "two one\n"},
		{script: `read x; read y; echo "$x-$y"; cat`, out: "l1-l2\nl3\n"},
		{script: `x=$(cat a.txt; exit 3); echo $? $x; echo $(<b.txt)`, out: "3 alpha\nbeta\n"},
		{script: `export B=2; C=3; env`, out: "B=2\nHOME=/d\nHOSTNAME=sim\n"},
		{script: `cd /; pwd; cd - ; cd; pwd; cd /none`, out: "/\n/d\n/d\n", err: "/system/bin/sh: cd: /none: No such file or directory\n", status: 2},
		{script: `test -f a.txt -a -d /d && [ ! -e x ] && [[ a.txt == *.txt && -r a.txt ]] && echo ok`, out: "ok\n"},
		{script: `[ 1 -lt x ]; echo $?; [ 1 = 1`, out: "2\n", err: "/system/bin/sh: [: x: bad number\n/system/bin/sh: [: missing ]\n", status: 2},
		{script: `type cd; type cat; command -v cat nothere; echo $?`, out: "cd is a shell builtin\ncat is /bin/cat\n/bin/cat\n1\n"},
		{script: `eval 'x=5; echo $x'; . /d/run.sh`, out: "5\nscript 0\n"},
		{script: `exec cat a.txt; echo not`, out: "alpha\n"},
		{script: `exec > log; echo hidden; exec 1>&2; cat log`, err: "hidden\n"},
		{script: `readonly r=1; r=2; echo $r`, out: "1\n", err: "/system/bin/sh: read-only: r\n"},
		{script: `echo $$ $! ${#x} $0`, out: "4242 0 /system/bin/sh\n"},
		{script: `x=abc; echo ${x#a} ${x%c} ${x/b/-} ${x:1:1}`, out: "bc ab a-c b\n"},
		{script: `echo ~ ~root/x`, out: "/d ~root/x\n"},
		{script: `echo (x)`, err: "/system/bin/sh: syntax error: unexpected '('\n", status: 1},
		{script: `echo 'open`, err: "/system/bin/sh: syntax error: no closing quote\n", status: 1},
		{script: `if true; then`, err: "/system/bin/sh: syntax error: unexpected EOF\n", status: 1},
		{script: `yes | { read x; echo $x; }`, out: "y\n"},
		{script: `run cat a.txt; echo; run nothere; echo $?`, out: "alpha\n\n127\n", err: "/system/bin/sh: nothere: inaccessible or not found\n"},
		{script: `echo $((1/0)); echo next`, out: "next\n", err: "/system/bin/sh: division by zero\n"},
		{script: `boom`, err: "Segmentation fault\n", status: 139},
		{script: `boom | cat; echo on; cat a.txt | boom; echo $?`, out: "on\n139\n"},
		{script: `x=$(echo a & echo b & wait; echo c); echo ${#x}; cat <<E | cat
text
E`, out: "5\ntext\n"},
		{script: `sleep 1h & echo started`, out: "started\n"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			stdin := "l1\nl2\nl3\n"
			out, errOut, status := runScript(t, t.Context(), tt.script, stdin)
			if out != tt.out || errOut != tt.err || status != tt.status {
				t.Errorf("got  %q, %q, %d\nwant %q, %q, %d", out, errOut, status, tt.out, tt.err, tt.status)
			}
		})
	}
}

func TestBoundsEndTheScript(t *testing.T) {
	tests := []struct{ name, script string }{
		{"loop", `while :; do :; done`},
		{"recursion", `f() { f; }; f`},
		{"fork bomb", `f() { f | f; }; f`},
		{"eval", `x='eval "$x"'; eval "$x"`},
		{"growing variable", `x=abcdefgh; while :; do x=$x$x || exit 1; done`},
		{"substitution", `x=$(yes)`},
		{"globs", `echo /*/../*/../*/../*/../*/../*/../*/../*/../*/../*`},
		{"braces", `echo {1..100}{1..100}{1..100}`},
		{"nested shells", `sh -c 'f() { sh -c "$1" x "$1"; }; f "$0"'`},
		{"command command", `f() { command eval f; }; f`},
		{"long", "echo " + strings.Repeat("x", maxScript)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			runScript(t, ctx, tt.script, "")
			if ctx.Err() != nil {
				t.Error("only the context ended it")
			}
		})
	}
}

func TestContextEndsTheScript(t *testing.T) {
	scripts := []string{
		`sleep 1h`, `wait4ever`, `wait4ever | cat`, `cat | wait4ever`, `x=$(wait4ever)`, `wait4ever & wait`, `cat`, `read x`,
		`while sleep 1s; do :; done`, `yes > /d/out`, `(wait4ever); echo not`,
	}
	for _, script := range scripts {
		t.Run(script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				in, keep := io.Pipe()
				defer keep.Close()
				var out bytes.Buffer
				status := Run(ctx, Config{System: newMachine(t), Dir: "/d", Stdin: in, Stdout: &out, Stderr: &out}, script)
				if status == 0 {
					t.Error("status 0")
				}
			})
		})
	}
}

// failing is standard output that the caller has closed.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestClosedOutput(t *testing.T) {
	status := Run(t.Context(), Config{System: newMachine(t), Stdout: failing{}, Stderr: failing{}}, `echo x; yes; exit 3`)
	if status != 3 {
		t.Errorf("status %d", status)
	}
}

func TestInteract(t *testing.T) {
	var out bytes.Buffer
	in := "echo one\nfalse\nfor i in a b; do\necho $i\ndone\nread x\nline for read\necho $x\nexit 3\necho not\n"
	c := Config{
		System: newMachine(t), Env: map[string]string{"HOSTNAME": "sim"}, Dir: "/d", Stdin: strings.NewReader(in),
		Stdout: &out, Stderr: &out,
	}
	if status := Interact(t.Context(), c); status != 3 {
		t.Errorf("status %d", status)
	}
	want := "sim:/d $ one\nsim:/d $ 1|sim:/d $ > > a\nb\nsim:/d $ sim:/d $ line for read\nsim:/d $ "
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", &out, want)
	}
}

// FuzzRun gives the shell any script: it must return, and not by a crash of the process.
func FuzzRun(f *testing.F) {
	for _, s := range []string{
		`echo "$(cat a.txt)" | while read x; do echo ${x%a}; done`, `a=(1 2)`, `[[ a =~ b ]]`, `f() { :; }; f <<E
x
E`, "echo $((1<<-1)) ${x@Q} ${!x} ~x *", `printf '%*d%b' 3 1 '\0777'`, `cat <(echo x)`, `coproc x`, `select x in a; do :; done`,
		"time ! x", `let x=1`, `typeset -n x=x; echo $x`, `${ echo x;}`, `case x in (x) ;& esac`, `exec 3>x 4<&3 3>&-`, "yes | cat", "wait4ever; echo x", "while :; do wait4ever & done",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		const most = 20 * time.Second
		limit, began := most, time.Now()
		if strings.Contains(script, "yes") || strings.Contains(script, "wait4ever") || strings.Contains(script, "sleep") {
			limit = 20 * time.Millisecond // takes long by design, and has to end when it is told to
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, _, status := runScript(t, ctx, script, "in\n")
		if time.Since(began) >= most {
			t.Fatalf("took longer than the limits allow: %q", script)
		}
		if status < 0 || status > 255 {
			t.Fatalf("status %d", status)
		}
	})
}
