package firmware_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	orders "phonerack/cloud/fleet"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// TestEachCommandOfTheCloudIsTheActionOfThatName: what the cloud lets through is what the registry takes, no more, and it stands
// in the audit log as what a person does at another door.
func TestEachCommandOfTheCloudIsTheActionOfThatName(t *testing.T) {
	t.Parallel()
	known := slices.Sorted(slices.Values(firmware.Ordered()))
	if !slices.Equal(known, orders.Orders()) {
		t.Errorf("the rack knows %v, the cloud %v", known, orders.Orders())
	}
	b := newBench(t, 1)
	log := &lockedText{}
	b.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	for name, c := range map[string]struct {
		slot int
		args string
		code wire.Code // that a rack without power and without a page answers; "" if it is done
	}{
		orders.Ping: {0, "", ""}, orders.Identify: {1, `{"seconds":1}`, ""}, orders.Screenshot: {1, "", ""}, orders.Reboot: {0, "", wire.SlotUnknown},
		orders.PowerOn: {1, `{"hub":true}`, wire.PowerFixed}, orders.PowerOff: {1, "", wire.PowerFixed}, orders.PowerCycle: {1, `{"hub":false}`, wire.PowerFixed},
		orders.Quarantine: {1, `{"seconds":600,"reason":"swollen"}`, ""}, orders.QuarantineEnd: {1, "", ""}, orders.Maintenance: {0, `{"off":true}`, ""},
		orders.SlotRetry: {1, "", ""}, orders.Sign: {0, `{"seconds":30}`, wire.PageClosed}, orders.SignEnd: {0, "", ""},
	} {
		log.take()
		report, err := firmware.Order(t.Context(), b.rack, wire.Command{Name: name, Target: wire.CommandTarget{Slot: c.slot}, Args: json.RawMessage(c.args)})
		if c.code == "" && err != nil || c.code != "" && !wire.Is(err, c.code) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
		if said := log.take(); !strings.Contains(said, "action="+name+" actor=cloud via=cloud") {
			t.Errorf("%s is not an action in the log: %s", name, said)
		}
		if name == orders.Screenshot && (len(report.Attachments) != 1 || !bytes.HasPrefix(report.Attachments[0].Data, []byte{0xff, 0xd8}) || strings.Contains(string(report.Detail), "image")) {
			t.Errorf("the picture: %s, %d attachments", report.Detail, len(report.Attachments))
		}
		if _, err := firmware.Order(t.Context(), b.rack, wire.Command{Name: name, Target: wire.CommandTarget{Slot: 1}, Args: json.RawMessage(`{"nobody":1}`)}); !wire.Is(err, wire.BadRequest) {
			t.Errorf("%s with an argument that the action does not take: %v", name, err)
		}
	}
	if _, err := firmware.Order(t.Context(), b.rack, wire.Command{Name: "tap", Target: wire.CommandTarget{Slot: 1}}); !wire.Is(err, wire.UnknownAction) {
		t.Errorf("an action that is no command: %v", err)
	}
}
