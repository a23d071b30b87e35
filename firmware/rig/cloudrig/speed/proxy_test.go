package speed

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	pairs  = 200 // of a bare round trip and a decision, one after the other
	fleet  = 16  // racks that ask at once
	volley = 12  // requests of each of them in a window
	turns  = 3   // windows of each kind
)

// asker asks for a decision by one transport.
type asker interface {
	plan() ([]byte, error)
	decide([]byte) ([]byte, error)
}

// site is a cloud, an echo, and racks that are connected to both.
type site struct {
	*cloud
	racks, bare []*rack
	slot        int
}

func newSite(b *testing.B, n int) *site {
	b.Helper()
	s := &site{cloud: startCloud(b, b.TempDir())}
	s.decideBy(b)
	bundles := s.enrol(b, n)
	for _, bundle := range bundles {
		r, err := connect(bundle, "ssl://"+s.MQTT())
		if err == nil {
			err = r.hello()
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(r.leave)
		s.racks = append(s.racks, r)
	}
	s.lease(b)
	answer := decideOnce(b, s.racks[0])
	url := startEcho(b, echo{State: s.State(), Dir: b.TempDir(), Answer: len(answer)})
	for _, bundle := range bundles {
		r, err := connect(bundle, url)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(r.leave)
		s.bare = append(s.bare, r)
	}
	return s
}

// lease gives each rack a fresh task.
func (s *site) lease(b *testing.B) {
	b.Helper()
	s.slot++
	for _, r := range s.racks {
		if err := r.lease(s.cloud, s.slot); err != nil {
			b.Fatal(err)
		}
	}
}

// askers are the racks by a transport.
func (s *site) askers(b *testing.B, transport string) []asker {
	b.Helper()
	s.lease(b)
	list := make([]asker, len(s.racks))
	for i, r := range s.racks {
		list[i] = r
		if transport == "http" {
			h, err := s.host(r)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(h.client.CloseIdleConnections)
			list[i] = h
		}
		decideOnce(b, list[i])
	}
	return list
}

// decideOnce opens the connections that stay.
func decideOnce(b *testing.B, a asker) []byte {
	b.Helper()
	q, err := a.plan()
	if err == nil {
		q, err = a.decide(q)
	}
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// BenchmarkProxy is one rack with a screenshot of 100 KB, 20 tools and 10 KB of prompts: the time from the sending of its
// request to its decision, and that of a bare round trip. Both are told in ms, and the first as a multiple of the second.
// plan.accepted, which the protocol has between request and decision, is in the proxy's time; the bare round trip has no
// such frame.
func BenchmarkProxy(b *testing.B) {
	s := newSite(b, 1)
	for _, transport := range []string{"mqtt", "http"} {
		b.Run(transport, func(b *testing.B) {
			a := s.askers(b, transport)[0]
			bounced, err := s.racks[0].plan()
			if err != nil {
				b.Fatal(err)
			}
			var bare, proxy []time.Duration
			for b.Loop() {
				for range pairs {
					bare = append(bare, took(b, func() error { return s.bare[0].bounce(bounced) }))
					q, err := a.plan()
					if err != nil {
						b.Fatal(err)
					}
					proxy = append(proxy, took(b, func() error { _, err := a.decide(q); return err }))
				}
			}
			for _, p := range []struct {
				name string
				of   float64
			}{{"p50", .5}, {"p99", .99}} {
				own, other := quantile(proxy, p.of), quantile(bare, p.of)
				b.ReportMetric(ms(own), p.name+"_ms")
				b.ReportMetric(ms(other), "bare_"+p.name+"_ms")
				b.ReportMetric(float64(own)/float64(other), p.name+"_of_bare")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkThroughput is 16 racks, each of which asks again as soon as it has its decision: decisions a second, and as a share
// of the bare round trips a second of the same racks. cpu_ms is rackcloud's own processor time, its broker's included.
func BenchmarkThroughput(b *testing.B) {
	s := newSite(b, fleet)
	for _, transport := range []string{"mqtt", "http"} {
		b.Run(transport, func(b *testing.B) {
			all := s.askers(b, transport)
			var bare, proxy, busy time.Duration
			n := 0
			for b.Loop() {
				for range turns {
					frames := requests(b, func() ([]byte, error) { return s.racks[0].plan() }, 1)
					bare += took(b, func() error {
						return atOnce(func(i, _ int) error { return s.bare[i].bounce(frames[0]) })
					})
					bodies := make([][][]byte, len(all))
					for i, a := range all {
						bodies[i] = requests(b, a.plan, volley)
					}
					used := processor(b, s.cloud)
					proxy += took(b, func() error {
						return atOnce(func(i, j int) error { _, err := all[i].decide(bodies[i][j]); return err })
					})
					busy += processor(b, s.cloud) - used
					n += fleet * volley
				}
			}
			b.ReportMetric(float64(n)/proxy.Seconds(), "decisions/s")
			b.ReportMetric(float64(n)/bare.Seconds(), "bare/s")
			b.ReportMetric(bare.Seconds()/proxy.Seconds(), "of_bare")
			b.ReportMetric(ms(busy)/float64(n), "cpu_ms/decision")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// requests makes n requests.
func requests(b *testing.B, plan func() ([]byte, error), n int) [][]byte {
	b.Helper()
	list := make([][]byte, n)
	for i := range list {
		var err error
		if list[i], err = plan(); err != nil {
			b.Fatal(err)
		}
	}
	return list
}

// atOnce runs a volley of each rack, side by side.
func atOnce(one func(rack, n int) error) error {
	var g errgroup.Group
	for i := range fleet {
		g.Go(func() error {
			for j := range volley {
				if err := one(i, j); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func took(b *testing.B, f func() error) time.Duration {
	began := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func quantile(d []time.Duration, of float64) time.Duration {
	slices.Sort(d)
	return d[min(int(float64(len(d))*of), len(d)-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
