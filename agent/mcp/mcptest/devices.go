package mcptest

import (
	"context"
	"image"
	"sync"
	"time"

	"phonerack/agent/mcp"
	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

// Slot is the one slot of Devices.
const Slot = 3

// Devices implements mcp.Devices with one phone in the slot Slot.
type Devices struct {
	Phone   *toolstest.Phone
	Allowed []string // permissions

	mu    sync.Mutex // guards what follows
	scene *perception.Scene
	held  string // who holds the slot
}

var _ mcp.Devices = (*Devices)(nil)

// NewDevices returns devices whose phone shows one button.
func NewDevices() *Devices {
	return &Devices{Phone: toolstest.New(&perception.Scene{
		Package: "com.example.shop", Activity: ".Main",
		Elements: []perception.Element{
			{Text: "Buy\u200b now", Class: "android.widget.Button", Clickable: true, Enabled: true, Bounds: image.Rect(100, 200, 500, 300)},
		},
	})}
}

// Take gives the slot to somebody; "" frees it.
func (d *Devices) Take(who string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = who
}

// Permissions implements mcp.Devices.
func (d *Devices) Permissions() []string { return d.Allowed }

// Phones implements mcp.Devices.
func (d *Devices) Phones(context.Context, mcp.Caller) ([]mcp.Phone, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []mcp.Phone{{Slot: Slot, State: "ready", Serial: "SIM3", Model: "Sim Phone", Android: "14", HeldBy: d.held}}, nil
}

func (d *Devices) free(c mcp.Caller, slot int) error {
	switch {
	case slot != Slot:
		return wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	case d.held != "" && d.held != c.Name:
		return wire.Refuse(wire.SlotBusy, map[string]any{"slot": slot, "holder": d.held, "until": "2026-11-30T12:00:00Z"})
	}
	return nil
}

// Act implements mcp.Devices.
func (d *Devices) Act(ctx context.Context, c mcp.Caller, slot int, decision planner.Decision) (mcp.Act, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.free(c, slot); err != nil {
		return mcp.Act{}, err
	}
	env := d.Phone.Env()
	env.Scene, env.Permissions = d.scene, d.Allowed
	env.Look = func(ctx context.Context) (*perception.Scene, error) {
		scene, err := d.Phone.Look(ctx)
		d.scene = scene
		return scene, err
	}
	out, err := tools.Default().Execute(ctx, env, decision)
	if err != nil {
		return mcp.Act{}, err
	}
	act := mcp.Act{Wrote: out.Wrote, Text: out.Text, Result: out.Result}
	if out.Screenshot {
		if out.Scene, err = env.Look(ctx); err != nil {
			return mcp.Act{}, err
		}
		act.Image = []byte{0xff, 0xd8, 0xff, 0xd9}
	}
	if s := out.Scene; s != nil {
		act.Screen = &mcp.Screen{Generation: s.Generation, Package: s.Package, Activity: s.Activity, Width: s.Width, Height: s.Height, Elements: s.Prompt()}
	}
	return act, nil
}

// Hold implements mcp.Devices.
func (d *Devices) Hold(_ context.Context, c mcp.Caller, slot int, _ time.Duration) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.free(c, slot); err != nil {
		return time.Time{}, err
	}
	d.held = c.Name
	return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), nil
}

// Release implements mcp.Devices.
func (d *Devices) Release(_ context.Context, c mcp.Caller, slot int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.free(c, slot); err != nil {
		return err
	}
	d.held = ""
	return nil
}
