package sitetest

import (
	"context"
	"testing"
	"time"
)

// Soon bounds each wait for something that comes at once on an idle machine.
const Soon = 60 * time.Second

// Operator gives orders to a site. What goes wrong ends the test.
type Operator struct {
	*Site
	T   *testing.T // the test or sub-test that runs
	Ctx context.Context
	ID  string // of the rack; see FindRack
}

// Must ends the test with an error.
func (o *Operator) Must(err error) {
	o.T.Helper()
	if err != nil {
		o.T.Fatal(err)
	}
}

// Do gives an order to the cloud and reads its JSON into v, unless v is nil.
func (o *Operator) Do(v any, args ...string) {
	o.T.Helper()
	o.Must(o.Cloud.Ask(o.Ctx, v, args...))
}

// FindRack asks the cloud for the id of its one rack.
func (o *Operator) FindRack() {
	o.T.Helper()
	var hosts []struct {
		Rack string `json:"rack_id"`
	}
	o.Do(&hosts, "host", "list")
	if len(hosts) != 1 || hosts[0].Rack == "" {
		o.T.Fatalf("the cloud knows %+v where one rack is wanted", hosts)
	}
	o.ID = hosts[0].Rack
}

// Await looks again and again until something is so, for a minute at most.
func (o *Operator) Await(what string, look func() (so bool, seen any)) {
	o.T.Helper()
	for end := time.Now().Add(Soon); ; time.Sleep(100 * time.Millisecond) {
		so, seen := look()
		if so {
			return
		}
		if time.Now().After(end) || o.Ctx.Err() != nil {
			o.T.Fatalf("%s is waited for, seen is %+v", what, seen)
		}
	}
}

// In makes the operator report to a sub-test while it runs, and tells whether it passed.
func (o *Operator) In(name string, fn func(t *testing.T)) bool {
	outer := o.T
	return outer.Run(name, func(t *testing.T) {
		o.T = t
		defer func() { o.T = outer }()
		fn(t)
	})
}
