package firmware

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"

	"phonerack/agent/phone"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// readyPhone is a slot's phone as the actions use it; it implements action.Phone.
type readyPhone struct {
	slot int
	*live
}

// Phone implements action.Rack.
func (r *Rack) Phone(number int) (action.Phone, error) {
	s, ok := r.slots[number]
	if !ok {
		return nil, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": number})
	}
	state, l := s.snapshot()
	switch {
	case l == nil:
		if err := r.care.wanted(number); err != nil {
			return nil, err
		}
		return nil, s.refuse(state)
	case l.phone == nil:
		return limitedPhone{readyPhone{number, l}, s.refuse(state)}, nil
	}
	return readyPhone{number, l}, nil
}

// usable returns the slot's connection to a phone with a screen, or says why there is none.
func (s *slot) usable() (*live, error) {
	state, l := s.snapshot()
	if l == nil || l.phone == nil {
		return nil, s.refuse(state)
	}
	return l, nil
}

// refuse says why a slot in that state has no phone to use.
func (s *slot) refuse(state action.PhoneState) error {
	code := wire.PhoneOffline
	switch state.State {
	case action.Empty:
		code = wire.SlotEmpty
	case action.Unauthorized:
		code = wire.PhoneUnauthorized
	case action.Limited:
		code = wire.PhoneLimited
	}
	args := map[string]any{"slot": s.number, "state": string(state.State)}
	if state.Serial != "" {
		args["serial"] = state.Serial
	}
	if state.Reason != "" {
		args["detail"] = state.Reason
	}
	return wire.Refuse(code, args)
}

func (p readyPhone) Observe(ctx context.Context, want action.Want) (action.Observation, error) {
	scene, err := p.hand.observe(ctx, want.Image)
	if err != nil {
		return action.Observation{}, p.explain(ctx, "observe", "", err)
	}
	return observation(scene, want)
}

func (p readyPhone) Element(ctx context.Context, generation uint64, index int) (x, y int, err error) {
	x, y, err = p.hand.element(ctx, generation, index)
	return x, y, p.explain(ctx, "find the element", "", err)
}

func (p readyPhone) Text(ctx context.Context, text string) (x, y int, err error) {
	x, y, err = p.hand.text(ctx, text)
	return x, y, p.explain(ctx, "observe", "", err)
}

func (p readyPhone) Under(fence action.Fence) action.Controls {
	return explained{p, p.phone.Under(fence)}
}

func (p readyPhone) Shell(ctx context.Context, cmd string, pipes action.Pipes) (int, error) {
	code, err := p.conn.StartShell(ctx, cmd, adb.Stdio{Stdin: pipes.In, Stdout: pipes.Out, Stderr: pipes.Err})
	return code, p.explain(ctx, "shell", "", err)
}

func (p readyPhone) Push(ctx context.Context, r io.Reader, path string, mode fs.FileMode, mtime time.Time) error {
	return p.files(ctx, path, func(s *adb.Sync) error { return s.Send(ctx, r, path, mode, mtime) })
}

func (p readyPhone) Pull(ctx context.Context, path string, w io.Writer) error {
	return p.files(ctx, path, func(s *adb.Sync) error { return s.Receive(ctx, path, w) })
}

func (p readyPhone) files(ctx context.Context, path string, transfer func(*adb.Sync) error) error {
	s, err := p.conn.Sync(ctx)
	if err == nil {
		err = transfer(s)
		s.Close()
	}
	return p.explain(ctx, "transfer", path, err)
}

// explained gives the refusal for each error of the phone's controls. It implements action.Controls.
type explained struct {
	phone    readyPhone
	controls *phone.Controls
}

func (e explained) Tap(ctx context.Context, x, y int) error {
	return e.phone.explain(ctx, "tap", "", e.controls.Tap(ctx, x, y))
}

func (e explained) LongPress(ctx context.Context, x, y int, d time.Duration) error {
	return e.phone.explain(ctx, "long press", "", e.controls.LongPress(ctx, x, y, d))
}

func (e explained) Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return e.phone.explain(ctx, "swipe", "", e.controls.Swipe(ctx, x1, y1, x2, y2, d))
}

func (e explained) Key(ctx context.Context, name string) error {
	return e.phone.explain(ctx, "press "+name, "", e.controls.Key(ctx, name))
}

func (e explained) Launch(ctx context.Context, pkg string) error {
	return e.phone.explain(ctx, "launch", pkg, e.controls.Launch(ctx, pkg))
}

// explain turns what went wrong with a phone into a refusal; object is the file or app that it was about. An error that
// only says that the time of ctx is over stays what it is.
func (p readyPhone) explain(ctx context.Context, what, object string, err error) error {
	if err == nil {
		return nil
	}
	partly := errors.Is(err, phone.ErrPartlyTyped) // goes before what stopped it: it must not read as nothing typed
	if r, ok := errors.AsType[*wire.Refusal](err); ok && !partly && !errors.Is(err, phone.ErrUnknownOutcome) {
		return r.With(map[string]any{"slot": p.slot, "serial": p.serial})
	}
	args := map[string]any{"slot": p.slot, "serial": p.serial, "what": what}
	if code := p.codeOf(ctx, err, object, args); code != "" {
		return wire.Refuse(code, args).Because(err)
	}
	return err
}

// codeOf finds the code for an error and adds the arguments that its sentence needs.
func (p readyPhone) codeOf(ctx context.Context, err error, object string, args map[string]any) wire.Code {
	unknown := errors.Is(err, phone.ErrUnknownOutcome)
	select {
	case <-p.conn.Done():
		if !unknown {
			return wire.PhoneLost
		}
	default:
	}
	detail := func(code wire.Code, name string) wire.Code {
		args[name] = err.Error()
		return code
	}
	if sync, ok := errors.AsType[*adb.SyncError](err); ok {
		args["path"] = object
		return fileCode(sync, args)
	}
	switch {
	case unknown:
		return wire.OutcomeUnknown
	case errors.Is(err, phone.ErrPartlyTyped):
		return detail(wire.PartlyTyped, "reason")
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return ""
	case errors.Is(err, phone.ErrDeviceSetup):
		args["setting"] = "USB debugging (Security settings)"
		return wire.PhoneSetup
	case errors.Is(err, phone.ErrAppMissing):
		args["app"] = object
		return wire.AppMissing
	case errors.Is(err, phone.ErrOffScreen), errors.Is(err, phone.ErrBadArgument):
		return detail(wire.BadRequest, "reason")
	case errors.Is(err, phone.ErrRejected), errors.Is(err, adb.ErrRefused):
		return detail(wire.PhoneRejected, "detail")
	case errors.Is(err, adb.ErrUnsupported):
		args["what"] = "this on so old a phone"
		return wire.Unsupported
	case errors.Is(err, adb.ErrDisconnected):
		return wire.PhoneLost
	case args["what"] == "observe":
		return detail(wire.ObservationFailed, "detail")
	case errors.Is(err, adb.ErrTooLarge): // a command that does not fit into a packet
		return detail(wire.BadRequest, "reason")
	case errors.Is(err, adb.ErrTimeout), errors.Is(err, context.DeadlineExceeded): // of a bound below ctx
		return detail(wire.PhoneOffline, "detail")
	}
	return ""
}

// fileCode is the code for the phone's answer to a file operation.
func fileCode(err *adb.SyncError, args map[string]any) wire.Code {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.FileMissing
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return wire.FileDenied
	case errors.Is(err, syscall.ENOSPC):
		return wire.StorageFull
	}
	args["detail"] = err.Message
	return wire.PhoneRejected
}
