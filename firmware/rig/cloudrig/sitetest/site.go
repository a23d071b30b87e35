// Package sitetest is for tests of whole programs: a [Site] is a cloud and a rack of simulated phones on this machine,
// each a process that can be killed, and [Orders] are tasks with the judges of what became of them.
//
// The programs are built once for the tests of a package, whose TestMain is [Main].
package sitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/link"
)

// ByCloud makes the cloud decide; it has a place for the path of the identity.
const ByCloud = "[planner]\ntransport = \"cloud\"\n[cloud]\nidentity = %q\n"

// startLimit bounds the start of a site; most of it is the building of the programs where nothing is built yet.
const startLimit = 10 * time.Minute

// Programs are the paths of built programs.
type Programs struct {
	rackrig.Programs
	Rackcloud string
}

var built struct {
	sync.Mutex // guards what follows
	dir        string
	programs   Programs
}

// Build gives the programs, built at the first call. They are there until [Main] is over.
func Build(ctx context.Context) (Programs, error) {
	built.Lock()
	defer built.Unlock()
	if built.programs.Rackcloud != "" {
		return built.programs, nil
	}
	var err error
	if built.dir == "" {
		if built.dir, err = os.MkdirTemp("", "programs"); err != nil {
			return Programs{}, err
		}
	}
	native, err := rackrig.BuildNative(ctx, built.dir)
	if err != nil {
		return Programs{}, err
	}
	rackcloud, err := cloudrig.Build(ctx, built.dir)
	if err != nil {
		return Programs{}, err
	}
	built.programs = Programs{native, rackcloud}
	return built.programs, nil
}

// Main is a package's TestMain: it runs the tests, wants no goroutine to be left, and removes the programs.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(exit int) {
		if built.dir != "" {
			if err := os.RemoveAll(built.dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				exit = max(exit, 1)
			}
		}
		os.Exit(exit)
	}))
}

// Site is a cloud and a rack of simulated phones. It ends with the test.
type Site struct {
	Cloud  *cloudrig.Cloud   // the first of Clouds
	Clouds []*cloudrig.Cloud // replicas that share a database and a broker
	Broker *Broker           // nil for the embedded one
	Rack   *rackrig.Native
	Bundle string // path of the rack's identity
	Phones []*rackrig.Phone

	t testing.TB
}

// Options of a site.
type Options struct {
	Phones int
	Phone  func(*rackrig.PhoneSpec) // changes what a phone is; may be nil
	Config string                   // added to rackd's, with a place for the path of the identity; ByCloud without any
	Flags  []string                 // further ones of rackcloud serve
	// Broker is StartMosquitto or StartNATS; nil leaves broker and database inside one rackcloud.
	Broker   func(ctx context.Context, p Programs, dir, files string) (*Broker, error)
	DSN      string // beside a broker: the database of the replicas
	Replicas int    // beside a broker: how many
}

// New starts a site with the shipped rules as its planner, and waits until all phones are ready.
func New(t testing.TB, ctx context.Context, o Options) *Site {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	programs, err := Build(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "site") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.MkdirTemp("", "broker") // beside it: a broker is another user and has to get there
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{t: t}
	t.Cleanup(func() {
		s.close()
		os.RemoveAll(files)
		os.RemoveAll(dir)
	})
	if err := s.start(ctx, o, programs, dir, files); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Site) start(ctx context.Context, o Options, programs Programs, dir, files string) (err error) {
	if o.Config == "" {
		o.Config = ByCloud
	}
	if err := s.startClouds(ctx, o, programs, filepath.Join(dir, "cloud"), files); err != nil {
		return err
	}
	s.Cloud = s.Clouds[0]
	if err = s.Cloud.Script(ctx); err != nil {
		return err
	}
	if s.Bundle, err = s.Cloud.AddRack(ctx, "site"); err != nil {
		return err
	}
	if s.Broker != nil && s.Broker.admit != nil {
		if err = s.Broker.admit(ctx, s.Bundle); err != nil {
			return err
		}
	}
	slots := make([]int, o.Phones)
	for i := range o.Phones {
		spec := rackrig.PhoneSpec{Slot: i + 1, Serial: fmt.Sprintf("SIM%04d", i+1), Android: 14, Language: "en", Seed: int64(i + 1)}
		if o.Phone != nil {
			o.Phone(&spec)
		}
		p, err := rackrig.Simulate(spec)
		if err != nil {
			return err
		}
		s.Phones, slots[i] = append(s.Phones, p), i+1
	}
	if s.Rack, err = rackrig.StartNative(ctx, programs.Programs, dir, s.Phones, fmt.Sprintf(o.Config, s.Bundle)); err != nil {
		return err
	}
	_, err = rackrig.WaitState(ctx, s.Rack, action.Ready, slots...)
	return err
}

// startClouds starts broker and replicas, or one rackcloud with all inside.
func (s *Site) startClouds(ctx context.Context, o Options, p Programs, dir, files string) (err error) {
	if o.Broker == nil {
		c, err := cloudrig.Start(ctx, cloudrig.Options{Program: p.Rackcloud, Dir: dir, Flags: o.Flags})
		if c != nil {
			s.Clouds = append(s.Clouds, c)
		}
		return err
	}
	if s.Broker, err = o.Broker(ctx, p, dir, files); err != nil {
		return err
	}
	s.Clouds, err = s.Broker.Replicas(ctx, p, dir, o.Replicas, append([]string{"--dsn", o.DSN}, o.Flags...))
	return err
}

// close stops the programs, and shows the ends of their logs if the test has failed.
func (s *Site) close() {
	var errs []error
	if s.Rack != nil {
		errs = append(errs, s.Rack.Close())
	}
	for _, c := range s.Clouds {
		errs = append(errs, c.Close())
	}
	if s.Broker != nil {
		errs = append(errs, s.Broker.Close())
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Error(err)
	}
	if !s.t.Failed() {
		return
	}
	for _, c := range s.Clouds {
		s.t.Logf("rackcloud:\n%s", Tail(c.Log()))
	}
	if s.Broker != nil {
		for _, n := range s.Broker.Nodes {
			s.t.Logf("%s:\n%s", n.program, Tail(n.Log()))
		}
	}
	if s.Rack != nil {
		s.t.Logf("rackd:\n%s", Tail(s.Rack.Log()))
	}
}

// Tail is the last 60 lines of a log.
func Tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// Reach lets the rack try at once until its cloud has welcomed it: without that it would be away for minutes after some
// broken sessions, and what is killed next would hit nothing.
func (s *Site) Reach(ctx context.Context) {
	s.t.Helper()
	for {
		var out bytes.Buffer
		var status action.LinkStatus
		exit, err := s.Rack.Ctl(ctx, &out, "link", "retry", "--json")
		if err == nil && exit == 0 && json.Unmarshal(out.Bytes(), &status) == nil && status.Link != nil && status.Link.State == link.Online {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("the rack does not reach its cloud: %s: %v", strings.TrimSpace(out.String()), ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Sent counts how often a message was really sent, on whichever phone.
func (s *Site) Sent(text string) int { return rackrig.Sent(s.Phones, text) }
