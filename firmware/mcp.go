package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"phonerack/agent/mcp"
	"phonerack/agent/planner"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// maxTalks bounds the MCP clients over byte streams at once. Each takes one of the control socket's calls.
const maxTalks = 16

// openMCP makes the MCP server, unless it is switched off.
func (r *Rack) openMCP() {
	if !r.config.MCP.Enabled {
		return
	}
	r.talks = make(chan struct{}, maxTalks)
	r.mcp = mcp.New(mcp.Options{Version: versions()["rackd"], Devices: mcpDevices{r}, Logger: r.logOf(mcpPart)})
	if r.skills != nil {
		r.mcp.SetSkills(r.skills.ForMCP())
	}
}

// serveMCP serves programs of this machine until ctx ends. An address that is taken is tried again by the supervisor.
func (r *Rack) serveMCP(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", r.config.MCP.Listen)
	if err != nil {
		return fmt.Errorf("listen for MCP clients: %w", err)
	}
	r.log.Info("MCP over HTTP", "address", "http://"+l.Addr().String()+mcp.Path)
	return r.mcp.Serve(ctx, l, r.config.MCPTokens)
}

// SpeakMCP implements action.Rack.
func (r *Rack) SpeakMCP(ctx context.Context, actor action.Actor, in io.Reader, out io.Writer) error {
	if r.mcp == nil {
		return wire.Refuse(wire.NotConfigured, map[string]any{"what": "door for MCP clients", "key": "mcp.enabled = true"})
	}
	select {
	case r.talks <- struct{}{}:
		defer func() { <-r.talks }()
	default:
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": "MCP clients at once", "limit": maxTalks})
	}
	return r.mcp.Converse(ctx, mcp.Caller{Name: actor.Name, Via: mcp.ViaStream}, in, out)
}

// mcpDevices is the rack as MCP clients have it: each call is an action, with its role, its lease and its line in the
// audit log. It implements mcp.Devices.
type mcpDevices struct{ rack *Rack }

// actorOf is a caller as leases and the log name it. The owner of a token is no person of this machine: no login has a
// blank in its name.
func actorOf(c mcp.Caller) action.Actor {
	name := c.Name
	if c.Via == mcp.ViaHTTP {
		name = "mcp " + name
	}
	return action.Actor{Name: name, Role: action.Operator, Via: c.Via}
}

// ask calls an action; its result is of the type R.
func ask[R any](ctx context.Context, d mcpDevices, c mcp.Caller, name string, args any) (R, error) {
	var none R
	raw, err := json.Marshal(args)
	if err != nil {
		return none, err
	}
	result, err := d.rack.actions.Call(ctx, actorOf(c), name, raw, action.Pipes{})
	if err != nil {
		return none, err
	}
	typed, ok := result.(R)
	if !ok {
		return none, fmt.Errorf("the action %s answered with a %T", name, result)
	}
	return typed, nil
}

func (d mcpDevices) Permissions() []string { return d.rack.config.MCP.Permissions }

func (d mcpDevices) Phones(ctx context.Context, c mcp.Caller) ([]mcp.Phone, error) {
	all, err := ask[action.Phones](ctx, d, c, "phones", struct{}{})
	if err != nil {
		return nil, err
	}
	var phones []mcp.Phone
	for _, p := range all.Phones {
		if p.Slot == 0 {
			continue // at a port that is no slot: nothing can name it
		}
		phone := mcp.Phone{Slot: p.Slot, Label: p.Label, State: string(p.State), Reason: p.Reason, Serial: p.Serial, Model: p.Model, Android: p.Android}
		if p.Lease != nil {
			phone.HeldBy = p.Lease.Holder.String()
		}
		phones = append(phones, phone)
	}
	return phones, nil
}

func (d mcpDevices) Act(ctx context.Context, c mcp.Caller, slot int, decision planner.Decision) (mcp.Act, error) {
	args := action.ToolArgs{SlotArgs: action.SlotArgs{Slot: slot}, Arguments: decision.Arguments}
	out, err := ask[action.ToolOutcome](ctx, d, c, action.ToolAction(decision.Tool), args)
	if err != nil {
		return mcp.Act{}, err
	}
	act := mcp.Act{Slot: slot, Wrote: out.Wrote, Text: out.Text, Result: out.Result}
	if o := out.Observation; o != nil {
		act.Image = o.Image
		act.Screen = &mcp.Screen{Generation: o.Generation, Package: o.Package, Activity: o.Activity, Width: o.Width, Height: o.Height, Elements: o.Screen}
	}
	return act, nil
}

func (d mcpDevices) Hold(ctx context.Context, c mcp.Caller, slot int, length time.Duration) (time.Time, error) {
	state, err := ask[lease.State](ctx, d, c, "hold", action.HoldArgs{SlotArgs: action.SlotArgs{Slot: slot}, Seconds: int(length / time.Second)})
	return state.Until, err
}

func (d mcpDevices) Release(ctx context.Context, c mcp.Caller, slot int) error {
	_, err := ask[action.Done](ctx, d, c, "release", action.SlotArgs{Slot: slot})
	return err
}
