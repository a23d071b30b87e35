package android

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"phonerack/usb/phonesim/android/mksh"
	"phonerack/usb/phonesim/android/toybox"
)

// call is one run of a command of Android.
type call struct {
	*Device
	ctx    context.Context
	name   string
	args   []string // without the name
	in     io.Reader
	out    io.Writer
	err    io.Writer
	dir    string
	rerun  func(ctx context.Context, args []string, env ...string) int
	lookup func(string) string // environment
}

// command runs and returns the exit status.
type command func(c *call) int

const (
	exitKilled = 137
	exitMinus1 = 255 // a Java command that returned -1
)

// commands is filled by init, for some of them run others.
var commands map[string]command

func init() {
	commands = map[string]command{
		"am": amCommand, "cmd": cmdCommand, "content": contentCommand, "df": df, "dumpsys": dumpsys,
		"getprop": getprop, "id": id, "ime": imeCommand, "input": inputCommand, "kill": kill, "killall": kill,
		"log": logCommand, "logcat": logcat, "monkey": monkey, "pidof": pidof, "pm": pmCommand, "ps": ps,
		"reboot": reboot, "screencap": screencap, "service": serviceCommand, "setprop": setprop, "settings": settingsCommand,
		"svc": svc, "toybox": toyboxCommand, "uiautomator": uiautomator, "uname": uname, "uptime": uptimeCommand,
		"whoami": whoami, "wm": wmCommand,
	}
}

func (c *call) printf(format string, a ...any) { fmt.Fprintf(c.out, format, a...) }
func (c *call) errorf(format string, a ...any) { fmt.Fprintf(c.err, format, a...) }

// arg gives the n-th argument or nothing.
func (c *call) arg(n int) string {
	if n < len(c.args) {
		return c.args[n]
	}
	return ""
}

// spend waits for what the command costs; false means that the context ended.
func (c *call) spend(t time.Duration) bool { return c.cost(c.ctx, t) == nil }

// exception prints what a shell command of a system service prints when it throws.
func (c *call) exception(cmd, text, at string) int {
	if c.release.version >= 11 {
		c.errorf("\nException occurred while executing '%s':\n", cmd)
	}
	c.errorf("%s\n\tat %s\n", text, at)
	if c.release.version >= 11 {
		c.errorf("\tat android.os.BasicShellCommandHandler.exec(BasicShellCommandHandler.java:97)\n" +
			"\tat android.os.ShellCommand.exec(ShellCommand.java:38)\n\tat android.os.Binder.execTransact(Binder.java:1159)\n")
		return exitMinus1
	}
	c.errorf("\tat com.android.internal.os.RuntimeInit.nativeFinishInit(Native Method)\n" +
		"\tat com.android.internal.os.RuntimeInit.main(RuntimeInit.java:338)\n")
	return 1
}

// abs makes a path of the command line absolute.
func (c *call) abs(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return path.Join(c.dir, p)
}

// system is the Device as its shell sees it.
type system Device

var _ mksh.System = (*system)(nil)

func (s *system) Open(p string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	f, err := s.shell.Open(p, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *system) Stat(p string) (fs.FileInfo, error)  { return s.shell.Stat(p) }
func (s *system) Lstat(p string) (fs.FileInfo, error) { return s.shell.Lstat(p) }

func (s *system) ReadDir(p string) ([]fs.DirEntry, error) {
	infos, err := s.shell.ReadDir(p)
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		list[i] = fs.FileInfoToDirEntry(info)
	}
	return list, nil
}

func (s *system) Access(p string, mode uint32) error { return s.shell.Access(p, mode) }

// binDir is where commands are.
const binDir = "/system/bin/"

func (s *system) Which(name string) (string, bool) {
	base := name
	if strings.Contains(name, "/") {
		var found bool
		if base, found = strings.CutPrefix(strings.TrimPrefix(path.Clean(name), "/system"), "/bin/"); !found {
			return "", false
		}
	}
	if commands[base] == nil && toybox.Commands[base] == nil {
		return "", false
	}
	return binDir + base, true
}

func (s *system) Exec(ctx context.Context, p *mksh.Process) int {
	d := (*Device)(s)
	name := path.Base(p.Args[0])
	if run, ok := commands[name]; ok {
		return run(&call{
			Device: d, ctx: ctx, name: name, args: p.Args[1:], in: p.Stdin, out: p.Stdout, err: p.Stderr,
			dir: p.Dir, rerun: p.Run, lookup: p.Getenv,
		})
	}
	return toybox.Commands[name](ctx, &toybox.Env{
		Process: p, Files: d.shell, Now: d.now, Zone: d.config.Zone, Sleep: d.wait, Which: s.Which,
	})
}

// commandNames lists what is in /system/bin.
func commandNames() []string {
	names := []string{"sh"}
	for n := range commands {
		names = append(names, n)
	}
	for n := range toybox.Commands {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func toyboxCommand(c *call) int {
	if len(c.args) == 0 {
		var names []string
		for n := range toybox.Commands {
			names = append(names, n)
		}
		slices.Sort(names)
		c.printf("%s\n", strings.Join(names, " "))
		return 0
	}
	if toybox.Commands[c.args[0]] == nil {
		c.errorf("toybox: Unknown command %s\n", c.args[0])
		return 127
	}
	return c.rerun(c.ctx, c.args)
}

// createFile opens a file for a command to write.
func (c *call) createFile(p string) (io.WriteCloser, error) {
	return c.shell.Open(c.abs(p), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
}
