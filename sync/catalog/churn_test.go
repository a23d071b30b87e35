package catalog_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// churn is a day of a platform and a rack, compressed.
type churn struct {
	*world
	r       *rand.Rand
	changes int
	// view is what the platform has at a place in its history: "id=version ..." with blanks around.
	view map[[2]int64]string
	gone map[string][2]int64 // that the rack was told, with the place: "s" and "u" before the name
	late []wire.SkillChanged // hints that come later, or never
}

func before(a, b [2]int64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

func (c *churn) note() {
	all := c.entitled()
	text := " "
	for _, id := range slices.Sorted(maps.Keys(all)) {
		text += id + "=" + all[id].Version + " "
	}
	c.view[[2]int64{c.epoch, c.version}] = text
}

// change does something on the platform, and may tell the rack.
func (c *churn) change() {
	c.changes++
	id, sub := fmt.Sprintf("s%02d", c.r.IntN(30)), fmt.Sprintf("u%d", c.r.IntN(4))
	hint := wire.SkillChanged{}
	switch n := c.r.IntN(100); {
	case n < 55:
		s := tips(id, fmt.Sprint(c.changes), "u"+id[len(id)-1:])
		s.Subscription = fmt.Sprintf("u%d", int(id[2]-'0')%4)
		c.publish(s)
		hint = wire.SkillChanged{Epoch: c.epoch, Version: c.version}
	case n < 75:
		hint = c.remove(id)
	case n < 87:
		hint = c.subscribe(sub, model.Revoked)
	case n < 99:
		hint = c.subscribe(sub, model.Active)
	default: // the database was restored
		c.epoch, c.version, c.entitle = c.epoch+1, 1+c.r.Int64N(5), 0
		for id := range c.changed {
			c.changed[id] = c.version
		}
		hint = wire.SkillChanged{Epoch: c.epoch, Version: c.version}
	}
	c.note()
	c.at = c.at.Add(time.Second)
	if n := c.r.IntN(3); n == 0 {
		c.tell(hint)
	} else if n == 1 && len(c.late) < 50 {
		c.late = append(c.late, hint)
	}
	if len(c.late) > 0 && c.r.IntN(4) == 0 {
		i := c.r.IntN(len(c.late))
		c.tell(c.late[i])
		c.late = slices.Delete(c.late, i, i+1)
	}
}

func (c *churn) tell(h wire.SkillChanged) {
	at := [2]int64{h.Epoch, h.Version}
	for _, id := range h.Removed {
		if before(c.gone["s"+id], at) {
			c.gone["s"+id] = at
		}
	}
	if h.State == model.Revoked && before(c.gone["u"+h.Subscription], at) {
		c.gone["u"+h.Subscription] = at
	}
	c.c.Hint(h)
}

// check holds what is shown to the platform's history, and to what the rack knows.
func (c *churn) check() {
	c.Helper()
	copied := c.c.Copy()
	at := [2]int64{copied.Epoch, copied.Version}
	for _, r := range copied.Rows {
		if !copied.Entitled(r, "task") {
			continue
		}
		if !strings.Contains(c.view[at], " "+r.ID+"="+r.Version+" ") {
			c.Fatalf("change %d: %s %s is shown at %v, where the platform had %s", c.changes, r.ID, r.Version, at, c.view[at])
		}
		for _, name := range []string{"s" + r.ID, "u" + r.Subscription} {
			if before(at, c.gone[name]) {
				c.Fatalf("change %d: %s is shown at %v, although %s is known to be gone since %v", c.changes, r.ID, at, name, c.gone[name])
			}
		}
	}
}

func TestSpec000_ADayOfChurn(t *testing.T) {
	const seed = 20261130
	c := &churn{world: newWorld(t), r: rand.New(rand.NewPCG(seed, 1)), view: map[[2]int64]string{}, gone: map[string][2]int64{}}
	c.platform.page = 1500
	clear(c.subs)
	c.note()
	steps := 0
	c.cut = func(string) error {
		if steps--; steps == 0 {
			return errCut
		}
		return nil
	}
	cuts, largest := 0, 0
	for c.changes < 10_000 {
		for range 1 + c.r.IntN(14) {
			c.change()
			c.check()
		}
		steps = 0
		if c.r.IntN(3) == 0 {
			steps = 1 + c.r.IntN(20)
		}
		if c.c.Sync(t.Context()) != nil {
			cuts++
		}
		c.check()
		if c.r.IntN(40) == 0 {
			c.restart()
			c.check()
		}
		c.asked = c.asked[:0]
		clear(c.held)
		maps.DeleteFunc(c.coded, func(s *model.Skill, _ []byte) bool { return c.skills[s.ID] != s })
		maps.DeleteFunc(c.sums, func(s *model.Skill, _ string) bool { return c.skills[s.ID] != s })
		c.bucket.db.View(func(tx *bolt.Tx) error {
			largest = max(largest, int(tx.Size()))
			return nil
		})
	}
	steps = 0
	c.sync()
	c.check()
	if want := strings.TrimSpace(c.view[[2]int64{c.epoch, c.version}]); want == "" || c.shown() != want {
		t.Errorf("at the end %q is shown, and the platform has %q", c.shown(), want)
	}
	if s := c.c.Status(); s.Hidden != 0 {
		t.Errorf("%d hides are left", s.Hidden)
	}
	if cuts < 100 {
		t.Errorf("only %d cuts", cuts)
	}
	if largest > 2<<20 {
		t.Errorf("the file has grown to %d bytes", largest)
	}
	t.Logf("%d changes, %d cuts, file %d bytes", c.changes, cuts, largest)
}
