package toybox_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/usb/phonesim/android/memfs"
	"phonerack/usb/phonesim/android/mksh"
	"phonerack/usb/phonesim/android/toybox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a shell's System with the commands of toybox and nothing else.
type machine struct{ *memfs.View }

func (m machine) Open(p string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	f, err := m.View.Open(p, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (m machine) ReadDir(p string) ([]fs.DirEntry, error) {
	infos, err := m.View.ReadDir(p)
	var list []fs.DirEntry
	for _, i := range infos {
		list = append(list, fs.FileInfoToDirEntry(i))
	}
	return list, err
}

func (m machine) Which(name string) (string, bool) {
	_, ok := toybox.Commands[path.Base(name)]
	return "/system/bin/" + name, ok
}

func now() time.Time { return time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC) }

func (m machine) Exec(ctx context.Context, p *mksh.Process) int {
	return toybox.Commands[p.Args[0]](ctx, &toybox.Env{
		Process: p, Files: m.View, Now: now, Zone: time.UTC, Which: m.Which,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
}

func TestCommands(t *testing.T) {
	tests := []struct {
		script, out, err string
		status           int
	}{
		{script: "cat a none b", out: "one\ntwo\nthree\nx y\n", err: "cat: none: No such file or directory\n", status: 1},
		{script: "cat d", err: "cat: d: Is a directory\n", status: 1},
		{script: "wc a; wc -l < a; wc -c a b", out: "3 3 14 a\n3\n14 a\n4 b\n18 total\n"},
		{script: "head -1 a; head -n 2 a | tail -n 1; head -c 3 a; echo; tail -n +2 a; tail -c 4 a", out: "one\ntwo\none\ntwo\nthree\nree\n"},
		{script: "head -n x a", err: "head: not integer: x\n", status: 1},
		{script: "grep t a; grep -v t a; grep -c t a; grep -n th a; grep -o 'e\\+$' a; grep -E '^(one|two)$' a", out: "two\nthree\none\n2\n3:three\ne\nee\none\ntwo\n"},
		{script: "grep -q one a && echo yes; grep none a; echo $?; grep -F . a; grep '[' a; echo $?", out: "yes\n1\n2\n", err: "grep: bad REGEX '['\n"},
		{script: "grep -i ONE a b; grep -h one a b; grep -l one a b; grep -A1 one a; grep -rl x .", out: "a:one\none\na\none\ntwo\n./b\n"},
		{script: "sort a; sort -r a | head -1; printf '10\\n9\\n9\\n' | sort -n -u; printf 'a\\na\\nb\\n' | uniq -c", out: "one\nthree\ntwo\ntwo\n9\n10\n      2 a\n      1 b\n"},
		{script: "echo hello | tr a-y b-z; echo AbC | tr '[:upper:]' '[:lower:]'; echo a-b-c | tr -d -; echo aab | tr -s a", out: "ifmmp\nabc\nabc\nab\n"},
		{script: "echo a:b:c | cut -d: -f1,3; echo hello | cut -c2-4; echo none | cut -d: -f2; cut -f x a", out: "a:c\nell\nnone\n", err: "cut: bad list 'x'\n", status: 1},
		{script: "cp a c; cmp a c; cmp a b; echo $?; cp a d; cat d/a | wc -l; cp d e; cp -r d e; ls e", out: "a b differ: char 1, line 1\n1\n3\na\nin\n", err: "cp: bad 'd': Is a directory\n"},
		{script: "cp a a; ln -s a l; cp a l; head -1 a", out: "one\n", err: "cp: bad 'a': Invalid argument\ncp: bad 'a': Invalid argument\n"},
		{script: "mv a d; ls d; mv none x; mv d/a .; ls", out: "a\nin\na\nb\nd\n", err: "mv: bad 'none': No such file or directory\n"},
		{script: "mkdir x; mkdir x; mkdir -p y/z; ls -F; rmdir x; rmdir d", out: "a\nb\nd/\nx/\ny/\n", err: "mkdir: 'x': File exists\nrmdir: d: Directory not empty\n", status: 1},
		{script: "rm d; rm -r d; rm none; rm -f none; ls", out: "a\nb\n", err: "rm: d: Is a directory\nrm: none: No such file or directory\n"},
		{script: "touch n; ls -l n; chmod 644 n; chmod u+x,g-r n; stat -c '%a %A %s %F' n; stat none", out: "-rw-rw-rw- 1 shell shell 0 2026-03-01 10:30 n\n704 -rwx---r-- 0 regular empty file\n", err: "stat: 'none': No such file or directory\n", status: 1},
		{script: "ln -s a l; readlink l; readlink -f l; realpath l; ls -l l; cat l | head -1; rm l; ls", out: "a\n/w/a\n/w/a\nlrwxrwxrwx 1 shell shell 1 2026-03-01 10:30 l -> a\none\na\nb\nd\n"},
		{script: "ls -1 d; ls none; ls -d d; ls -a | head -2; ls -R", out: "in\nd\n.\n..\n.:\na\nb\nd\n\n./d:\nin\n", err: "ls: none: No such file or directory\n"},
		{script: "find . -name 'i*'; find d -type d; find . -maxdepth 1 -type f | sort", out: "./d/in\nd\n./a\n./b\n"},
		{script: "echo text | gzip -9 -c | gunzip; gzip a; ls; gzip -d a.gz; head -1 a; echo bad | gunzip; echo $?", out: "text\na.gz\nb\nd\none\n1\n", err: "gunzip: -: unexpected EOF\n"},
		{script: "echo abc | md5sum; echo abc | sha1sum -b; base64 a; echo 'b25l' | base64 -d; echo; base64 -w 4 b", out: "0bee89b07a248e27c83fc3d5951213c1  -\n03cfd743661f07975fa2f1220c5194cbaff48451\nb25lCnR3bwp0aHJlZQo=\none\neCB5\nCg==\n"},
		{script: "dd if=a bs=2 count=2 skip=1; dd if=none", out: "e\ntw", err: "2+0 records in\n2+0 records out\n4 bytes (4) copied, 0.010 s, 400/s\ndd: none: No such file or directory\n", status: 1},
		{script: "seq 3; seq 2 4 8 | tail -1; seq 5 -2 1 | wc -l; seq x", out: "1\n2\n3\n6\n3\n", err: "seq: bad 'x'\n", status: 1},
		{script: "date +%Y-%m-%dT%H:%M:%S; date -u +%s; date -d @0 +%F; date +'%j %a %%'", out: "2026-03-01T10:30:00\n1772361000\n1970-01-01\n060 Sun %\n"},
		{script: "echo 1 2 3 | xargs -n 1 echo n; echo a b | xargs cat; xargs < /w/none2", out: "n 1\nn 2\nn 3\none\ntwo\nthree\nx y\n", err: "/system/bin/sh: can't open /w/none2: No such file or directory\n", status: 1},
		{script: "basename /x/y.txt .txt; dirname /x/y; which cat none; A=1 env | grep ^A; env B=2 env | grep ^B", out: "y\n/x\n/system/bin/cat\nA=1\nB=2\n"},
		{script: "sleep 1; sleep x; timeout 5 echo in time; nohup echo kept; tee t < b; cat t", out: "in time\nkept\nx y\nx y\n", err: "sleep: bad time 'x'\n"},
		{script: "du -s d | cut -f2; mktemp -p /w | cut -c1-7; true; false; echo $?", out: "d\n/w/tmp.\n1\n"},
		{script: "head -z a", err: "head: Unknown option 'z'\n", status: 1},
		{script: "cut -d", err: "cut: Missing argument to -d\n", status: 1},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			f := memfs.New(8<<20, now)
			for p, text := range map[string]string{"/w/a": "one\ntwo\nthree\n", "/w/b": "x y\n", "/w/d/in": "deep\n"} {
				if err := f.Put(p, 0o666, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			root := f.As(0, 0)
			root.Chmod("/w", 0o777)
			root.Chmod("/w/d", 0o777)
			var out, errOut bytes.Buffer
			status := mksh.Run(t.Context(), mksh.Config{
				System: machine{f.As(2000, 2000)}, Dir: "/w", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
			}, tt.script)
			if out.String() != tt.out || errOut.String() != tt.err || status != tt.status {
				t.Errorf("got  %q, %q, %d\nwant %q, %q, %d", &out, &errOut, status, tt.out, tt.err, tt.status)
			}
		})
	}
}
