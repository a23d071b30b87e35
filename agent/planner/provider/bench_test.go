package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
)

// usual is a request as racks make them: 20 tools, 10 KB of prompt, a picture.
func usual(picture int) planner.Request {
	req := request()
	req.UserPrompt = strings.Repeat(userPrompt, 70)
	req.Tools = nil
	for i := range 20 {
		t := tools[i%3]
		t.Name = fmt.Sprintf("%s_%d", t.Name, i)
		req.Tools = append(req.Tools, t)
	}
	req.Screen = nil
	if picture > 0 {
		req.Screen = screen(picture)
	}
	return req
}

// BenchmarkCall measures what the adapter adds to a call: a call against a
// provider without latency, less the same bytes posted by net/http alone, in turn,
// over one connection each. bare_us is the second, with the fake provider's own work.
func BenchmarkCall(b *testing.B) {
	for _, kind := range provider.Kinds() {
		for _, picture := range []int{0, 100 << 10} {
			b.Run(fmt.Sprintf("%s/screen=%dKB", kind, picture>>10), func(b *testing.B) {
				r := overTCP(b, kind, pt.Config{Keep: 1, Unchecked: true, Default: func(*pt.Seen) pt.Reply { return pt.Call("observe_1", `{}`) }})
				c, req := r.client(b), usual(picture)
				if _, err := c.Call(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				seen := r.Seen()[0]
				bare := &http.Client{Transport: &http.Transport{}}
				defer bare.CloseIdleConnections()
				var calls, posts []time.Duration
				for b.Loop() {
					start := time.Now()
					if _, err := c.Call(b.Context(), req); err != nil {
						b.Fatal(err)
					}
					calls = append(calls, time.Since(start))
					start = time.Now()
					if err := post(bare, r.URL, seen); err != nil {
						b.Fatal(err)
					}
					posts = append(posts, time.Since(start))
				}
				b.ReportMetric(us(median(calls)), "p50_us")
				b.ReportMetric(us(median(posts)), "bare_us")
				b.ReportMetric(us(median(calls)-median(posts)), "own_us")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// post sends what was seen once more.
func post(client *http.Client, url string, seen pt.Seen) error {
	req, err := http.NewRequest(http.MethodPost, url+string(seen.Protocol), bytes.NewReader(seen.Body))
	if err != nil {
		return err
	}
	req.Header = seen.Header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !json.Valid(body)) {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
