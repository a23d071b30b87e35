package firmware_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/health"
	"phonerack/sync/wire"
)

// ends waits until the rack has ended for a factory reset, and carries it out with a cut of the power before each of its steps.
func (b *bench) ends(file string) {
	b.t.Helper()
	b.cancel = nil
	select {
	case err := <-b.ended:
		if !errors.Is(err, firmware.ErrFactoryReset) {
			b.t.Fatalf("the rack ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		b.t.Fatal("the rack does not end")
	}
	cut := errors.New("the power is cut")
	for at := range 20 {
		n := 0
		did, err := firmware.FinishResetCut(b.config, file, slog.New(slog.DiscardHandler), func(string) error {
			if n++; n == at+1 {
				return cut
			}
			return nil
		})
		switch {
		case err == nil && did:
			return
		case !errors.Is(err, cut):
			b.t.Fatalf("cut at step %d: %v %v", at, did, err)
		}
	}
	b.t.Fatal("the reset does not end")
}

// TestAFactoryResetSwitchesNoPowerAndKeepsTheKey: what has gathered is gone, phones let the rack in as before, and a slot that a
// person has switched off stays dark.
func TestAFactoryResetSwitchesNoPowerAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	var again firmware.Options
	b, ports := newPorts(t, nil, func(o *firmware.Options) { again = *o })
	b.health(1, health.Well)
	b.health(2, health.Well)
	if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: slotArgs(1)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Call(t.Context(), "quarantine", action.QuarantineArgs{SlotArgs: slotArgs(2), Seconds: 3600}, nil); err != nil {
		t.Fatal(err)
	}
	state := b.config.Rack.State
	key, err := os.ReadFile(filepath.Join(state, "adbkey"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Call(t.Context(), "factory_reset", action.FactoryResetArgs{}, nil); !wire.Is(err, wire.BadRequest) {
		t.Errorf("without a yes: %v", err)
	}
	if err := b.Call(t.Context(), "factory_reset", action.FactoryResetArgs{Yes: true}, nil); err != nil {
		t.Fatal(err)
	}
	b.ends(filepath.Join(filepath.Dir(state), "rackd.toml"))
	if after, err := os.ReadFile(filepath.Join(state, "adbkey")); err != nil || !bytes.Equal(after, key) {
		t.Errorf("the ADB key has changed: %v", err)
	}
	again.Dialer.(*cable).phones["1-1.1"] = nil // it has no power
	b.run(again)
	ports[2].plug()
	b.health(2, health.Well)
	if s := b.health(1, health.Maintenance); s.Left != "power" || s.Power == nil || s.Power.On {
		t.Errorf("the slot that was dark: %+v", s)
	}
	if got := ports[1].switched() + " " + ports[2].switched(); got != "false " {
		t.Errorf("power was switched %s", got)
	}
}

// TestTasksOfARackThatIsResetAreLostAndTheCloudHearsOfIt: then the identity is gone, and the rack works on its own.
func TestTasksOfARackThatIsResetAreLostAndTheCloudHearsOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	c.On(wire.TypePlanRequest, nil)
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "look around"}, 1, 2*time.Minute)
	b.start()
	await[wire.PlanRequest](t, c, wire.TypePlanRequest, 0)
	if err := firmware.PressFactoryReset(b.rack); err != nil {
		t.Fatal(err)
	}
	pressed := time.Now()
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	if took := time.Since(pressed); took > 8*time.Second {
		t.Errorf("the task was ended after %s: the rack waited for it", took)
	}
	if result.TaskID != "t1" || result.Outcome != wire.Lost {
		t.Errorf("the cloud has heard %+v", result)
	}
	file := filepath.Join(filepath.Dir(b.config.Rack.State), "rackd.toml")
	b.ends(file)
	if _, err := os.Stat(b.config.Cloud.Identity); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the identity is there: %v", err)
	}
	conf, err := config.Load(file)
	if err != nil || !conf.Unenrolled {
		t.Fatalf("the configuration: %v", err)
	}
	b.config = conf
	b.start()
	b.await(1, action.Ready)
	var link action.LinkStatus
	if err := b.Call(t.Context(), "link_status", nil, &link); err != nil || link.Joined {
		t.Errorf("the link: %+v, %v", link, err)
	}
	var tasks action.TaskList
	if err := b.Call(t.Context(), "task_list", nil, &tasks); err != nil || len(tasks.Tasks) != 0 {
		t.Errorf("tasks: %+v, %v", tasks, err)
	}
}
