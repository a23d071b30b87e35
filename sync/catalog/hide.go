package catalog

import (
	"context"
	"maps"
	"strings"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// What a hide is of: the first byte of its key, before the name.
const (
	hiddenSkill        = "s"
	hiddenSubscription = "u"
	hiddenAll          = "*" // there were more hides than are kept
)

// maxHides bounds the hides that are kept.
const maxHides = model.MaxRemoved

// hides are what is known to be gone, with the version that took it away.
type hides map[string]mark

// of are the names of the hides of a kind; nil for none.
func (h hides) of(kind string) map[string]bool {
	var names map[string]bool
	for key := range h {
		if name, ok := strings.CutPrefix(key, kind); ok {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return names
}

// OnChanged takes a skill.changed of the link; it is a link.Handler.
func (c *Catalog) OnChanged(_ context.Context, m *wire.Message) {
	var h wire.SkillChanged
	if err := m.Decode(&h); err != nil {
		c.log.Warn("a hint about skills cannot be read", "err", err)
		return
	}
	c.Hint(h)
}

// Hint takes the platform's word that something has changed. What it says is gone
// is hidden when Hint returns, and stays so over a restart. A hint about what the
// applied list knows already changes nothing.
func (c *Catalog) Hint(h wire.SkillChanged) {
	if c.hide(h) {
		c.o.OnChange()
	}
	c.Poll()
}

// Poll makes Run look for changes soon.
func (c *Catalog) Poll() {
	select {
	case c.kick <- struct{}{}:
	default: // it will already
	}
}

func (c *Catalog) hide(h wire.SkillChanged) bool {
	at := mark{h.Epoch, h.Version}
	fresh := hides{}
	for _, id := range h.Removed {
		if model.ValidID(id) {
			fresh[hiddenSkill+id] = at
		}
	}
	if h.State == model.Revoked && model.ValidID(h.Subscription) {
		fresh[hiddenSubscription+h.Subscription] = at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.mark.before(at) {
		return false
	}
	if len(fresh) > 0 && len(c.hides)+len(fresh) > maxHides {
		c.log.Warn("more is gone than can be kept one by one: every skill is hidden until there is a complete list")
		fresh = hides{hiddenAll: at}
	}
	maps.DeleteFunc(fresh, func(key string, m mark) bool {
		known, ok := c.hides[key]
		return ok && !known.before(m)
	})
	if len(fresh) == 0 {
		return false
	}
	maps.Copy(c.hides, fresh)
	c.publish() // at once, and only then to the disk
	err := c.o.Bucket.Update(func(b *bolt.Bucket) error {
		for key, m := range fresh {
			if err := put(b.Bucket(bucketHides), []byte(key), m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.log.Error("what is hidden was not written down, and may come back if rackd ends before the next poll", "err", err)
	}
	return true
}
