package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// The commands of this version.
const (
	Ping       = "ping"       // the rack answers with its time and versions
	Identify   = "identify"   // a slot, or the rack, shows itself to who stands before it; args {"seconds": 1-600}
	Screenshot = "screenshot" // of a slot's phone
	Reboot     = "reboot"     // of a slot's phone; it is over when the phone can be used again

	PowerOn       = "power_on"       // of a slot's port, or with {"hub": true} of its whole hub, as the next two
	PowerOff      = "power_off"      // until it is switched on again
	PowerCycle    = "power_cycle"    // off and on
	Quarantine    = "quarantine"     // of a slot's phone; args {"seconds": 600-604800, "reason": text}
	QuarantineEnd = "quarantine_end" // takes it back into service
	Maintenance   = "maintenance"    // of a slot, or the rack: hands are inside; args {"off": true} end it
	SlotRetry     = "slot_retry"     // recovery begins anew on a slot
	Sign          = "sign"           // a phone's screen, of a slot or the first that is free, shows the address of the rack's page; args {"seconds": 1-600}
	SignEnd       = "sign_end"       // of a slot, or all: it goes back to its home screen
)

// order is what is known of a command by its name.
type order struct {
	slot       bool // it needs a slot
	idempotent bool
	args       func(raw json.RawMessage) error
}

var orders = map[string]order{
	Ping:       {idempotent: true, args: noArgs},
	Identify:   {idempotent: true, args: identifyArgs},
	Screenshot: {slot: true, idempotent: true, args: noArgs},
	Reboot:     {slot: true, args: noArgs},

	PowerOn:       {slot: true, idempotent: true, args: knownArgs[struct{ Hub bool }]},
	PowerOff:      {slot: true, idempotent: true, args: knownArgs[struct{ Hub bool }]},
	PowerCycle:    {slot: true, args: knownArgs[struct{ Hub bool }]},
	Quarantine:    {slot: true, idempotent: true, args: quarantineArgs},
	QuarantineEnd: {slot: true, idempotent: true, args: noArgs},
	Maintenance:   {idempotent: true, args: knownArgs[struct{ Off bool }]},
	SlotRetry:     {slot: true, idempotent: true, args: noArgs},
	Sign:          {idempotent: true, args: identifyArgs},
	SignEnd:       {idempotent: true, args: noArgs},
}

const (
	shortestQuarantine = 600 // seconds
	longestQuarantine  = 7 * 24 * 3600
	maxReason          = 200 // bytes
)

func quarantineArgs(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	args := struct {
		Seconds *int
		Reason  string
	}{}
	if err := readKnown(raw, &args); err != nil {
		return err
	}
	switch {
	case args.Seconds != nil && (*args.Seconds < shortestQuarantine || *args.Seconds > longestQuarantine):
		return fmt.Errorf("seconds is %d where %d to %d are allowed", *args.Seconds, shortestQuarantine, longestQuarantine)
	case len(args.Reason) > maxReason:
		return fmt.Errorf("reason is longer than %d bytes", maxReason)
	}
	return nil
}

// knownArgs takes an object that has the fields of A and nothing else: what nobody reads would go to the rack all the same.
func knownArgs[A any](raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var args A
	return readKnown(raw, &args)
}

func readKnown(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil || decoder.More() {
		return errors.New("it has arguments that are not known, or of another kind")
	}
	return nil
}

// Orders names the commands of this version.
func Orders() []string {
	names := make([]string, 0, len(orders))
	for n := range orders {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func noArgs(raw json.RawMessage) error {
	var none map[string]any
	if len(raw) > 0 && (wire.Unmarshal(raw, &none) != nil || len(none) > 0) {
		return errors.New("it takes no arguments")
	}
	return nil
}

func identifyArgs(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	args := struct {
		Seconds *int `json:"seconds"`
	}{}
	var all map[string]json.RawMessage
	err := errors.Join(wire.Unmarshal(raw, &args), wire.Unmarshal(raw, &all))
	if delete(all, "seconds"); err != nil || len(all) > 0 {
		// What nobody reads would go to the rack all the same, and a command that fits into no frame holds up all that come after it.
		return errors.New("it takes the number of seconds alone")
	}
	if args.Seconds != nil && (*args.Seconds < 1 || *args.Seconds > 600) {
		return fmt.Errorf("seconds is %d where 1 to 600 are allowed", *args.Seconds)
	}
	return nil
}

func (n NewCommand) check() (order, error) {
	o, ok := orders[n.Name]
	switch {
	case !ok:
		return o, bad("the command %.40q is not one of %s", n.Name, strings.Join(Orders(), ", "))
	case !wire.ValidID(n.Rack):
		return o, bad("%.80q is no rack id", n.Rack)
	case o.slot && n.Slot < 1:
		return o, bad("the command %s needs a slot", n.Name)
	case n.Expires < 0:
		return o, bad("expires is milliseconds since the epoch")
	case n.Slot < 0 || n.Slot > maxSlots:
		return o, bad("slot %d is not 1 to %d", n.Slot, maxSlots)
	}
	if err := o.args(n.Args); err != nil {
		return o, bad("the command %s was not understood: %v", n.Name, err)
	}
	return o, nil
}

// NewCommand is an order as an operator gives it.
type NewCommand struct {
	Rack    string          `json:"rack"`
	Slot    int             `json:"slot,omitempty"` // 0: the rack itself
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
	Expires int64           `json:"expires,omitempty"` // milliseconds since the epoch; 0: in seven days, which is also the most
}

// Send stores a command under the rack's next number, and pushes it if the rack is there.
func (f *Fleet) Send(ctx context.Context, op Operator, n NewCommand) (Command, error) {
	o, err := n.check()
	if err != nil {
		return Command{}, err
	}
	c, err := f.store.QueueCommand(ctx, op.Scope(), store.NewCommand{
		Host: n.Rack, Slot: n.Slot, Name: n.Name, Args: n.Args, Expires: fromMS(n.Expires), Idempotent: o.idempotent,
	})
	if err != nil {
		return Command{}, Named(err, "rack", n.Rack)
	}
	to := enroll.Caller{Tenant: op.Tenant, Rack: n.Rack}
	if f.push != nil && f.online(ctx, to) {
		f.pushCommands(ctx, to)
	}
	return viewCommand(c), nil
}

// pushCommands pushes what a rack has not taken yet, from the oldest on, because order holds.
func (f *Fleet) pushCommands(ctx context.Context, to enroll.Caller) {
	all, err := f.store.PendingCommands(context.WithoutCancel(ctx), to.Scope(), to.Rack, 0)
	if err != nil {
		f.log.Warn("commands were not pushed", "rack", to.Rack, "error", err)
		return
	}
	for _, c := range all {
		if c.State == store.CommandQueued {
			f.tell(ctx, to, wire.TypeExecute, wireCommand(c))
		}
	}
}

// remind pushes again what a rack was sent and did not take, if there is anything.
func (f *Fleet) remind(ctx context.Context, c enroll.Caller) {
	if f.push == nil {
		return
	}
	open, _, err := f.store.Commands(ctx, c.Scope(), store.CommandFilter{Host: c.Rack, States: []wire.CommandState{store.CommandQueued}}, store.Page{Limit: 1})
	if err == nil && len(open) > 0 {
		f.pushCommands(ctx, c)
	}
}

// Pending gives a rack its open commands above a number, in order.
func (f *Fleet) Pending(ctx context.Context, c enroll.Caller, b wire.Pending) (wire.Commands, error) {
	if b.After > 1<<62 {
		return wire.Commands{}, bad("after is out of range")
	}
	all, err := f.store.PendingCommands(ctx, c.Scope(), c.Rack, int64(b.After))
	if err != nil {
		return wire.Commands{}, ofRack(err, "", 0)
	}
	out := wire.Commands{Commands: []wire.Command{}}
	size := 0
	for _, cmd := range all {
		size += len(cmd.Args) + 512
		if size > wire.MaxJSON/2 && len(out.Commands) > 0 { // the rest comes with the next question
			out.More = true
			break
		}
		out.Commands = append(out.Commands, wireCommand(cmd))
	}
	out.More = out.More || len(all) >= 100
	return out, nil
}

// CommandStatus notes what a rack says of a command. picture is the attachment of a screenshot; it stays in memory.
func (f *Fleet) CommandStatus(ctx context.Context, c enroll.Caller, b wire.CommandStatus, picture []byte) (wire.Ack, error) {
	if b.Progress < 0 || b.Progress > 100 || b.Version < 1 {
		return wire.Ack{}, bad("progress is 0 to 100, and versions count from 1")
	}
	detail, err := stored(statusBody{b.Detail, b.Error})
	if err != nil {
		return wire.Ack{}, bad("the status cannot be stored")
	}
	progress, err := json.Marshal(b.Progress)
	if err != nil {
		return wire.Ack{}, Refusal(err)
	}
	if len(picture) > 0 { // before the state, so that whoever sees the state finds the picture
		cmd, err := f.store.Command(ctx, c.Scope(), b.CommandID)
		if err == nil && cmd.Host == c.Rack && cmd.Name == Screenshot && !cmd.State.Over() {
			f.pictures.put(c.Tenant, b.CommandID, picture)
		}
	}
	applied, err := f.store.SetCommandStatus(ctx, c.Scope(), store.CommandStatus{
		Host: c.Rack, ID: b.CommandID, Version: int64(b.Version), State: b.Status, Progress: progress, Detail: detail,
	})
	if err != nil {
		return wire.Ack{}, Named(err, "command", b.CommandID)
	}
	return wire.Ack{Ignored: !applied}, nil
}

// statusBody is what the store keeps of a status.
type statusBody struct {
	Detail json.RawMessage `json:"detail,omitempty"`
	Error  *wire.Refusal   `json:"error,omitempty"`
}

// Command gives a command as it stands.
func (f *Fleet) Command(ctx context.Context, op Operator, id string) (Command, error) {
	c, err := f.store.Command(ctx, op.Scope(), id)
	return viewCommand(c), Named(err, "command", id)
}

// Commands lists commands, newest first; of all racks if rack is empty.
func (f *Fleet) Commands(ctx context.Context, op Operator, rack string, p store.Page) ([]Command, string, error) {
	all, next, err := f.store.Commands(ctx, op.Scope(), store.CommandFilter{Host: rack}, p)
	return views(all, viewCommand), next, Refusal(err)
}

// Picture gives the picture of a screenshot command of this tenant, if this process has it still.
func (f *Fleet) Picture(ctx context.Context, op Operator, id string) ([]byte, error) {
	if _, err := f.Command(ctx, op, id); err != nil {
		return nil, err
	}
	if b, ok := f.pictures.get(op.Tenant, id); ok {
		return b, nil
	}
	return nil, wire.Refuse(wire.PictureGone, map[string]any{"command": id})
}

func wireCommand(c store.Command) wire.Command {
	return wire.Command{
		CommandID: c.ID, Seq: uint64(c.Seq), Name: c.Name, Target: wire.CommandTarget{Slot: c.Slot}, Args: c.Args,
		Expires: toMS(c.Expires), Idempotent: c.Idempotent,
	}
}
