package firmware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// What a slot's owner has seen of its phone, stage by stage. Only the owner touches the look itself.

// openSeen is how opening the link went.
func openSeen(err error) health.Open {
	switch {
	case err == nil:
		return health.OpenOK
	case errors.Is(err, adb.ErrHeld):
		return health.OpenHeld
	case errors.Is(err, adb.ErrDenied):
		return health.OpenDenied
	case errors.Is(err, adb.ErrDisconnected):
		return "" // it left the bus meanwhile: the next look tells
	}
	return health.OpenFailed
}

const holderTime = 2 * time.Second // of the search for who holds a phone

// heldBy names who holds the phone's interface; "" if that is not known.
func (s *slot) heldBy(ctx context.Context) string {
	usb, ok := s.source.(*usbSource)
	if !ok {
		return ""
	}
	d, _, here := usb.present()
	if !here {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, holderTime)
	defer cancel()
	return s.holder(ctx, d)
}

// greetSeen is how the phone answered CNXN. A link that broke shows nothing.
func greetSeen(err error) health.Greet {
	switch {
	case err == nil:
		return health.GreetOK
	case errors.Is(err, adb.ErrUnauthorized):
		return health.GreetAsked
	case errors.Is(err, adb.ErrStall):
		return health.GreetStalled
	case errors.Is(err, adb.ErrTimeout):
		return health.GreetSilent
	case errors.Is(err, adb.ErrProtocol), errors.Is(err, adb.ErrTLS):
		return health.GreetGarbled
	}
	return ""
}

// shellSeen is how the harmless command went.
func shellSeen(err error) health.Shell {
	switch {
	case err == nil:
		return health.ShellOK
	case errors.Is(err, adb.ErrRefused):
		return health.ShellRefused
	case errors.Is(err, adb.ErrDisconnected):
		return health.ShellLost
	case errors.Is(err, adb.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return health.ShellSilent
	}
	return ""
}

// broke notes that the link of a phone that had answered is gone.
func (s *slot) broke(err error) {
	s.look.Shell, s.look.Stall = health.ShellLost, errors.Is(err, adb.ErrStall)
}

// probe asks the phone a harmless question, and notes what that shows.
func (s *slot) probe(ctx context.Context, conn *adb.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	answer, err := conn.Shell(ctx, "getprop sys.boot_completed")
	if err != nil && ctx.Err() == context.Canceled {
		return err // nobody has waited for the answer
	}
	s.look.Stall = errors.Is(err, adb.ErrStall)
	s.look.Shell, s.look.Booted = shellSeen(err), strings.TrimSpace(string(answer.Stdout)) == "1"
	return err
}

// seen notes that a phone can be used.
func (s *slot) seen(l *live) {
	s.look.Shell, s.look.Phone = health.ShellOK, l.serial
	if l.phone != nil {
		s.look.Booted, s.look.Model = true, l.phone.Info().Model
	}
}

// tell hands what was seen over to who keeps the slot's health.
func (s *slot) tell() {
	if s.saw != nil {
		s.saw(s.number, s.look)
	}
	select {
	case <-s.asked: // that was the answer
	default:
	}
}

// answer tells what was seen if somebody has asked for it: what a phone that is ill shows counts once an interval, however
// often it is tried.
func (s *slot) answer() {
	select {
	case <-s.asked:
		if s.saw != nil {
			s.saw(s.number, s.look)
		}
	default:
	}
}

// ask has the owner look at its phone. What has nothing to look at is answered here: an empty port, and a phone whose prompt
// waits for a person, which may take for ever. look tells what an empty port shows.
func (s *slot) ask(look func(path string) (health.Look, bool)) {
	state, _ := s.snapshot()
	if usb, ok := s.source.(*usbSource); ok {
		if _, _, here := usb.present(); !here {
			if l, ok := look(usb.path); ok {
				s.saw(s.number, l)
			}
			return
		}
	}
	if state.State == action.Unauthorized {
		s.saw(s.number, health.Look{Bus: health.BusADB, Open: health.OpenOK, Greet: health.GreetAsked, Phone: state.Serial})
		return
	}
	select {
	case s.asked <- struct{}{}:
	default: // it was asked already
	}
}

// portLook is what the kernel shows at a port where no phone with ADB is known. A phone that has just come is no look yet.
func portLook(h bus.Holding) (health.Look, bool) {
	switch h {
	case bus.Nothing:
		return health.Look{Bus: health.BusEmpty}, true
	case bus.Fastboot:
		return health.Look{Bus: health.BusFastboot}, true
	case bus.Other:
		return health.Look{Bus: health.BusOther}, true
	}
	return health.Look{}, false
}

// An errand is an act of the ladder on the link to a phone. Its owner carries it out: nobody else opens and closes links.
type errand struct {
	rung health.Rung
	ctx  context.Context // of who waits for it
	done chan error      // takes one answer without waiting
}

// errNoWay means that this rack has no way to carry an act out.
var errNoWay = errors.New("there is no way to do this here")

// send gives an errand to the slot's owner and waits for its end.
func (s *slot) send(ctx context.Context, rung health.Rung) error {
	e := errand{rung, ctx, make(chan error, 1)}
	select {
	case s.errands <- e:
	case <-ctx.Done():
		return fmt.Errorf("the owner of slot %d does not come to it: %w", s.number, ctx.Err())
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errErrand ends a session so that its errand can be carried out on a closed link.
type errErrand struct{ errand }

func (e errErrand) Error() string { return "recovery: " + e.rung.String() }

// resetter is a Dialer that can reset a phone's port; *usblink.Host is one.
type resetter interface {
	Reset(ctx context.Context, d bus.Device) error
}

// carry carries an errand out; the slot's link is closed.
func (s *slot) carry(ctx context.Context, e errand) {
	if e.ctx.Err() != nil {
		return // nobody waits any more
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	var err error
	switch e.rung {
	case health.Reopen: // it was closed, and is opened next
	case health.Resync:
		s.anew = true
	case health.ClearHalt:
		err = s.clearHalt(ctx)
	case health.Reset:
		err = s.reset(ctx)
	case health.Reboot:
		err = s.restart(ctx)
	default:
		err = errNoWay
	}
	e.done <- err
}

func (s *slot) reset(ctx context.Context) error {
	host, d, err := onUSB[resetter](s)
	if err != nil {
		return err
	}
	return host.Reset(ctx, d)
}

// unhalter is a Dialer that can clear the halt of a phone's endpoints; *usblink.Host is one.
type unhalter interface {
	ClearHalt(ctx context.Context, d bus.Device) error
}

// errNoStall means that nothing is halted, as far as was seen last: clearing a healthy endpoint breaks phones.
var errNoStall = errors.New("the phone has not stalled")

func (s *slot) clearHalt(ctx context.Context) error {
	if !s.look.Stall {
		return errNoStall
	}
	host, d, err := onUSB[unhalter](s)
	if err != nil {
		return err
	}
	return host.ClearHalt(ctx, d)
}

// onUSB gives the phone that is plugged in, and the Dialer if it can do more than open it.
func onUSB[T any](s *slot) (host T, d bus.Device, err error) {
	usb, ok := s.source.(*usbSource)
	if !ok {
		return host, d, errNoWay
	}
	if host, ok = usb.dialer.(T); !ok {
		return host, d, errNoWay
	}
	d, _, here := usb.present()
	if !here {
		return host, d, errUnplugged
	}
	return host, d, nil
}

// restart has a phone whose link is closed start anew: it answers CNXN, and adbd needs nothing else for it.
func (s *slot) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	link, err := s.source.dial(ctx)
	if err != nil {
		return err
	}
	conn, err := adb.Connect(ctx, link, s.hello)
	if err != nil {
		return err
	}
	defer s.close(conn)
	return farewell(ctx, conn, "reboot:")
}

// farewell asks adbd for what it hangs up for, with or without an answer.
func farewell(ctx context.Context, conn *adb.Conn, service string) error {
	answer, err := conn.Open(ctx, service)
	switch {
	case errors.Is(err, adb.ErrRefused):
		return err
	case err == nil:
		defer answer.Close()
	}
	return nil
}

// fresh is a link on which nothing of before is believed: what is left over is read first, then the phone is greeted anew,
// which is the protocol's own way to begin again.
type fresh struct{ adb.Link }

func (f fresh) Properties() adb.LinkProperties {
	p := f.Link.Properties()
	p.Stale = true
	return p
}
