package fleet

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Link is the connection to the cloud. [Over] makes it of a *link.Link.
type Link interface {
	// Ask sends a request and waits for its one answer, with the errors of
	// link.Link.Request. sent is the boot clock when the request went out.
	Ask(ctx context.Context, c link.Call) (m *wire.Message, sent time.Duration, err error)
	Handle(t wire.Type, h link.Handler)
	Now() (now time.Time, trusted bool)
	WaitOnline(ctx context.Context) error
	SetPresence(p wire.Presence)
}

// Outbox is what must reach the cloud, in the database of Options.Bucket. [Over]
// makes it of a *link.Link.
type Outbox interface {
	Put(e link.Entry) (id string, err error)
	PutTx(tx *bolt.Tx, e link.Entry) (id string, err error)
	Holds(id string) (bool, error)
	// Reserve keeps room for one result until release is called.
	Reserve() (release func(), err error)
}

// Over gives link and outbox of a *link.Link as a [Fleet] takes them.
func Over(l *link.Link) (Link, Outbox) { return overLink{l}, overOutbox{l.Outbox()} }

type overLink struct{ *link.Link }

func (o overLink) Ask(ctx context.Context, c link.Call) (*wire.Message, time.Duration, error) {
	x, err := o.Open(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	defer x.Close()
	m, err := x.Next(ctx)
	return m, x.Sent(), err
}

type overOutbox struct{ *link.Outbox }

func (o overOutbox) Reserve() (func(), error) {
	r, err := o.Outbox.Reserve()
	if err != nil {
		return nil, err
	}
	return r.Release, nil
}
