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
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"phonerack/agent/document/render"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/control"
	"phonerack/firmware/logbook"
	"phonerack/firmware/systemd"
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist; correct the path, or begin one with rackd config example", errUnreadable, name)
	}
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
	parked, adoptErr := firmware.AdoptLines()
	conf, err := c.configuration()
	if err != nil {
		return err
	}
	kept, err := logbook.OpenFolder(filepath.Join(conf.Rack.State, "log"), logbook.Budget{})
	if err != nil { // a state folder that cannot be used is the rack's to explain
		kept = nil
	}
	logs := firmware.NewLogs(conf.Log, os.Stderr, kept)
	log := logs.Logger
	if adoptErr != nil { // phones need no lines
		log.Error("the hubs' lines of before the restart are lost", "err", adoptErr)
	}
	manager := systemd.FromEnvironment()
	options := firmware.Options{
		Config: conf, Logger: log, Level: logs.Level, Book: logs.Book, Kept: kept, Documents: []string{"/proc/self/exe", "render-document"},
		ReadConfig: func() (*config.Config, error) { return load(c.Config) },
		OnReady:    func() { told(log, manager.Ready("")) },
	}
	if conf.USB.Enabled {
		host, err := usblink.New()
		if err != nil {
			return fmt.Errorf("open USB: %w", err)
		}
		options.Dialer = host // its links are closed by the slots; what hangs must not delay the end
	}
	options.Parked, options.Descriptors = parked, firmware.SystemdStore{Manager: manager}
	if manager.Watches() {
		options.Manager = manager
	}
	if options.Watchdog, err = openWatchdog(conf, log); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	started := func() {}
	if options.Watchdog != nil {
		started = watchdog.Start(options.Watchdog, log)
	}
	rack, err := firmware.New(options)
	started()
	if err != nil {
		return err
	}
	if kept != nil {
		defer keep(ctx, kept)()
	}
	defer reloads(ctx, rack, manager, log)()
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		told(log, manager.Stopping())
	})
	return rack.Run(ctx)
}

// configuration reads it, once more if a factory reset that was asked for has changed what it says.
func (c runCommand) configuration() (*config.Config, error) {
	conf, err := load(c.Config)
	if err != nil {
		return nil, err
	}
	done, err := firmware.FinishReset(conf, c.Config, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil || !done {
		return conf, err
	}
	return load(c.Config)
}

// keep writes down what matters of the log until ctx ends, and once more when the rack has stopped.
func keep(ctx context.Context, kept *logbook.Folder) (finish func()) {
	var writing sync.WaitGroup
	writing.Go(func() { kept.Run(ctx) })
	return func() {
		writing.Wait()
		kept.Flush() // nobody is left to hear of an error
	}
}

// reloads has SIGHUP read the configuration anew until ctx ends; what it returns waits for that.
func reloads(ctx context.Context, rack *firmware.Rack, manager *systemd.Manager, log *slog.Logger) (wait func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		defer signal.Stop(asked)
		for {
			select {
			case <-ctx.Done():
				return
			case <-asked:
			}
			told(log, manager.Reloading())
			status := ""
			if _, err := rack.ReloadConfig(); err != nil {
				status = err.Error()
			}
			told(log, manager.Ready(status))
		}
	})
	return func() {
		stop()
		serving.Wait()
	}
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

// told logs that the service manager could not be told something: that is no reason to stop.
func told(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("systemd was not told", "err", err)
	}
}
