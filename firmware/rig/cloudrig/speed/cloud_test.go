package speed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/firmware/rig/cloudrig"
	"phonerack/sync/wire"
)

const (
	startTime = 3 * time.Minute  // of a rackcloud, its building included
	patience  = 20 * time.Second // with anything that should take milliseconds
)

// cloud is a rackcloud and what operators do with it.
type cloud struct {
	*cloudrig.Cloud
	client http.Client
}

// built is the folder of the program; TestMain removes it.
var built string

var program = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "speed"); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return cloudrig.Build(ctx, built)
})

// startCloud runs a rackcloud that ends with the benchmark.
func startCloud(b *testing.B, dir string, flags ...string) *cloud {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), startTime)
	defer cancel()
	path, err := program()
	if err != nil {
		b.Fatal(err)
	}
	c, err := cloudrig.Start(ctx, cloudrig.Options{Dir: dir, Program: path, Flags: append([]string{"--log-level", "warn"}, flags...)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Kill) // how it stops is not measured
	return &cloud{Cloud: c, client: http.Client{Timeout: patience}}
}

// order gives an order to the admin API and reads its answer into out.
func (c *cloud) order(path string, body, out any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := c.client.Post("http://"+c.Admin()+"/v1/admin/"+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, raw)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// enrol enrols n racks, eight at a time.
func (c *cloud) enrol(b *testing.B, n int) []wire.Bundle {
	b.Helper()
	bundles := make([]wire.Bundle, n)
	var g errgroup.Group
	g.SetLimit(8)
	for i := range bundles {
		g.Go(func() error { return c.order("hosts", map[string]any{"name": fmt.Sprintf("rack %d", i)}, &bundles[i]) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return bundles
}

// provider is one for all benchmarks, which answers at once.
var provider = sync.OnceValues(func() (*pt.Server, error) {
	return pt.Start(pt.Config{Keep: -1, Unchecked: true, Default: func(*pt.Seen) pt.Reply {
		return pt.Call("tool_3", `{"element":17,"text":"a kettle","reason":"The field of the search is empty and has the focus, so the words go there."}`)
	}})
})

// decideBy makes the provider the one that decides.
func (c *cloud) decideBy(b *testing.B) {
	b.Helper()
	fake, err := provider()
	if err == nil {
		err = c.order("providers", map[string]any{
			"name": "fake", "provider": "anthropic", "model": "model-a", "base_url": fake.URL, "key": pt.Key, "price_in": 3_000_000, "price_out": 15_000_000,
		}, nil)
	}
	if err == nil {
		err = c.order("providers/fake/activate", nil, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
}
