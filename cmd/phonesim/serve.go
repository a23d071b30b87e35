package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"phonerack/usb/phonesim"
)

// serve plugs the phone in until it is unplugged or ctx ends.
func (o *options) serve(ctx context.Context, stdout, stderr io.Writer) error {
	p, err := o.phone(stderr)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	if o.Listen != "" {
		l, err := listen(ctx, o.Listen)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "listening on %s\n", l.Addr())
		g.Go(func() error { return serveListener(ctx, p, l) })
	}
	if o.Redir != "" {
		g.Go(func() error {
			var d net.Dialer
			nc, err := d.DialContext(ctx, "unix", o.Redir)
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "plugged in at %s\n", o.Redir)
			if err := p.ServeRedir(ctx, nc); err != nil {
				return err
			}
			return errGone
		})
	}
	if err := g.Wait(); !ordinary(err) {
		return err
	}
	return nil
}

// errGone ends the program when the machine that the phone was plugged into has gone.
var errGone = errors.New("the other side closed the connection")

// ordinary tells whether err is an end that was meant.
func ordinary(err error) bool {
	for _, end := range []error{nil, errGone, context.Canceled, phonesim.ErrUnplugged} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// listen listens at an address, which is a path if it has no colon, or a slash, or unix: before it as in the
// configuration of rackd.
func listen(ctx context.Context, address string) (net.Listener, error) {
	path, isPath := strings.CutPrefix(address, "unix:")
	if !isPath && !strings.Contains(address, "/") && strings.Contains(address, ":") {
		return net.Listen("tcp", address)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// answerTime bounds how long somebody at a socket may take to be found, if nobody takes the connection.
const answerTime = time.Second

// removeStale removes the socket that a program left at path when it was killed. Only a refused connection proves that
// nobody listens there.
func removeStale(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen at %s: it is there already and is no socket: move it away, or choose another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		nc.Close()
		return fmt.Errorf("listen at %s: another program listens there: end it, or choose another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
		return nil
	}
	return fmt.Errorf("listen at %s: a socket is there already: %w", path, err)
}

// serveListener serves ADB to whoever connects. What becomes of one host is no matter of the others, and is logged by the phone.
func serveListener(ctx context.Context, p *phonesim.Phone, l net.Listener) error {
	ctx, hangUp := context.WithCancel(ctx)
	var hosts sync.WaitGroup
	defer hosts.Wait()
	defer hangUp() // a listener that fails ends its hosts, or the failure would be told when the last has left
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		nc, err := l.Accept()
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		hosts.Go(func() { p.ServeStream(ctx, nc) })
	}
}
