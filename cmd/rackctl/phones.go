package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
)

type slotArg struct {
	Slot int `arg:"" help:"Number of the slot."`
}

func (a slotArg) args() action.SlotArgs { return action.SlotArgs{Slot: a.Slot} }

type phonesCommand struct{}

func (phonesCommand) Run(s *session) error {
	return call(s, "phones", nil, func(result action.Phones) error {
		t := table.New(s.stdout, "SLOT", "PORT", "STATE", "SERIAL", "MODEL", "ANDROID", "HELD BY", "REMARK")
		for _, p := range result.Phones {
			slot := "none"
			if p.Slot != 0 {
				slot = strconv.Itoa(p.Slot)
			}
			t.Row(slot, p.Port, string(p.State), p.Serial, p.Model, p.Android, heldBy(p.Lease), remark(p))
		}
		return t.Flush()
	})
}

func heldBy(l *lease.State) string {
	if l == nil {
		return ""
	}
	return l.Holder.String()
}

func remark(p action.PhoneState) string {
	if p.Reason == "" && p.Duplicate {
		return "another phone has the same serial number"
	}
	return p.Reason
}

type observeCommand struct {
	slotArg
	Image string `help:"Also take a picture and write it to this JPEG file." placeholder:"FILE"`
	Marks bool   `help:"Draw each element's index on the picture, or a grid where there are no elements."`
	Grid  bool   `help:"Draw a grid with columns A to J and rows 1 to 10 on the picture."`
}

// Validate is called by kong.
func (c observeCommand) Validate() error {
	switch {
	case c.Marks && c.Grid:
		return errors.New("--marks and --grid cannot be drawn on one picture: choose one")
	case c.Marks && c.Image == "":
		return errors.New("--marks are drawn on the picture: name its file with --image")
	case c.Grid && c.Image == "":
		return errors.New("--grid is drawn on the picture: name its file with --image")
	}
	return nil
}

func (c observeCommand) Run(s *session) error {
	var o action.Observation
	args := action.ObserveArgs{SlotArgs: c.args(), Image: c.Image != "", Marks: c.Marks, Grid: c.Grid}
	if err := s.client.Call(s.ctx, "observe", args, &o); err != nil {
		return err
	}
	if c.Image != "" {
		if err := c.keep(o.Image); err != nil {
			return err
		}
		o.Image = nil // it is in the file
	}
	if s.json {
		return s.print(o)
	}
	_, err := fmt.Fprint(s.stdout, o.Screen)
	return err
}

func (c observeCommand) keep(image []byte) error {
	if len(image) == 0 {
		return fmt.Errorf("the phone in slot %d gave no picture of its screen: try again, or look without --image", c.Slot)
	}
	return writePicture(c.Image, image)
}

func writePicture(path string, image []byte) error {
	return writeWhole(path, func(w io.Writer) error {
		_, err := w.Write(image)
		return err
	})
}

type screenshotCommand struct {
	slotArg
	File string `arg:"" help:"JPEG file to write; it appears whole or not at all."`
}

func (c screenshotCommand) Run(s *session) error {
	var shot action.Screenshot
	if err := s.client.Call(s.ctx, "screenshot", c.args(), &shot); err != nil {
		return err
	}
	if err := writePicture(c.File, shot.Image); err != nil {
		return err
	}
	shot.Image = nil // it is in the file
	if s.json {
		return s.print(shot)
	}
	_, err := fmt.Fprintf(s.stdout, "%d by %d pixels, %s in front\n", shot.Width, shot.Height, table.Plain(shot.Package))
	return err
}

type pingCommand struct{}

func (pingCommand) Run(s *session) error {
	return call(s, "ping", struct{}{}, func(pong action.Pong) error {
		_, err := fmt.Fprintf(s.stdout, "rackd is there with %d slots, start %s\n", pong.Slots, pong.Boot)
		return err
	})
}

type rebootCommand struct{ slotArg }

func (c rebootCommand) Run(s *session) error {
	return call(s, "reboot", c.args(), func(r action.Rebooted) error {
		_, err := fmt.Fprintf(s.stdout, "back after %s\n", short(time.Duration(r.MS)*time.Millisecond))
		return err
	})
}

// target names what to touch.
type target struct {
	Element    *int   `help:"Index in the observation."`
	Generation uint64 `help:"Number of the screen that lists the element."`
	Text       string `help:"Visible text, the whole of it."`
	X          *int   `arg:"" optional:"" help:"Pixels from the left."`
	Y          *int   `arg:"" optional:"" help:"Pixels from the top."`
}

func (t target) args(slot slotArg) action.TapArgs {
	return action.TapArgs{SlotArgs: slot.args(), Element: t.Element, Generation: t.Generation, Text: t.Text, X: t.X, Y: t.Y}
}

type tapCommand struct {
	slotArg
	target
}

func (c tapCommand) Run(s *session) error { return touch(s, "tap", c.target.args(c.slotArg)) }

type pressCommand struct {
	slotArg
	target
}

func (c pressCommand) Run(s *session) error { return touch(s, "long_press", c.target.args(c.slotArg)) }

func touch(s *session, name string, args action.TapArgs) error {
	return call(s, name, args, func(at action.Point) error {
		_, err := fmt.Fprintf(s.stdout, "touched %d %d\n", at.X, at.Y)
		return err
	})
}

type swipeCommand struct {
	slotArg
	X1 int           `arg:"" name:"x1" help:"Start, pixels from the left."`
	Y1 int           `arg:"" name:"y1" help:"Start, pixels from the top."`
	X2 int           `arg:"" name:"x2" help:"End, pixels from the left."`
	Y2 int           `arg:"" name:"y2" help:"End, pixels from the top."`
	In time.Duration `help:"How long it takes." default:"300ms"`
}

func (c swipeCommand) Run(s *session) error {
	return act(s, "swipe", action.SwipeArgs{SlotArgs: c.args(), X1: c.X1, Y1: c.Y1, X2: c.X2, Y2: c.Y2, MS: int(c.In.Milliseconds())})
}

type typeCommand struct {
	slotArg
	Text string `arg:"" help:"What to type."`
}

func (c typeCommand) Run(s *session) error {
	return call(s, "input_text", action.TextArgs{SlotArgs: c.args(), Text: c.Text}, func(typed action.Typed) error {
		_, err := fmt.Fprintf(s.stdout, "typed; text %s\n", typed.Text)
		return err
	})
}

type keyCommand struct {
	slotArg
	Key string `arg:"" help:"Name of the key: ${keys}."`
}

func (c keyCommand) Run(s *session) error {
	return act(s, "press_key", action.KeyArgs{SlotArgs: c.args(), Key: c.Key})
}

type launchCommand struct {
	slotArg
	App string `arg:"" help:"Package name of the app."`
}

func (c launchCommand) Run(s *session) error {
	return act(s, "launch_app", action.AppArgs{SlotArgs: c.args(), App: c.App})
}

func act(s *session, name string, args any) error {
	return call(s, name, args, func(action.Done) error {
		_, err := fmt.Fprintln(s.stdout, "done")
		return err
	})
}

type holdCommand struct {
	slotArg
	For     time.Duration `help:"How long, such as 10m." placeholder:"DURATION" xor:"end"`
	Release bool          `help:"Give the slot back." xor:"end"`
}

func (c holdCommand) Run(s *session) error {
	if c.Release {
		return act(s, "release", c.args())
	}
	args := action.HoldArgs{SlotArgs: c.args(), Seconds: seconds(c.For)}
	return call(s, "hold", args, func(l lease.State) error {
		_, err := fmt.Fprintf(s.stdout, "slot %d is yours until %s\n", l.Slot, l.Until.Local().Format(time.TimeOnly))
		return err
	})
}

// seconds rounds up: a part of a second must not become 0, which asks for the default.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
