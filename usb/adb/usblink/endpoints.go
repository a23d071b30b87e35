package usblink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/gousb"

	"phonerack/usb/adb"
)

const (
	// cancelPatience bounds the wait for a cancelled transfer.
	cancelPatience = 2 * time.Second
	// closePatience bounds the release of a device that has no transfers left.
	closePatience = 3 * time.Second
)

type reader interface {
	ReadContext(ctx context.Context, buf []byte) (int, error)
}

type writer interface {
	WriteContext(ctx context.Context, buf []byte) (int, error)
}

// endpoints implements adb.Endpoints over gousb's endpoints. Each transfer runs
// in a goroutine of its own, because gousb waits for a cancelled transfer
// without a bound.
type endpoints struct {
	in      reader
	out     writer
	release func() error // gives interface, handle and context back; may block

	life context.Context // ends with Close
	end  context.CancelFunc

	mu      sync.Mutex // guards closed, and Add of pending against its Wait
	closed  bool
	pending sync.WaitGroup // transfers that the kernel has

	closeOnce sync.Once
	closeErr  error
}

func newEndpoints(in reader, out writer, release func() error) *endpoints {
	e := &endpoints{in: in, out: out, release: release}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

var errClosed = fmt.Errorf("%w: %w", adb.ErrDisconnected, net.ErrClosed)

// Read implements adb.Endpoints.
func (e *endpoints) Read(ctx context.Context, buf []byte) (int, error) {
	return e.transfer(ctx, func(ctx context.Context) (int, error) { return e.in.ReadContext(ctx, buf) })
}

// Write implements adb.Endpoints. An empty buf makes gousb submit a transfer of
// length 0, which is a zero-length packet.
func (e *endpoints) Write(ctx context.Context, buf []byte) (int, error) {
	return e.transfer(ctx, func(ctx context.Context) (int, error) { return e.out.WriteContext(ctx, buf) })
}

type outcome struct {
	n   int
	err error
}

func (e *endpoints) transfer(ctx context.Context, run func(context.Context) (int, error)) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	done := make(chan outcome, 1)
	if !e.start(func() {
		n, err := run(both)
		done <- outcome{n, err}
	}) {
		return 0, errClosed
	}
	select {
	case o := <-done:
		return e.result(ctx, o)
	case <-both.Done():
	}
	timer := time.NewTimer(cancelPatience)
	defer timer.Stop()
	select {
	case o := <-done:
		return e.result(ctx, o)
	case <-timer.C:
		return 0, ErrStuck
	}
}

// start runs f in a goroutine that Close waits for.
func (e *endpoints) start(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.pending.Go(f)
	return true
}

// result keeps what a cancelled transfer has moved: dropping it would lose
// step with the phone.
func (e *endpoints) result(ctx context.Context, o outcome) (int, error) {
	if !errors.Is(o.err, gousb.TransferCancelled) {
		return o.n, mapError(o.err)
	}
	if err := ctx.Err(); err != nil {
		return o.n, err
	}
	if e.life.Err() != nil {
		return o.n, errClosed
	}
	return o.n, fmt.Errorf("%w: the transfer was cancelled by the system", adb.ErrDisconnected)
}

// Close implements adb.Endpoints. It cancels transfers, and gives interface,
// configuration, handle and context back in that order. It blocks for
// cancelPatience plus closePatience at most; if that is not enough it returns
// ErrStuck and the rest happens in the background.
func (e *endpoints) Close() error {
	e.closeOnce.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *endpoints) close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	released := make(chan error, 1)
	go func() {
		// libusb may not lose a handle whose transfers the kernel still has.
		e.pending.Wait()
		released <- e.release()
	}()
	timer := time.NewTimer(cancelPatience + closePatience)
	defer timer.Stop()
	select {
	case err := <-released:
		return err
	case <-timer.C:
		return ErrStuck
	}
}
