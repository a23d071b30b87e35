// Rackd is the controller of a rack of phones.
//
// Exit codes: 0 after a clean stop and for a configuration without faults, 1 when something failed or the configuration
// has faults, 2 for wrong use and for a configuration that cannot be read.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"phonerack/agent/document/render"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/control"
	"phonerack/hal/watchdog"
	"phonerack/usb/adb/usblink"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

type commands struct {
	Run    runCommand `cmd:"" help:"Control the rack until SIGTERM or SIGINT."`
	Config struct {
		Check   checkCommand   `cmd:"" help:"Check a configuration with its board file and rules; exit code 0 without faults, 1 with, 2 if it cannot be read."`
		Example exampleCommand `cmd:"" help:"Print a configuration with every key."`
	} `cmd:"" help:"Check or begin a configuration."`
	MCP            mcpCommand    `cmd:"" name:"mcp" help:"Serve one MCP client on standard input and output, by means of the rackd that runs."`
	RenderDocument renderCommand `cmd:"" hidden:"" help:"Read one document: rackd starts this for itself."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	var c commands
	parser := kong.Must(&c, kong.Name("rackd"), kong.Description("The controller of a rack of phones."), kong.Writers(stdout, stderr))
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "rackd: %v; see rackd --help\n", err)
		return exitUsage
	}
	parsed.BindTo(stdout, (*io.Writer)(nil))
	if err := parsed.Run(); err != nil {
		return report(stderr, err)
	}
	return 0
}

// report prints an error, one fault a line, and chooses the exit code.
func report(w io.Writer, err error) int {
	fmt.Fprintln(w, err) // joined faults stand one a line
	if errors.Is(err, errUnreadable) {
		return exitUsage
	}
	return exitFailed
}

var errUnreadable = errors.New("the configuration cannot be read")

// load reads the configuration, and tells a file that cannot be read from one with faults.
func load(name string) (*config.Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	f.Close()
	return config.Load(name)
}

type checkCommand struct {
	File string `arg:"" help:"The configuration."`
}

func (c checkCommand) Run(stdout io.Writer) error {
	if _, err := load(c.File); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, "ok")
	return err
}

type exampleCommand struct{}

func (exampleCommand) Run(stdout io.Writer) error {
	_, err := io.WriteString(stdout, config.Example())
	return err
}

type renderCommand struct{}

func (renderCommand) Run() error { return render.Main() }

type runCommand struct {
	Config string `required:"" help:"The configuration." placeholder:"FILE"`
}

func (c runCommand) Run() error {
	conf, err := load(c.Config)
	if err != nil {
		return err
	}
	log, level := firmware.NewLogger(conf.Log, os.Stderr)
	options := firmware.Options{
		Config: conf, Logger: log, Level: level, Documents: []string{"/proc/self/exe", "render-document"},
		OnReady: func() { notify(log, "READY=1") },
	}
	if conf.USB.Enabled {
		host, err := usblink.New()
		if err != nil {
			return fmt.Errorf("open USB: %w", err)
		}
		options.Dialer = host // its links are closed by the slots; what hangs must not delay the end
	}
	options.Parked, options.Descriptors = firmware.StoredDescriptors(), firmware.SystemdStore{}
	if options.Watchdog, err = openWatchdog(conf, log); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	rack, err := firmware.New(options)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		notify(log, "STOPPING=1")
	})
	return rack.Run(ctx)
}

// openWatchdog arms the hardware watchdog that the configuration names; nil if it names none.
func openWatchdog(conf *config.Config, log *slog.Logger) (watchdog.Device, error) {
	if conf.Watchdog.Device == "" {
		return nil, nil
	}
	device, err := watchdog.Open(conf.Watchdog.Device, conf.USB.Sysfs, time.Duration(conf.Watchdog.Timeout), nil)
	if err != nil {
		return nil, fmt.Errorf("open the watchdog that watchdog.device names: %w", err)
	}
	boot := device.Boot()
	log.Info("watchdog", "is", device.Identity(), "timeout", device.Timeout(), "reset_by_it", boot.ByWatchdog, "overheat", boot.Overheat, "under_voltage", boot.UnderVoltage)
	return device, nil
}

// mcpCommand is the same bridge as rackctl mcp, for a board that has only rackd.
type mcpCommand struct {
	Config string `required:"" help:"The configuration of the rackd that runs." placeholder:"FILE"`
}

func (c mcpCommand) Run(stdout io.Writer) error {
	conf, err := load(c.Config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	client := control.Client{Socket: conf.Control.Socket}
	return client.Stream(ctx, "mcp", struct{}{}, action.Pipes{In: os.Stdin, Out: stdout}, nil)
}

func notify(log *slog.Logger, state string) {
	if err := firmware.Notify(state); err != nil {
		log.Warn("systemd was not told", "state", state, "err", err)
	}
}
