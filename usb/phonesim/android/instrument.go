package android

import (
	"context"
	"image"
	"io"
	"strings"
	"time"

	"phonerack/usb/phonesim/android/uia2"
	"phonerack/usb/phonesim/screen"
)

// What the UiAutomator2 server consists of.
const (
	serverPackage = "io.appium.uiautomator2.server"
	serverTests   = serverPackage + ".test"
	serverClass   = serverTests + ".AppiumUiAutomator2Server"
)

// serverStart is what the start of the server takes.
const serverStart = 1200 * time.Millisecond

// automation is a connection to the one UiAutomation that a phone has: a dump's or a server's.
type automation struct {
	forServer bool            // not for a dump
	server    *uia2.Server    // nil until it listens
	alive     context.Context // ends when its process is killed
	kill      context.CancelFunc
}

// automate takes the UiAutomation, if nobody has it.
func (d *Device) automate(forServer bool) *automation {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.automation != nil {
		return nil
	}
	a := &automation{forServer: forServer}
	a.alive, a.kill = context.WithCancel(context.Background())
	d.automation = a
	return a
}

// letGo gives it back.
func (d *Device) letGo(a *automation) {
	a.kill()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.automation == a {
		d.automation = nil
	}
}

// killServer ends the server's process.
func (d *Device) killServer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.automation; a != nil && a.forServer {
		a.kill()
		d.automation = nil
	}
}

// Port finds the program that listens on a TCP port of the phone. Serve speaks to one connection and closes it when the
// program is killed; else it returns when the connection's reads end. Only the UiAutomator2 server listens.
func (d *Device) Port(port int) (serve func(ctx context.Context, conn io.ReadWriteCloser), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.automation
	if port != uia2.Port || a == nil || a.server == nil {
		return nil, false
	}
	return func(ctx context.Context, conn io.ReadWriteCloser) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(a.alive, func() {
			cancel()
			conn.Close()
		})()
		if err := a.server.Serve(ctx, conn); err != nil {
			d.logf("W", "UiAutomator2", "connection: %v", err)
		}
	}, true
}

// instrumentArgs are those of "am instrument".
type instrumentArgs struct {
	wait, raw bool
	component string
}

func parseInstrument(args []string) (in instrumentArgs) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; a {
		case "-w":
			in.wait = true
		case "-r":
			in.raw = true
		case "-e":
			i += 2
		case "-p", "--user", "--abi":
			i++
		default:
			if !strings.HasPrefix(a, "-") {
				in.component = a
			}
		}
	}
	return in
}

// instrument runs the tests of a package. Those of the UiAutomator2 server are the only ones that do anything.
func (c *call) instrument(args []string) int {
	in := parseInstrument(args)
	pkg, class, _ := strings.Cut(in.component, "/")
	class = longActivity(pkg, class)
	problem := c.instrumentation(pkg, class)
	if problem != "" {
		c.printf("INSTRUMENTATION_STATUS: id=ActivityManagerService\nINSTRUMENTATION_STATUS: Error=%s\nINSTRUMENTATION_STATUS_CODE: -1\n", problem)
		c.errorf("android.util.AndroidException: INSTRUMENTATION_FAILED: %s/%s\n\tat com.android.commands.am.Instrument.run(Instrument.java:519)\n"+
			"\tat com.android.commands.am.Am.runInstrument(Am.java:202)\n\tat com.android.commands.am.Am.onRun(Am.java:80)\n"+
			"\tat com.android.internal.os.BaseCommand.run(BaseCommand.java:60)\n", pkg, class)
		return 1
	}
	if pkg != serverTests {
		c.printf("\nTime: 0\n\nOK (0 tests)\n\n\n")
		return 0
	}
	return c.runServer(in)
}

// instrumentation tells what is missing to run a package's tests.
func (c *call) instrumentation(pkg, class string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.installed[pkg]; p != nil {
		for _, i := range p.manifest.Instrumenting {
			if i.Name != class {
				continue
			}
			if c.installed[i.Target] == nil {
				return "Unable to find instrumentation target package: " + i.Target
			}
			return ""
		}
	}
	return "Unable to find instrumentation info for: ComponentInfo{" + pkg + "/" + class + "}"
}

// runServer starts the server and stays until it ends: by itself, when its package is stopped, or with the stream that
// the command writes to.
func (c *call) runServer(in instrumentArgs) int {
	c.killServer() // an instrumentation that is started again replaces the one before
	a := c.automate(true)
	if a == nil {
		text := "java.lang.IllegalStateException: UiAutomationService " + automationProxy + "already registered!"
		c.result(in, "INSTRUMENTATION_RESULT: shortMsg=java.lang.IllegalStateException\nINSTRUMENTATION_RESULT: longMsg="+text+"\nINSTRUMENTATION_CODE: 0\n")
		return 0
	}
	c.pid(serverPackage)
	c.stream(in, "\n"+serverClass+":")
	if c.cost(c.ctx, serverStart) != nil || c.wait(c.ctx, c.Faults().Server.SlowStart) != nil {
		c.letGo(a)
		return exitKilled
	}
	if a.alive.Err() != nil {
		return c.crashed(in)
	}
	server := uia2.New((*serverPhone)(c.Device), uia2.Config{API: c.release.api, Detached: !in.wait})
	c.mu.Lock()
	a.server = server
	c.mu.Unlock()
	c.logf("I", "appium", "AndroidServer created on port %d", uia2.Port)
	if !in.wait {
		return 0
	}
	defer c.letGo(a)
	select {
	case <-c.ctx.Done():
		c.killServer()
		return exitKilled
	case <-a.alive.Done():
		return c.crashed(in)
	case <-server.Over():
		if server.Crashed() {
			return c.crashed(in)
		}
	}
	c.stream(in, ".")
	c.result(in, "\n\nTime: 12.345\n\nOK (1 test)\n\n\n")
	return 0
}

func (c *call) crashed(in instrumentArgs) int {
	c.result(in, "INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n")
	return 0
}

// stream prints what the runner of the tests says meanwhile.
func (c *call) stream(in instrumentArgs, text string) {
	if in.raw {
		text = "INSTRUMENTATION_STATUS: class=" + serverClass + "\nINSTRUMENTATION_STATUS: current=1\nINSTRUMENTATION_STATUS: id=AndroidJUnitRunner\n" +
			"INSTRUMENTATION_STATUS: numtests=1\nINSTRUMENTATION_STATUS: stream=" + text + "\nINSTRUMENTATION_STATUS: test=startServer\nINSTRUMENTATION_STATUS_CODE: 1\n"
	}
	c.printf("%s", text)
}

// result prints how it ended.
func (c *call) result(in instrumentArgs, text string) {
	if in.raw && !strings.HasPrefix(text, "INSTRUMENTATION_RESULT") {
		text = "INSTRUMENTATION_RESULT: stream=" + text + "\nINSTRUMENTATION_CODE: -1\n"
	}
	c.printf("%s", text)
}

// automationProxy is the name of the service that is registered already, as exceptions have it.
const automationProxy = "android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@b2e4a2a"

// taken is what a dump comes to while something else has the UiAutomation: until Android 9 an exception, later it is
// killed.
func (c *call) taken() int {
	if c.release.version >= 10 {
		c.errorf("Killed \n")
		return exitKilled
	}
	c.errorf("java.lang.IllegalStateException: UiAutomationService %salready registered!\n\tat android.os.Parcel.readException(Parcel.java:1692)\n"+
		"\tat android.os.Parcel.readException(Parcel.java:1637)\n\tat android.app.IUiAutomationConnection$Stub$Proxy.connect(IUiAutomationConnection.java:231)\n"+
		"\tat android.app.UiAutomation.connect(UiAutomation.java:194)\n\tat com.android.uiautomator.core.UiAutomationShellWrapper.connect(UiAutomationShellWrapper.java:40)\n"+
		"\tat com.android.commands.uiautomator.DumpCommand.run(DumpCommand.java:99)\n\tat com.android.commands.uiautomator.Launcher.main(Launcher.java:83)\n", automationProxy)
	return 1
}

// serverPhone is the Device as the server sees it.
type serverPhone Device

var _ uia2.Phone = (*serverPhone)(nil)

func (p *serverPhone) Tree() *screen.Node             { return p.screen.Tree() }
func (p *serverPhone) Trees() []*screen.Node          { return p.screen.Trees() }
func (p *serverPhone) Display() screen.Display        { return p.screen.Display() }
func (p *serverPhone) Clipboard() string              { return p.screen.Clipboard() }
func (p *serverPhone) SetClipboard(text string) error { return p.screen.SetClipboard(text) }
func (p *serverPhone) Faults() uia2.Faults            { return (*Device)(p).Faults().Server }

func (p *serverPhone) Wait(ctx context.Context, t time.Duration) error {
	return (*Device)(p).wait(ctx, t)
}

func (p *serverPhone) Idle() bool {
	d := (*Device)(p)
	return d.screen.Idle() && (!d.Faults().NeverIdle || d.animationScale() == 0)
}

func (p *serverPhone) Screenshot() *image.RGBA {
	for _, w := range p.screen.Windows() {
		if w.Visible && w.Secure {
			return nil
		}
	}
	d := (*Device)(p)
	return d.picture(d.Faults())
}
