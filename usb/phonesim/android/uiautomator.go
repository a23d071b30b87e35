package android

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"phonerack/usb/phonesim/screen"
)

const (
	dumpFile = "/sdcard/window_dump.xml"

	// quietTime is for how long nothing may move before a dump, idleTimeout how long that is waited for.
	quietTime   = time.Second
	idleTimeout = 10 * time.Second
	pollEvery   = 50 * time.Millisecond
)

var errTimeout = errors.New("timeout")

func uiautomator(c *call) int {
	if !c.spend(vmStart) {
		return exitKilled
	}
	switch c.arg(0) {
	case "dump":
		return c.dump(c.args[1:])
	case "runtest", "events":
		c.errorf("Killed\n")
		return exitKilled
	}
	c.errorf("Usage: uiautomator <subcommand> [options]\n\nAvailable subcommands:\n\nhelp: displays help message\n\n" +
		"runtest: executes UI automation tests\n\ndump: creates an XML dump of current UI hierarchy\n")
	if c.arg(0) == "" || c.arg(0) == "help" {
		return 0
	}
	return 1
}

// dump writes the tree of the active window. Whatever goes wrong, the exit status is 0 and a file
// of an earlier dump stays as it is.
func (c *call) dump(args []string) int {
	compressed, file := false, dumpFile
	for _, a := range args {
		switch {
		case a == "--compressed":
			compressed = true
		case a == "--windows" || a == "--verbose":
		default:
			file = a
		}
	}
	a := c.automate(false)
	if a == nil {
		return c.taken()
	}
	defer c.letGo(a)
	f := c.Faults()
	failure := f.Dump
	if failure != DumpOK && f.DumpRate > 0 && !c.chance(f.DumpRate) {
		failure = DumpOK
	}
	if c.wait(c.ctx, f.SlowTree) != nil {
		return exitKilled
	}
	restless := failure == DumpNoIdle || f.NeverIdle && !compressed && c.animationScale() > 0
	switch err := c.waitIdle(restless); {
	case err == errTimeout:
		c.errorf("ERROR: could not get idle state.\n")
		return 0
	case err != nil:
		return exitKilled
	}
	tree := c.screen.Tree()
	switch {
	case failure == DumpSilent:
		c.logf("E", "AndroidRuntime", "java.lang.NullPointerException: childNafCheck")
		return 0
	case failure == DumpNullRoot || tree == nil:
		c.errorf("ERROR: null root node returned by UiTestAutomationBridge.\n")
		return 0
	}
	x := &treeWriter{version: c.release.version, rotation: c.screen.Display().Rotation}
	if compressed {
		tree = compress(tree)
	}
	text := x.document(tree)
	if failure == DumpCutOff {
		text = text[:len(text)/2]
	}
	return c.store(file, text, f.NoTTY)
}

// store writes the document and then the status line. A file that cannot be written is no reason to
// say anything else.
func (c *call) store(file, text string, noTTY bool) int {
	if file == "/dev/tty" {
		if noTTY {
			c.errorf("java.io.FileNotFoundException: /dev/tty: open failed: ENXIO (No such device or address)\n" +
				"\tat libcore.io.IoBridge.open(IoBridge.java:496)\n\tat java.io.FileOutputStream.<init>(FileOutputStream.java:235)\n")
			return 0
		}
		if _, err := io.WriteString(c.out, text); err != nil {
			return 1
		}
	} else if w, err := c.shell.Open(c.abs(file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o660); err == nil {
		if _, err := io.WriteString(w, text); err != nil {
			c.logf("E", "UiAutomator", "failed to dump window to file: %v", err)
		}
		w.Close()
	}
	word := "hierchary"
	if c.release.version >= 15 {
		word = "hierarchy"
	}
	c.printf("UI %s dumped to: %s\n", word, file)
	return 0
}

// waitIdle waits until nothing has moved for the quiet time. With Config.Latency 0 one look
// at an idle screen is enough.
func (c *call) waitIdle(restless bool) error {
	if restless {
		if err := c.cost(c.ctx, idleTimeout); err != nil {
			return err
		}
		return errTimeout
	}
	quiet := time.Duration(float64(quietTime) * c.config.Latency)
	still := time.Duration(0)
	for waited := time.Duration(0); waited < idleTimeout; waited += pollEvery {
		if !c.screen.Idle() {
			still = 0
		} else if still >= quiet {
			return nil
		} else {
			still += pollEvery
		}
		if err := c.wait(c.ctx, pollEvery); err != nil {
			return err
		}
	}
	return errTimeout
}

// compress leaves out what is of no importance to accessibility: groups without text that do nothing.
// Their children move up.
func compress(n *screen.Node) *screen.Node {
	root := *n
	root.Children = important(n.Children)
	return &root
}

func important(nodes []*screen.Node) []*screen.Node {
	var list []*screen.Node
	for _, n := range nodes {
		children := important(n.Children)
		group := strings.HasSuffix(n.Class, "Layout") || strings.HasSuffix(n.Class, ".ViewGroup") || n.Class == "android.view.View"
		if group && n.Text == "" && n.Desc == "" && !n.Clickable && !n.Scrollable && !n.Checkable && !n.Focusable {
			list = append(list, children...)
			continue
		}
		kept := *n
		kept.Children = children
		list = append(list, &kept)
	}
	return list
}
