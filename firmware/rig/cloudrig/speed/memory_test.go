package speed

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"phonerack/sync/wire"
)

const (
	crowd  = 1000
	settle = 30 * time.Second // for the memory to stop moving
)

// BenchmarkMemory is what a connected rack costs rackcloud, its embedded broker and TLS included: the growth of the
// process's resident memory from before the first rack to 1,000 that have said hello and sent a heartbeat, a rack's share
// of it. Enrolment is over before. The racks' ends are in this process.
func BenchmarkMemory(b *testing.B) {
	c := startCloud(b, b.TempDir())
	for b.Loop() {
		bundles := c.enrol(b, crowd)
		warm(b, c, bundles[0])
		before := steady(b, c.PID())
		racks := make([]*rack, crowd)
		began := time.Now()
		var g errgroup.Group
		g.SetLimit(16)
		for i := range racks {
			g.Go(func() (err error) {
				if racks[i], err = connect(bundles[i], "ssl://"+c.MQTT()); err == nil {
					err = racks[i].beat()
				}
				return err
			})
		}
		err := g.Wait()
		took := time.Since(began)
		for _, r := range racks {
			if r != nil {
				defer r.leave()
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(steady(b, c.PID())-before)/crowd, "KiB/rack")
		b.ReportMetric(float64(before)/1024, "MiB_before")
		b.ReportMetric(took.Seconds(), "connect_s")
	}
	b.ReportMetric(0, "ns/op")
}

// beat says hello and sends a heartbeat.
func (r *rack) beat() error {
	if err := r.hello(); err != nil {
		return err
	}
	var s wire.Sync
	return r.ask(wire.KindTask, wire.TypeHeartbeat, wire.Heartbeat{
		Slots: []wire.SlotReport{{Slot: 1, State: "ready"}, {Slot: 2, State: "ready"}}, SkillsVersion: "1",
	}, &s)
}

// warm lets rackcloud do once what it does for the first rack.
func warm(b *testing.B, c *cloud, bundle wire.Bundle) {
	b.Helper()
	r, err := connect(bundle, "ssl://"+c.MQTT())
	if err == nil {
		err = r.beat()
		r.leave()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// steady waits until the resident memory of a process, in KiB, has not shrunk for three seconds: the collector gives
// back what it does not need over time.
func steady(b *testing.B, pid int) int64 {
	b.Helper()
	least, since := resident(b, pid), time.Now()
	for end := since.Add(settle); time.Now().Before(end) && time.Since(since) < 3*time.Second; time.Sleep(200 * time.Millisecond) {
		if now := resident(b, pid); now < least-least/100 {
			least, since = now, time.Now()
		}
	}
	return resident(b, pid)
}

// resident reads VmRSS.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib
		}
	}
	b.Fatal("the kernel tells no VmRSS")
	return 0
}
