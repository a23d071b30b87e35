package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// Bounds of what is in memory between two transactions that write bodies down.
const (
	batchBytes  = 1 << 20
	batchBodies = 64
)

// maxTries bounds how often one Sync begins again because the catalog moves on
// while it is fetched.
const maxTries = 3

// Sync brings the copy up to date, once. It returns nil if the platform has said
// that it is, and otherwise why it is as it was before.
func (c *Catalog) Sync(ctx context.Context) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	changed, err := c.sync(ctx)
	c.mu.Lock()
	c.tried, _ = c.o.Now()
	c.problem = ""
	if err == nil {
		c.synced, c.whole = c.tried, false
	} else {
		c.problem = err.Error()
	}
	c.mu.Unlock()
	if changed {
		now := c.Copy()
		c.log.Info("the catalog of skills has changed", "epoch", now.Epoch, "version", now.Version, "skills", len(now.Rows))
		c.o.OnChange()
	}
	return err
}

func (c *Catalog) sync(ctx context.Context) (changed bool, err error) {
	for try := 1; ; try++ {
		var m *model.Manifest
		q := c.question()
		if m, err = c.manifest(ctx, q); err == nil && m != nil {
			changed, err = c.apply(ctx, m)
		}
		switch {
		case err == nil:
			return changed, nil
		case errors.Is(err, ErrUnchanged) && q.ask.Since > 0:
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case wire.Is(err, wire.ResyncRequired), wire.Is(err, wire.NotFound), errors.Is(err, ErrPages), errors.Is(err, ErrPartial):
			c.whole = true // what is known here does not help; a part that fits nothing least of all
			if try < maxTries {
				continue
			}
		}
		return false, err
	}
}

// next is a copy that is about to take the place of the present one.
type next struct {
	m       *model.Manifest
	rows    []model.Row          // by id
	put     []model.Row          // that are new in rows
	removed []string             // ids
	known   map[string]model.Row // rows of bodies that were read, by hash
}

// apply fetches what a manifest names, and puts it in place of what there is.
func (c *Catalog) apply(ctx context.Context, m *model.Manifest) (changed bool, err error) {
	entries, err := c.entries(m)
	if err != nil {
		return false, err
	}
	if err := c.dropStaged(entries); err != nil {
		return false, err
	}
	n := &next{m: m, known: map[string]model.Row{}}
	if err := c.stage(ctx, n, entries); err != nil {
		return false, err
	}
	for _, e := range entries {
		before, had := row(c.rows, e.ID)
		fetched, anew := n.known[e.SHA256]
		if had && before.Entry == e && !anew {
			n.rows = append(n.rows, before)
			continue
		}
		n.rows, n.put = append(n.rows, fetched), append(n.put, fetched)
	}
	for _, r := range c.rows {
		if _, stays := row(n.rows, r.ID); !stays {
			n.removed = append(n.removed, r.ID)
		}
	}
	return c.switchOver(n)
}

func row(rows []model.Row, id string) (model.Row, bool) {
	i, found := slices.BinarySearchFunc(rows, id, func(r model.Row, id string) int { return strings.Compare(r.ID, id) })
	if !found {
		return model.Row{}, false
	}
	return rows[i], true
}

// entries are those of the catalog once m is applied, by id.
func (c *Catalog) entries(m *model.Manifest) ([]model.Entry, error) {
	entries := m.Skills
	if !m.Complete {
		all := map[string]model.Entry{}
		for _, r := range c.rows {
			all[r.ID] = r.Entry
		}
		for _, e := range m.Skills {
			all[e.ID] = e
		}
		for _, id := range m.Removed {
			delete(all, id)
		}
		entries = slices.SortedFunc(maps.Values(all), func(a, b model.Entry) int { return strings.Compare(a.ID, b.ID) })
	}
	var size int64
	for _, e := range entries {
		size += e.Size
	}
	if len(entries) > model.MaxCatalog || size > c.o.MaxBytes {
		return nil, fmt.Errorf("%w: %d skills of %d bytes, where %d and %d are the most", ErrTooLarge, len(entries), size, model.MaxCatalog, c.o.MaxBytes)
	}
	return entries, nil
}

// dropStaged removes bodies that neither the copy nor the next one names: an
// earlier Sync fetched them, and came to nothing.
func (c *Catalog) dropStaged(entries []model.Entry) error {
	named := map[string]bool{}
	for _, e := range entries {
		named[e.SHA256] = true
	}
	for _, r := range c.rows {
		named[r.SHA256] = true
	}
	var drop []string
	for hash := range c.stored {
		if !named[hash] {
			drop = append(drop, hash)
		}
	}
	if len(drop) == 0 {
		return nil
	}
	err := c.o.Bucket.Update(func(b *bolt.Bucket) error { return dropBodies(b, drop) })
	if err == nil {
		c.forget(drop)
	}
	return err
}

func dropBodies(b *bolt.Bucket, hashes []string) error {
	for _, hash := range hashes {
		if err := b.Bucket(bucketBodies).Delete([]byte(hash)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalog) forget(hashes []string) {
	for _, hash := range hashes {
		delete(c.stored, hash)
	}
}

// stage sees to it that the body of each entry is in the database.
func (c *Catalog) stage(ctx context.Context, n *next, entries []model.Entry) error {
	batch, size := map[string][]byte{}, 0
	write := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := c.o.Bucket.Update(func(b *bolt.Bucket) error {
			for _, hash := range slices.Sorted(maps.Keys(batch)) {
				if err := b.Bucket(bucketBodies).Put([]byte(hash), batch[hash]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write bodies of skills down: %w", err)
		}
		for hash, raw := range batch {
			c.stored[hash] = int64(len(raw))
		}
		batch, size = map[string][]byte{}, 0
		return nil
	}
	var missing []model.Entry
	for _, e := range entries {
		before, had := row(c.rows, e.ID)
		if had && before.Entry == e && c.stored[e.SHA256] == e.Size || c.read(n, e) {
			continue
		}
		missing = append(missing, e)
	}
	err := c.bodies(ctx, missing, func(e model.Entry, raw []byte) error {
		s, err := model.OpenSkill(e, raw)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBody, err)
		}
		n.known[e.SHA256] = model.RowOf(e, s)
		batch[e.SHA256], size = raw, size+len(raw)
		if len(batch) < batchBodies && size < batchBytes {
			return nil
		}
		return write()
	})
	// What has come by then is kept, whatever went wrong.
	if failed := write(); err == nil {
		err = failed
	}
	return err
}

// read takes the body of an entry from the database, if it was fetched before.
func (c *Catalog) read(n *next, e model.Entry) bool {
	if c.stored[e.SHA256] == 0 {
		return false
	}
	s, err := c.Skill(e)
	if err != nil {
		return false // it is fetched, and written over
	}
	n.known[e.SHA256] = model.RowOf(e, s)
	return true
}

// switchOver puts the next copy in the place of the present one, in one transaction.
func (c *Catalog) switchOver(n *next) (changed bool, err error) {
	named := map[string]bool{}
	for _, r := range n.rows {
		named[r.SHA256] = true
	}
	var drop []string
	for hash := range c.stored {
		if !named[hash] {
			drop = append(drop, hash)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.state
	now.mark, now.Issued, now.Expires = mark{n.m.Epoch, n.m.Version}, n.m.Issued, n.m.Expires
	now.Subscriptions, now.Anew = n.m.Subscriptions, false
	if len(n.m.Keys) > 0 {
		now.Keys = n.m.Keys
	}
	if !c.time().Before(n.m.ExpiresAt()) {
		return false, fmt.Errorf("%w while its skills were fetched", ErrExpired)
	}
	var lifted []string
	for key, m := range c.hides {
		if n.m.Complete && !now.mark.before(m) {
			lifted = append(lifted, key)
		}
	}
	err = c.o.Bucket.Update(func(b *bolt.Bucket) error {
		for _, r := range n.put {
			if err := put(b.Bucket(bucketSkills), []byte(r.ID), r); err != nil {
				return err
			}
		}
		for _, id := range n.removed {
			if err := b.Bucket(bucketSkills).Delete([]byte(id)); err != nil {
				return err
			}
		}
		for _, key := range lifted {
			if err := b.Bucket(bucketHides).Delete([]byte(key)); err != nil {
				return err
			}
		}
		if err := dropBodies(b, drop); err != nil {
			return err
		}
		return put(b, keyState, now)
	})
	if err != nil {
		return false, fmt.Errorf("write the catalog down: %w", err)
	}
	c.forget(drop)
	changed = len(n.put)+len(n.removed)+len(lifted) > 0 || !slices.EqualFunc(c.state.Subscriptions, now.Subscriptions, sameState)
	for _, key := range lifted {
		delete(c.hides, key)
	}
	c.state, c.rows = now, n.rows
	c.publish()
	return changed, nil
}

func sameState(a, b model.SubscriptionState) bool {
	return a.ID == b.ID && a.State == b.State && slices.Equal(a.Agents, b.Agents)
}
