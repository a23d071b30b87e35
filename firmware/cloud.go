package firmware

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/planner/provider"
	"phonerack/agent/planner/remote"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/factory"
	"phonerack/firmware/lease"
	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

const (
	linkBucket  = "link"
	fleetBucket = "fleet"

	desiredBucket = "desired"

	cloudFolder = "cloud" // below the runtime folder: the parts of the identity as the link reads them
)

// cloud is the rack's end of what it has with its cloud.
type cloud struct {
	link  *link.Link
	fleet *fleet.Fleet

	noting sync.Mutex // guards origin
	origin *origin
}

// joinCloud makes the link, if the rack has an identity.
func (r *Rack) joinCloud() error {
	c := r.config
	if c.Cloud.Identity == "" {
		if err := r.openEvents(nil); err != nil {
			return err
		}
		return r.openCatalog()
	}
	if err := factory.Enrolled(c.Rack.State); err != nil {
		return fmt.Errorf("note that the rack is enrolled: %w", remedied(err, c.Rack.State))
	}
	keys, err := c.Bundle.Keys()
	if err != nil {
		return err
	}
	origin, err := openOrigin(c.Rack.State, keys.KID, r.store.Recovery())
	if err != nil {
		return fmt.Errorf("count the database's generation: %w", remedied(err, c.Rack.State))
	}
	parts, err := unpack(filepath.Join(c.Rack.Runtime, cloudFolder), c.Bundle)
	if err != nil {
		return fmt.Errorf("unpack the identity: %w", err)
	}
	bucket, err := r.store.Bucket(linkBucket)
	if err != nil {
		return err
	}
	l, err := link.New(link.Options{
		Broker: c.Cloud.Broker, Tenant: c.Bundle.Tenant, Rack: c.Bundle.Rack, Keys: func() []wire.Keys { return []wire.Keys{keys} },
		Generation: origin.generation, Boot: r.store.Boot(), Versions: versions(), Bucket: bucket,
		TLS: parts.tls, PasswordFile: parts.password, Proxy: c.Cloud.Proxy, Logger: r.logOf(linkPart),
		Round: func() {
			stall("link")
			if r.linked != nil {
				r.linked.Progress()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("make the link to the cloud: %w", err)
	}
	r.cloud = &cloud{link: l, origin: origin}
	if err := r.openCatalog(); err != nil {
		return err
	}
	if bucket, err = r.store.Bucket(fleetBucket); err != nil {
		return err
	}
	over, outbox := fleet.Over(l)
	r.cloud.fleet, err = fleet.Open(fleet.Options{
		Link: over, Outbox: outbox, Bucket: bucket, Runner: phones{r}, Generation: origin.generation, Boot: r.clock,
		SkillsVersion: r.skillsVersion, Logger: r.logOf(fleetPart),
	})
	if err != nil {
		return fmt.Errorf("open what the cloud has granted: %w", err)
	}
	if err := r.openEvents(r.cloud.fleet.Event); err != nil {
		return err
	}
	if bucket, err = r.store.Bucket(desiredBucket); err != nil {
		return err
	}
	d := &desired{
		bucket: bucket, generation: origin.generation, fleet: r.cloud.fleet, link: l, levels: r.levels, log: r.log,
	}
	if err := d.takeUp(); err != nil {
		return fmt.Errorf("apply the desired configuration: %w", err)
	}
	l.Handle(wire.TypeDesired, d.take)
	return nil
}

// openEvents makes the teller of events, which puts them into the cloud's outbox; nil without a cloud. Its first word is that
// rackd has started, and why.
func (r *Rack) openEvents(put func(kind string, slot int, phone string, detail any) error) error {
	bucket, err := r.store.Bucket(startsBucket)
	if err != nil {
		return err
	}
	cause, boardRestarted, err := noteStart(bucket)
	if err != nil { // a full database is no reason not to start
		r.log.Warn("the start was not noted", "err", err)
	}
	r.starts = bucket
	r.events = newEvents(put, time.Now, lease.BootTime, r.log)
	found := r.store.Recovery()
	detail := map[string]any{"cause": cause, "database": string(found.Outcome)}
	if boardRestarted {
		detail["board_restarted"] = true
	}
	if found.Reason != "" {
		detail["reason"] = cut(found.Reason, maxEventText)
	}
	r.events.tell(told{kind: startedEvent, detail: detail})
	return nil
}

// Link implements action.Rack.
func (r *Rack) Link() action.LinkStatus {
	if r.cloud == nil {
		return action.LinkStatus{}
	}
	status := r.cloud.link.Status()
	return action.LinkStatus{Joined: true, Link: &status}
}

// RetryLink implements action.Rack.
func (r *Rack) RetryLink() {
	if r.cloud != nil {
		r.cloud.link.Retry()
	}
}

// skillsVersion changes with what this rack can do, which is its program, what its catalog shows, and its own skills and tools: a task that it has
// given back is offered to it again then.
func (r *Rack) skillsVersion() string {
	version := "rackd " + versions()["rackd"]
	if c := r.catalog; c != nil {
		version += " catalog " + c.Copy().Fingerprint()
	}
	if r.skills != nil {
		version += " skills " + r.skills.Fingerprint()
	}
	return version
}

// slotsChanged lets the fleet look for a task at once.
func (r *Rack) slotsChanged() {
	if r.cloud != nil {
		r.cloud.fleet.Wake()
	}
}

// versions tells the cloud what runs here.
func versions() map[string]string {
	v := map[string]string{"rackd": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v["rackd"], v["go"] = info.Main.Version, info.GoVersion
	}
	return v
}

// unpacked are the files of an identity.
type unpacked struct {
	tls      link.TLS
	password string
}

// unpack writes an identity's parts as files that only rackd can read, into a folder that need not outlive a restart.
func unpack(folder string, b wire.Bundle) (u unpacked, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return u, err
	}
	for _, part := range []struct {
		name, text string
		path       *string
	}{
		{"ca.pem", b.CA, &u.tls.CAFile},
		{"rack.pem", b.Certificate, &u.tls.CertFile},
		{"rack.key", b.Key, &u.tls.KeyFile},
		{"broker.password", b.BrokerPassword, &u.password},
	} {
		path := filepath.Join(folder, part.name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return u, err
		}
		if part.text == "" {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return u, err
		}
		_, err = f.WriteString(part.text)
		if err = errors.Join(err, f.Close()); err != nil {
			return u, err
		}
		*part.path = path
	}
	return u, nil
}

// choosePlanner makes the planner of the configuration, and says how long its answer may take.
func (r *Rack) choosePlanner() (planner.Planner, time.Duration, error) {
	c := r.config.Planner
	switch c.Transport {
	case config.ByCloud:
		if r.cloud == nil { // a factory reset has taken the identity
			return nobody{}, 0, nil
		}
		return remote.New(r.config.Bundle.Rack, requester{r.cloud.link}), remote.Longest, nil
	case config.Direct:
		conf, err := c.Direct.Config()
		if err != nil {
			return nil, 0, fmt.Errorf("planner.direct: %w", err)
		}
		client, err := provider.New(conf)
		return client, conf.Timeout + time.Second, err
	}
	return r.config.Scripted, 0, nil
}

// nobody decides for a rack that is not enrolled. It implements planner.Planner.
type nobody struct{}

// Decide implements planner.Planner.
func (nobody) Decide(context.Context, planner.Request) (planner.Decision, error) {
	return planner.Decision{}, wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": "this rack is not enrolled"})
}

// requester joins the remote planner with the link.
type requester struct{ link *link.Link }

// Ask implements remote.Requester.
func (q requester) Ask(ctx context.Context, body wire.PlanRequest, screen []byte) (remote.Answers, error) {
	call := link.Call{Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: body}
	if screen != nil {
		call.Attachments = []wire.Attachment{{Name: wire.ScreenAttachment, Type: "image/jpeg", Data: screen}}
	}
	x, err := q.link.Open(ctx, call)
	if err != nil {
		return nil, unreachable(err)
	}
	return answers{x}, nil
}

// Online implements remote.Requester.
func (q requester) Online(ctx context.Context) error { return q.link.WaitOnline(ctx) }

type answers struct{ *link.Exchange }

// Next implements remote.Answers.
func (a answers) Next(ctx context.Context) (*wire.Message, error) {
	m, err := a.Exchange.Next(ctx)
	return m, unreachable(err)
}

// unreachable turns what the link says of itself into the planner's words.
func unreachable(err error) error {
	if errors.Is(err, link.ErrOffline) {
		return wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": err.Error()}).Because(err)
	}
	return err
}
