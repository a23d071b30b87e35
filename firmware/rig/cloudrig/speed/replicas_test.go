package speed

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/bus/bustest"
	"phonerack/cloud/store/pgtest"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/sync/wire"
)

var plotFile = flag.String("plot", "", "file for the plot of BenchmarkReplicas, SVG")

// tick is the unit of the kernel's processor times (USER_HZ).
const tick = time.Second / 100

// BenchmarkReplicas is what replicas bring and cost: one to three rackclouds on one PostgreSQL, which syncs each commit,
// and one mosquitto, 16 racks that ask as fast as they are answered. cpu_ms is the processor time of all
// rackclouds for a decision; broker, database, provider and racks are not in it, and share the machine.
func BenchmarkReplicas(b *testing.B) {
	f := newFleet(b)
	var points []point
	for n := 1; n <= 3; n++ {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p := f.measure(b, n)
				points = append(points, p)
				b.ReportMetric(p.perSecond, "decisions/s")
				b.ReportMetric(ms(p.p50), "p50_ms")
				b.ReportMetric(ms(p.cpu), "cpu_ms/decision")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	if *plotFile != "" && len(points) == 3 {
		if err := os.WriteFile(*plotFile, plot(points), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// point is what was measured with so many replicas.
type point struct {
	replicas  int
	perSecond float64       // decisions
	p50       time.Duration // of a decision, while all racks ask
	cpu       time.Duration // of a decision
}

// replicated is a database, a broker and racks that outlive the rackclouds.
type replicated struct {
	dsn     string
	first   string // folder of the rackcloud that has enrolled the racks: its keys are everybody's
	bundles []wire.Bundle
	broker  *bustest.Broker
	secret  string // file with the cloud's password at the broker
}

func newFleet(b *testing.B) *replicated {
	b.Helper()
	f := &replicated{dsn: pgtest.StartDurable(b).Database(b), first: b.TempDir()}
	c := startCloud(b, f.first, "--dsn", f.dsn)
	c.decideBy(b)
	f.bundles = c.enrol(b, fleet)
	c.Kill()
	passwords := map[string]string{}
	for _, bundle := range f.bundles {
		passwords[bundle.Rack] = bundle.BrokerPassword
	}
	f.broker = bustest.MosquittoOf(b, passwords)
	f.secret = filepath.Join(b.TempDir(), "password")
	if err := os.WriteFile(f.secret, []byte(f.broker.Replica.Password+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	return f
}

// start starts a replica and waits until it can serve.
func (f *replicated) start(b *testing.B) *cloud {
	b.Helper()
	dir := b.TempDir()
	if err := sitetest.ShareKeys(filepath.Join(f.first, "state"), filepath.Join(dir, "state")); err != nil {
		b.Fatal(err)
	}
	c := startCloud(b, dir, "--dsn", f.dsn, "--broker", "shared", "--mqtt-url", f.broker.Replica.MQTT[0], "--broker-user", "cloud",
		"--broker-password-file", f.secret, "--broker-address", f.broker.URLs[0])
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		resp, err := c.client.Get("http://" + c.Admin() + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return c
			}
		}
		if time.Now().After(end) {
			b.Fatalf("the replica is not ready: %v\n%s", err, c.Log())
		}
	}
}

// measure runs n replicas under load.
func (f *replicated) measure(b *testing.B, n int) point {
	b.Helper()
	var clouds []*cloud
	for range n {
		clouds = append(clouds, f.start(b))
	}
	defer func() {
		for _, c := range clouds {
			c.Kill()
		}
	}()
	s := &site{cloud: clouds[0], slot: n}
	for _, bundle := range f.bundles {
		r, err := connect(bundle, f.broker.URLs[0])
		if err == nil {
			err = r.hello()
		}
		if err != nil {
			b.Fatal(err)
		}
		defer r.leave()
		s.racks = append(s.racks, r)
	}
	s.lease(b)
	for _, r := range s.racks { // each replica reads keys and sessions once
		for range n {
			decideOnce(b, r)
		}
	}
	var mu sync.Mutex // guards each
	var each []time.Duration
	var took, busy time.Duration
	for range turns {
		frames := make([][][]byte, len(s.racks))
		for i, r := range s.racks {
			frames[i] = requests(b, r.plan, volley)
		}
		used := processor(b, clouds...)
		began := time.Now()
		err := atOnce(func(i, j int) error {
			began := time.Now()
			_, err := s.racks[i].decide(frames[i][j])
			mu.Lock()
			defer mu.Unlock()
			each = append(each, time.Since(began))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
		busy += processor(b, clouds...) - used
	}
	return point{n, float64(len(each)) / took.Seconds(), quantile(each, .5), busy / time.Duration(len(each))}
}

// processor is the processor time that the processes have used.
func processor(b *testing.B, clouds ...*cloud) (sum time.Duration) {
	b.Helper()
	for _, c := range clouds {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.PID()))
		if err != nil {
			b.Fatal(err)
		}
		// Fields 14 and 15, counted from the one after the name, which may hold anything (proc_pid_stat(5)).
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
