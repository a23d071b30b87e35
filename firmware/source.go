package firmware

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"phonerack/firmware/config"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// Dialer opens the link to a phone on USB; *usblink.Host implements it.
type Dialer interface {
	Open(ctx context.Context, d bus.Device) (adb.Link, error)
}

// errUnplugged means that there is no phone to open.
var errUnplugged = errors.New("no phone is plugged in")

// A source is how a slot reaches whatever sits in it.
type source interface {
	// port names the place for people.
	port() string
	// wait blocks until a phone is there. The context it returns ends when that phone is unplugged.
	wait(ctx context.Context) (attached context.Context, serial string, err error)
	// dial opens the link; errUnplugged if there is no phone after all.
	dial(ctx context.Context) (adb.Link, error)
	// replugged is signalled when something was plugged in, so that a pause can end early.
	replugged() <-chan struct{}
}

// usbSource is a USB port. The watcher of the bus plugs and unplugs it.
type usbSource struct {
	path   string
	dialer Dialer
	wake   chan struct{} // one signal at most

	mu     sync.Mutex
	device bus.Device // guarded by mu, as is what follows
	here   bool
	gone   context.CancelFunc // ends the contexts of the attachment
	until  context.Context
}

func newUSBSource(path string, dialer Dialer) *usbSource {
	return &usbSource{path: path, dialer: dialer, wake: make(chan struct{}, 1)}
}

func (s *usbSource) port() string { return s.path }

func (s *usbSource) replugged() <-chan struct{} { return s.wake }

func (s *usbSource) plug(d bus.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here {
		s.gone()
	}
	s.device, s.here = d, true
	s.until, s.gone = context.WithCancel(context.Background())
	s.signal()
}

// unplug ends an attachment, if it is the present one.
func (s *usbSource) unplug(d bus.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here && s.device.Same(d) {
		s.here = false
		s.gone()
		s.signal()
	}
}

func (s *usbSource) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *usbSource) present() (bus.Device, context.Context, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.device, s.until, s.here
}

func (s *usbSource) wait(ctx context.Context) (context.Context, string, error) {
	for {
		if d, until, here := s.present(); here {
			serial := ""
			if d.SerialUsable() {
				serial = d.Serial
			}
			return until, serial, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
}

func (s *usbSource) dial(ctx context.Context) (adb.Link, error) {
	d, _, here := s.present()
	if !here {
		return nil, errUnplugged
	}
	return s.dialer.Open(ctx, d)
}

// streamSource is a development phone: plugged in is what answers at the address.
type streamSource struct{ stream config.Stream }

func (s streamSource) port() string { return s.stream.Address }

func (s streamSource) replugged() <-chan struct{} { return nil }

func (s streamSource) wait(context.Context) (context.Context, string, error) {
	return context.Background(), "", nil
}

const streamDialTimeout = 5 * time.Second

func (s streamSource) dial(ctx context.Context) (adb.Link, error) {
	network, address := s.stream.Network()
	dialer := net.Dialer{Timeout: streamDialTimeout}
	conn, err := dialer.DialContext(ctx, network, address)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil, errUnplugged
	}
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	return adb.NewStreamLink(conn), nil
}
