// demo shows the main job: two tasks at once on a rack of simulated phones.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"phonerack/firmware/rig/demo"
)

func main() {
	var flags struct {
		Native bool          `help:"Without the emulated board: rackd on this machine, phones over byte streams."`
		Out    string        `help:"Folder for the trajectories." default:"demo-out"`
		Limit  time.Duration `help:"Give up after this long." default:"10m"`
	}
	kong.Parse(&flags, kong.Description("A cloud, and two tasks at once on a rack of four simulated phones."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, flags.Limit)
	defer cancel()
	if err := demo.Run(ctx, demo.Options{Native: flags.Native, Out: flags.Out, Stdout: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}
