package action

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"phonerack/sync/wire"
)

// Care is the health of the slots and what people do about it; package firmware implements it. Errors are refusals.
type Care interface {
	// Slots tells how the slots are, by number, in a language of the catalogue.
	Slots(lang string) []SlotHealth
	Rack(lang string) RackStatus

	// Touched gives the slots that lose their power with a slot's port, or with hub its whole hub.
	Touched(slot int, hub bool) ([]int, error)
	Power(ctx context.Context, slot int, hub, on bool) error
	Cycle(ctx context.Context, slot int, hub bool) error

	Quarantine(slot int, length time.Duration, by, reason string) error
	EndQuarantine(slot int) error
	// Maintain says whether hands are in a slot, or for 0 anywhere in the rack.
	Maintain(slot int, on bool) error
	// Identify has the rack's light and the LED of a slot, and the slot's phone if it is free, or for 0 each phone that is free, show
	// themselves. It blocks meanwhile. Where there is a light, it is no error that no phone shows itself.
	Identify(ctx context.Context, slot int, d time.Duration) (Identified, error)
	// Sign has the screen of a slot's phone, or for 0 of the first that is free and well, show how the rack's page is reached. It
	// returns when the screen shows it, which ends by itself after d, or as soon as anybody else wants the phone.
	Sign(ctx context.Context, slot int, d time.Duration) (Sign, error)
	// EndSign ends that on a slot, or for 0 on all.
	EndSign(slot int) error
	// Reboot restarts a slot's phone and waits until it can be used again.
	Reboot(ctx context.Context, slot int, fence Fence) (Rebooted, error)
	// Retry has recovery begin anew on a slot.
	Retry(slot int) error
	// Forget says that a slot is empty on purpose.
	Forget(slot int) error
}

// Saying is one thing that somebody should know: what it is, why, and what to do about it.
type Saying struct {
	Code  string `json:"code"`
	Title string `json:"title"`
	Why   string `json:"why"`
	Do    string `json:"do"`
}

// SlotHealth is how a slot is.
type SlotHealth struct {
	Slot    int           `json:"slot"`
	Label   string        `json:"label,omitempty"`
	State   string        `json:"state"` // one of those of docs/health.md
	For     time.Duration `json:"for_ns"`
	Main    Saying        `json:"diagnosis"`
	Others  []Saying      `json:"others,omitempty"`
	Paused  bool          `json:"paused,omitempty"`     // gets no new task
	Rung    string        `json:"act,omitempty"`        // of the ladder, that is tried or comes next
	Next    time.Duration `json:"next_ns,omitempty"`    // until the ladder's next act
	Ends    time.Duration `json:"ends_ns,omitempty"`    // until the quarantine ends
	Power   *Outlet       `json:"power,omitempty"`      // of the slot's port; nil if it cannot be switched alone
	Acts    []Act         `json:"acts,omitempty"`       // of recovery, the newest first
	Left    string        `json:"left_alone,omitempty"` // why people have it left alone
	Serial  string        `json:"serial,omitempty"`
	Adb     State         `json:"adb"` // as phones lists it
	HubName string        `json:"hub,omitempty"`
}

// Act is one act of recovery.
type Act struct {
	Act     string        `json:"act"`
	Ago     time.Duration `json:"ago_ns"`
	Outcome string        `json:"outcome"`
}

// Outlet is what can be switched.
type Outlet struct {
	Name      string `json:"name"`
	Slots     []int  `json:"slots"`
	On        bool   `json:"on"`             // wanted
	Cut       string `json:"cut,omitempty"`  // what switching it off does, as far as it was seen: docs/power.md
	Busy      string `json:"busy,omitempty"` // what is being done
	Fault     string `json:"fault,omitempty"`
	Repowered int    `json:"repowered,omitempty"` // times that the power came back by itself
	Resets    int    `json:"resets,omitempty"`    // times that a reset of its hub gave power back
}

// RackStatus is how the controller is, and the slots in numbers.
type RackStatus struct {
	Findings    []Saying       `json:"findings"`
	Slots       map[string]int `json:"slots"` // in each state, at 0 too
	Maintenance bool           `json:"maintenance"`
	Outlets     []Outlet       `json:"outlets"`
	Way         Way            `json:"way"`
}

// Way is how people reach the rack's page.
type Way struct {
	Name  string   `json:"name,omitempty"` // on the LAN, such as "rack-1.local"; "" if none is announced
	URLs  []string `json:"urls"`           // the one to try first first
	Signs []Sign   `json:"signs"`
}

// Sign is a phone whose screen shows the way.
type Sign struct {
	Slot int           `json:"slot"`
	Ends time.Duration `json:"ends_ns"` // until it ends by itself
	URLs []string      `json:"urls"`
}

// Slots is the result of slots.
type Slots struct {
	Slots []SlotHealth `json:"slots"`
}

// Identified are the slots whose phones have shown themselves, and whether lights have.
type Identified struct {
	Slots   []int         `json:"slots"`
	Light   bool          `json:"light"`             // the rack's
	LED     bool          `json:"led,omitempty"`     // the slot's own
	Refusal *wire.Refusal `json:"refusal,omitempty"` // why the phone of the slot that was asked for has not; lights have
}

// Rebooted is the result of reboot.
type Rebooted struct {
	Slot   int    `json:"slot"`
	Serial string `json:"serial"`
	MS     int64  `json:"ms"` // until it could be used again
}

// LangArgs choose the language of sentences.
type LangArgs struct {
	Lang string `json:"lang,omitempty" doc:"language of the sentences: en or zh; en if not given"`
}

func (a *LangArgs) validate() error {
	if a.Lang == "" {
		a.Lang = "en"
	}
	if !slices.Contains(wire.Languages(), a.Lang) {
		return fmt.Errorf("lang must be one of %v", wire.Languages())
	}
	return nil
}

// PowerArgs are the arguments of power_on, power_off and power_cycle.
type PowerArgs struct {
	SlotArgs
	Hub bool `json:"hub,omitempty" doc:"the whole hub that the slot is behind, with all its phones, instead of the slot's port"`
}

func (a *PowerArgs) touches() (slot int, hub bool) { return a.Slot, a.Hub }

// QuarantineArgs are the arguments of quarantine.
type QuarantineArgs struct {
	SlotArgs
	Seconds int    `json:"seconds,omitempty" doc:"how long, 10 minutes to 7 days; an hour if not given"`
	Reason  string `json:"reason,omitempty" doc:"why, for whoever looks at the slot next"`
}

func (a *QuarantineArgs) validate() error {
	if a.Seconds < 0 || a.Seconds > maxQuarantine {
		return fmt.Errorf("seconds must be from 600 to %d", maxQuarantine)
	}
	return nil
}

// RackSlotArgs name a slot, or the whole rack.
type RackSlotArgs struct {
	Slot int `json:"slot,omitempty" doc:"number of the slot; the whole rack if not given"`
}

func (a *RackSlotArgs) slot() int { return a.Slot }

// MaintenanceArgs are the arguments of maintenance.
type MaintenanceArgs struct {
	RackSlotArgs
	Off bool `json:"off,omitempty" doc:"end it"`
}

// IdentifyArgs are the arguments of identify.
type IdentifyArgs struct {
	RackSlotArgs
	Seconds int `json:"seconds,omitempty" doc:"how long, at most 600; 4 if not given"`
}

func (a *IdentifyArgs) validate() error { return validSeconds(a.Seconds, maxIdentify) }

// SignArgs are the arguments of sign.
type SignArgs struct {
	Slot    int `json:"slot,omitempty" doc:"number of the slot; the first whose phone is free and well if not given"`
	Seconds int `json:"seconds,omitempty" doc:"how long, at most 600; 120 if not given"`
}

func (a *SignArgs) slot() int { return a.Slot }

func (a *SignArgs) validate() error { return validSeconds(a.Seconds, maxSign) }

// SignEndArgs are the arguments of sign_end.
type SignEndArgs struct {
	Slot int `json:"slot,omitempty" doc:"number of the slot; all if not given"`
}

func (a *SignEndArgs) slot() int { return a.Slot }

const (
	powerTimeout    = 2 * time.Minute // two hubs before it, a cycle and the phones' return
	maxQuarantine   = 7 * 24 * 3600   // seconds
	usualQuarantine = time.Hour
	maxIdentify     = 600 // seconds
	usualIdentify   = 4 * time.Second
	identifyMargin  = time.Minute
	rebootTimeout   = 5 * time.Minute
	maxSign         = 600 // seconds
	usualSign       = 2 * time.Minute
	signTimeout     = 90 * time.Second // for a few phones to be tried, one after the other
)

func careActions() []entry {
	quiet := func(name, summary string, again bool) Definition {
		return Definition{Name: name, Summary: summary, Role: Operator, NeedsQuiet: true, Idempotent: again, Timeout: powerTimeout}
	}
	act := func(name, summary string) Definition {
		return Definition{Name: name, Summary: summary, Role: Operator, Idempotent: true, Timeout: quick}
	}
	look := func(name, summary string) Definition {
		return Definition{Name: name, Summary: summary, Role: Viewer, Idempotent: true, Timeout: quick}
	}
	return []entry{
		define(look("slots", "tell how each slot is, why, and what to do"), listSlots),
		define(look("rack_status", "tell how the controller is, and the slots in numbers"), rackStatus),
		define(quiet("power_on", "give a slot's port or hub its power", true), func(ctx context.Context, c *call, a *PowerArgs) (any, error) {
			return Done{}, c.rack.Care().Power(ctx, a.Slot, a.Hub, true)
		}),
		define(quiet("power_off", "take the power of a slot's port or hub until somebody gives it back", true), func(ctx context.Context, c *call, a *PowerArgs) (any, error) {
			return Done{}, c.rack.Care().Power(ctx, a.Slot, a.Hub, false)
		}),
		define(quiet("power_cycle", "take the power of a slot's port or hub and give it back", false), func(ctx context.Context, c *call, a *PowerArgs) (any, error) {
			return Done{}, c.rack.Care().Cycle(ctx, a.Slot, a.Hub)
		}),
		define(act("quarantine", "leave a slot's phone alone for a time"), quarantine),
		define(act("quarantine_end", "take a slot's phone back into service"), onSlot(Care.EndQuarantine)),
		define(act("slot_retry", "have recovery begin anew on a slot"), onSlot(Care.Retry)),
		define(act("slot_forget", "say that a slot is empty on purpose"), onSlot(Care.Forget)),
		define(act("maintenance", "say that hands are inside: nothing is switched or restarted that nobody asks for"), maintain),
		define(Definition{
			Name: "identify", Summary: "show which rack and slot this is by its lights, and which phone by its screen if it is free", Role: Operator, Idempotent: true,
			Timeout: maxIdentify*time.Second + identifyMargin,
		}, identify),
		define(Definition{
			Name: "sign", Summary: "have a free phone's screen show the address of the rack's page", Role: Operator, Idempotent: true, Timeout: signTimeout,
		}, sign),
		define(Definition{
			Name: "reboot", Summary: "restart a slot's phone, and wait until it can be used again", Role: Operator, NeedsLease: true, Timeout: rebootTimeout,
		}, func(ctx context.Context, c *call, a *SlotArgs) (any, error) {
			return c.rack.Care().Reboot(ctx, a.Slot, c.fence)
		}),
		define(act("sign_end", "put the phones that show it back to their home screens"), endSign),
	}
}

func listSlots(_ context.Context, c *call, a *LangArgs) (any, error) {
	return Slots{Slots: c.rack.Care().Slots(a.Lang)}, nil
}

func rackStatus(_ context.Context, c *call, a *LangArgs) (any, error) {
	return c.rack.Care().Rack(a.Lang), nil
}

func quarantine(_ context.Context, c *call, a *QuarantineArgs) (any, error) {
	if err := slotExists(c.rack, a.Slot); err != nil {
		return nil, err
	}
	return Done{}, c.rack.Care().Quarantine(a.Slot, lasting(a.Seconds, usualQuarantine), c.actor.Name, a.Reason)
}

// onSlot makes an action of what needs a slot and nothing else.
func onSlot(do func(Care, int) error) func(context.Context, *call, *SlotArgs) (any, error) {
	return func(_ context.Context, c *call, a *SlotArgs) (any, error) {
		if err := slotExists(c.rack, a.Slot); err != nil {
			return nil, err
		}
		return Done{}, do(c.rack.Care(), a.Slot)
	}
}

func maintain(_ context.Context, c *call, a *MaintenanceArgs) (any, error) {
	if err := slotOrAll(c.rack, a.Slot); err != nil {
		return nil, err
	}
	return Done{}, c.rack.Care().Maintain(a.Slot, !a.Off)
}

func identify(ctx context.Context, c *call, a *IdentifyArgs) (any, error) {
	if err := slotOrAll(c.rack, a.Slot); err != nil {
		return nil, err
	}
	return c.rack.Care().Identify(ctx, a.Slot, lasting(a.Seconds, usualIdentify))
}

func sign(ctx context.Context, c *call, a *SignArgs) (any, error) {
	if err := slotOrAll(c.rack, a.Slot); err != nil {
		return nil, err
	}
	return c.rack.Care().Sign(ctx, a.Slot, lasting(a.Seconds, usualSign))
}

func endSign(_ context.Context, c *call, a *SignEndArgs) (any, error) {
	if err := slotOrAll(c.rack, a.Slot); err != nil {
		return nil, err
	}
	return Done{}, c.rack.Care().EndSign(a.Slot)
}

// slotOrAll is slotExists where 0 stands for the whole rack.
func slotOrAll(r Rack, slot int) error {
	if slot == 0 {
		return nil
	}
	return slotExists(r, slot)
}

// lasting is how long somebody wants something, or what is usual where they do not say.
func lasting(seconds int, usual time.Duration) time.Duration {
	return cmp.Or(time.Duration(seconds)*time.Second, usual)
}

// validSeconds is for a number of seconds that may be left out.
func validSeconds(n, most int) error {
	if n < 0 || n > most {
		return fmt.Errorf("seconds must be from 1 to %d", most)
	}
	return nil
}

// toucher is implemented by arguments of actions that need quiet.
type toucher interface {
	touches() (slot int, hub bool)
}

// callQuiet runs an act that disturbs all phones of a port or hub: while anybody else has one of them it is refused.
func (r *Registry) callQuiet(ctx context.Context, c *call, e entry) (any, error) {
	slot, hub := c.args.(toucher).touches()
	if err := slotExists(c.rack, slot); err != nil {
		return nil, err
	}
	touched, err := c.rack.Care().Touched(slot, hub)
	if err != nil {
		return nil, err
	}
	for _, n := range touched {
		_, giveBack, err := r.leases.Borrow(n, c.actor.Name, e.Timeout)
		if err != nil {
			return nil, err
		}
		defer giveBack()
	}
	result, err := e.run(ctx, c)
	return result, timedOut(ctx, e, c, err)
}
