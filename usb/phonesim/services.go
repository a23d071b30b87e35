package phonesim

import (
	"context"
	"io"
	"strconv"
	"strings"
)

// service serves one stream until it is done; the stream is closed when it returns.
type service func(ctx context.Context, s *stream)

// service finds the service of a destination, or nothing if the daemon refuses it.
func (d *daemon) service(name string) service {
	kind, args, _ := strings.Cut(name, ":")
	kind, options, _ := strings.Cut(kind, ",")
	switch kind {
	case "shell":
		return d.shellService(options, args)
	case "exec":
		return func(ctx context.Context, s *stream) { d.run(ctx, args, s, s, s) }
	case "abb":
		if d.release.has("abb") {
			return d.shellService("v2,raw", binderCommand(args))
		}
	case "abb_exec":
		if d.release.has("abb_exec") {
			return func(ctx context.Context, s *stream) { d.run(ctx, binderCommand(args), s, s, s) }
		}
	case "sync":
		return func(ctx context.Context, s *stream) { newSyncService(d, s).serve() }
	case "sink":
		if n, err := strconv.ParseUint(args, 10, 63); err == nil {
			return func(_ context.Context, s *stream) { io.CopyN(io.Discard, s, int64(n)) }
		}
	case "source":
		if n, err := strconv.ParseUint(args, 10, 63); err == nil {
			return func(_ context.Context, s *stream) {
				io.CopyBuffer(writerOnly{s}, io.LimitReader(zeros{}, int64(n)), make([]byte, s.maxWrite))
			}
		}
	case "tcp":
		return d.portService(args)
	case "reverse":
		return func(_ context.Context, s *stream) { d.reverseService(s, args) }
	case "reboot":
		return func(_ context.Context, s *stream) { d.phone.Reboot(args) }
	case "usb":
		return func(ctx context.Context, s *stream) {
			d.run(ctx, "setprop service.adb.tcp.port 0", strings.NewReader(""), io.Discard, io.Discard)
			io.WriteString(s, "restarting in USB mode\n")
			d.phone.endPlugs(ErrRebooting) // adbd alone starts anew, at once
		}
	case "root":
		return func(_ context.Context, s *stream) {
			io.WriteString(s, "adbd cannot run as root in production builds\n")
		}
	case "unroot":
		return func(_ context.Context, s *stream) { io.WriteString(s, "adbd not running as root\n") }
	}
	return nil
}

// portService connects to a port of the phone itself, "tcp:6790"; nobody listening is a refusal.
func (d *daemon) portService(args string) service {
	ports, ok := d.phone.config.System.(PortSystem)
	port, err := strconv.Atoi(args)
	if !ok || err != nil {
		return nil
	}
	serve, ok := ports.Port(port)
	if !ok {
		return nil
	}
	return func(ctx context.Context, s *stream) { serve(ctx, portConn{s}) }
}

// portConn is a stream that the program at its end may close.
type portConn struct{ *stream }

// Close ends reading and writing; the host is told when the service has returned.
func (c portConn) Close() error {
	c.stream.close()
	return nil
}

// run runs a command line of the phone's shell.
func (d *daemon) run(ctx context.Context, cmd string, stdin io.Reader, stdout, stderr io.Writer) int {
	d.phone.log.Debug("running", "command", cmd)
	return d.phone.config.System.Run(ctx, cmd, stdin, stdout, stderr)
}

// binderCommand is the command line that does what "abb" does without one: the arguments, separated
// by NUL, go to a system service.
func binderCommand(args string) string {
	words := []string{"cmd"}
	for word := range strings.SplitSeq(args, "\x00") {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// zeros is an endless supply of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
