package action_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// resettable is a rack that counts its factory resets.
type resettable struct {
	*actiontest.Rack
	resets, keys int
}

func (r *resettable) FactoryReset(_ string, keys bool) error {
	r.resets++
	if keys {
		r.keys++
	}
	return nil
}

// TestAFactoryResetIsForWhoIsOnTheBoard: neither the page nor the cloud nor a program comes to it, and nobody by mistake.
func TestAFactoryResetIsForWhoIsOnTheBoard(t *testing.T) {
	for _, test := range []struct {
		name   string
		actor  action.Actor
		args   string
		want   wire.Code
		resets int
		keys   int
	}{
		{"rackctl", action.Actor{Name: "root", Role: action.Operator, Via: "socket"}, `{"yes":true}`, "", 1, 0},
		{"with the key", action.Actor{Name: "root", Role: action.Operator, Via: "socket"}, `{"yes":true,"adb_key":true}`, "", 1, 1},
		{"the button", action.Button, `{"yes":true}`, "", 1, 0},
		{"who is only called so", action.Actor{Name: "button", Role: action.Operator, Via: "cloud"}, `{"yes":true}`, wire.Unsupported, 0, 0},
		{"without a yes", action.Actor{Name: "root", Role: action.Operator, Via: "socket"}, `{}`, wire.BadRequest, 0, 0},
		{"the page", action.Actor{Name: "kim", Role: action.Operator, Via: "page"}, `{"yes":true}`, wire.Unsupported, 0, 0},
		{"the cloud", action.Actor{Name: "cloud", Role: action.Operator, Via: "cloud"}, `{"yes":true}`, wire.Unsupported, 0, 0},
		{"an MCP client", action.Actor{Name: "root", Role: action.Operator, Via: "mcp"}, `{"yes":true}`, wire.Unsupported, 0, 0},
		{"a viewer", action.Actor{Name: "ida", Role: action.Viewer, Via: "socket"}, `{"yes":true}`, wire.Forbidden, 0, 0},
	} {
		rack := &resettable{Rack: actiontest.New()}
		r := action.New(rack, lease.NewTable(lease.Options{Now: func() time.Duration { return 0 }}), slog.New(slog.DiscardHandler))
		_, err := r.Call(t.Context(), test.actor, "factory_reset", json.RawMessage(test.args), action.Pipes{})
		if test.want == "" && err != nil || test.want != "" && !wire.Is(err, test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if rack.resets != test.resets || rack.keys != test.keys {
			t.Errorf("%s: %d resets, %d with the key", test.name, rack.resets, rack.keys)
		}
	}
}

// defective is a rack whose resets panic.
type defective struct{ *actiontest.Rack }

func (defective) FactoryReset(string, bool) error { panic("a defect") }

// TestAnActionThatPanicsIsRefused: the page runs actions beside the goroutine of their request, where a panic would end rackd.
func TestAnActionThatPanicsIsRefused(t *testing.T) {
	table := lease.NewTable(lease.Options{Now: lease.BootTime})
	actions := action.New(defective{actiontest.New()}, table, slog.New(slog.DiscardHandler))
	_, err := actions.Call(t.Context(), action.Actor{Name: "root", Role: action.Operator, Via: "socket"}, "factory_reset", json.RawMessage(`{"yes":true}`), action.Pipes{})
	if !wire.Is(err, wire.Internal) {
		t.Errorf("it ended with %v", err)
	}
}
