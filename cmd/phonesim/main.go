// Phonesim is a simulated Android phone: a USB device for QEMU, or an ADB daemon on a socket.
//
// Exit codes: 0 when it was unplugged or told to stop, 1 when something failed, 2 for wrong use.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	exited := false
	parser := kong.Must(&o, kong.Name("phonesim"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }))
	_, err := parser.Parse(args)
	if exited {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "phonesim: %v; see phonesim --help\n", err)
		return exitUsage
	}
	if err := o.serve(ctx, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "phonesim: %v\n", err)
		return exitFailed
	}
	return 0
}
