package catalog

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// requestTime bounds the wait for one answer.
const requestTime = 30 * time.Second

// maxPages bounds the pages of a manifest: rackcloud makes 43 at most.
const maxPages = 256

// maxNamed bounds the keys that the rack names: the platform reads no more.
const maxNamed = 16

// question is what the platform is asked, and what the answer is held to.
type question struct {
	ask   wire.SkillChanges
	trust model.Keys
	now   time.Time
	anew  bool  // no version is too old
	have  mark  // that is applied
	since int64 // milliseconds: when it was issued
}

// question makes the next question. The caller holds syncing.
func (c *Catalog) question() question {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash := range c.damaged {
		delete(c.stored, hash)
		c.whole = true
	}
	clear(c.damaged)
	q := question{trust: c.trusted(), now: c.time(), anew: c.state.Anew, have: c.state.mark, since: c.state.Issued}
	if !c.whole && !q.anew && len(c.hides) == 0 {
		q.ask = wire.SkillChanges{Epoch: q.have.Epoch, Since: q.have.Version}
	}
	q.ask.Keys = slices.Sorted(maps.Keys(q.trust))
	q.ask.Keys = q.ask.Keys[:min(maxNamed, len(q.ask.Keys))]
	return q
}

// manifest fetches a manifest and proves it. It is nil if there is nothing new.
func (c *Catalog) manifest(ctx context.Context, q question) (*model.Manifest, error) {
	raw, first, err := c.pages(ctx, q.ask)
	if err != nil {
		return nil, err
	}
	m, err := model.OpenManifest(raw, first.Sig, first.KeyID, q.trust)
	if err != nil {
		return nil, err
	}
	at := mark{m.Epoch, m.Version}
	switch {
	case m.Rack != c.o.Rack:
		return nil, ErrForeign
	case !q.now.Before(m.ExpiresAt()):
		return nil, fmt.Errorf("%w: at %s", ErrExpired, m.ExpiresAt().Format(time.RFC3339))
	case !m.Complete && (q.ask.Since == 0 || m.Since != q.ask.Since || m.Epoch != q.ask.Epoch):
		return nil, ErrPartial
	case !q.anew && at.before(q.have):
		return nil, fmt.Errorf("%w: version %d of epoch %d after %d of %d", ErrRollback, m.Version, m.Epoch, q.have.Version, q.have.Epoch)
	case !q.anew && at == q.have && m.Issued < q.since:
		return nil, nil // of the same version, from before
	}
	return m, nil
}

// pages puts the pages of one manifest together.
func (c *Catalog) pages(ctx context.Context, ask wire.SkillChanges) (raw []byte, first wire.SkillManifest, err error) {
	for n := range maxPages {
		page, err := c.page(ctx, ask)
		if err != nil {
			return nil, first, err
		}
		if n == 0 {
			first = page
		}
		switch {
		case page.Size < 1 || page.Size > model.MaxManifestBytes:
			return nil, first, fmt.Errorf("%w: it has %d bytes", ErrPages, page.Size)
		case page.Size != first.Size || page.KeyID != first.KeyID || !bytes.Equal(page.Sig, first.Sig):
			return nil, first, fmt.Errorf("%w: page %d belongs to another one", ErrPages, n+1)
		case page.Offset != int64(len(raw)):
			return nil, first, fmt.Errorf("%w: page %d begins at byte %d where %d comes next", ErrPages, n+1, page.Offset, len(raw))
		case len(page.Manifest) == 0 || int64(len(raw)+len(page.Manifest)) > first.Size:
			return nil, first, fmt.Errorf("%w: page %d has %d bytes, after %d of %d", ErrPages, n+1, len(page.Manifest), len(raw), first.Size)
		}
		raw = append(raw, page.Manifest...)
		whole := int64(len(raw)) == first.Size
		if (page.NextPage == "") != whole {
			return nil, first, fmt.Errorf("%w: after page %d there are %d bytes of %d", ErrPages, n+1, len(raw), first.Size)
		}
		if whole {
			return raw, first, nil
		}
		ask.Page = page.NextPage
	}
	return nil, first, fmt.Errorf("%w: there are more than %d", ErrPages, maxPages)
}

func (c *Catalog) page(ctx context.Context, ask wire.SkillChanges) (wire.SkillManifest, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.o.Platform.Changes(ctx, ask)
}

// atOnce bounds the bodies that are fetched at the same time. On a thin line more would
// be in the way of planners' answers.
const atOnce = 4

// bodies fetches what entries stand for, and hands each over in their order, until
// there is an error.
func (c *Catalog) bodies(ctx context.Context, entries []model.Entry, take func(model.Entry, []byte) error) error {
	type answer struct {
		raw []byte
		err error
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting []chan answer // for those that were asked for, in their order
	for done := range entries {
		for next := done + len(waiting); next < min(len(entries), done+atOnce); next++ {
			came := make(chan answer, 1)
			waiting = append(waiting, came)
			asking.Go(func() {
				raw, err := c.body(ctx, entries[next])
				came <- answer{raw, err}
			})
		}
		a := <-waiting[0]
		waiting = waiting[1:]
		if a.err != nil {
			return a.err
		}
		if err := take(entries[done], a.raw); err != nil {
			return err
		}
	}
	return nil
}

// body fetches the bytes that an entry stands for.
func (c *Catalog) body(ctx context.Context, e model.Entry) ([]byte, error) {
	raw := make([]byte, 0, e.Size)
	for int64(len(raw)) < e.Size {
		d, part, err := c.blob(ctx, wire.BlobGet{SHA256: e.SHA256, Offset: int64(len(raw))})
		if err != nil {
			return nil, err
		}
		if d.SHA256 != e.SHA256 || d.Size != e.Size || d.Offset != int64(len(raw)) || len(part) == 0 || int64(len(raw)+len(part)) > e.Size {
			return nil, fmt.Errorf("%w: skill %s, %d bytes from %d of %d", ErrBody, e.ID, len(part), d.Offset, d.Size)
		}
		raw = append(raw, part...)
	}
	return raw, nil
}

func (c *Catalog) blob(ctx context.Context, ask wire.BlobGet) (wire.BlobData, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.o.Platform.Blob(ctx, ask)
}
