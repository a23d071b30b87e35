package catalog_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// TestSpec000_AHostilePlatformChangesNothing: the catalog is unchanged, and the reason is told.
func TestSpec000_AHostilePlatformChangesNothing(t *testing.T) {
	var old signed
	for _, c := range []struct {
		name   string
		attack func(w *world)
		reason error
	}{
		{"a page that is cut", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) {
				if n == 1 {
					p.Manifest = p.Manifest[:len(p.Manifest)-1]
				}
			}
		}, catalog.ErrPages},
		{"an end that does not come", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) {
				if n == 1 {
					p.NextPage = ""
				}
			}
		}, catalog.ErrPages},
		{"a page after the last one", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) {
				if p.NextPage == "" {
					p.NextPage = "x"
				}
			}
		}, catalog.ErrPages},
		{"a page that is there twice", func(w *world) {
			var first wire.SkillManifest
			w.alter = func(n int, p *wire.SkillManifest) {
				if n == 0 {
					first = *p
				} else if n == 1 {
					*p = first
				}
			}
		}, catalog.ErrPages},
		{"pages in another order", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) {
				if raw := w.sign(w.manifest(0)).raw; n < 2 {
					p.Manifest = raw[(1-n)*w.page : (2-n)*w.page]
				}
			}
		}, model.ErrBadSignature},
		{"an offset that is not the next one", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) { p.Offset += int64(n) }
		}, catalog.ErrPages},
		{"a version that changes in the middle of the list", func(w *world) {
			w.alter = func(n int, p *wire.SkillManifest) {
				if n == 0 {
					w.version++
					s := w.sign(w.manifest(0))
					p.NextPage = fmt.Sprintf("%s %d", model.Sum(s.raw), w.page)
					w.held[model.Sum(s.raw)] = s
				}
			}
		}, catalog.ErrPages},
		{"no bytes at all", func(w *world) {
			w.alter = func(_ int, p *wire.SkillManifest) { p.Manifest, p.Size, p.NextPage = nil, 0, "" }
		}, catalog.ErrPages},
		{"bytes without end", func(w *world) {
			w.alter = func(_ int, p *wire.SkillManifest) { p.Size = model.MaxManifestBytes + 1 }
		}, catalog.ErrPages},
		{"pages without end", func(w *world) { w.page = 1 }, catalog.ErrPages},
		{"an empty list that nobody signed", func(w *world) {
			w.alter = func(_ int, p *wire.SkillManifest) {
				m := w.manifest(0)
				m.Skills = nil
				s := w.sign(m)
				p.Manifest, p.Size, p.NextPage = s.raw, int64(len(s.raw)), ""
			}
		}, model.ErrBadSignature},
		{"an empty list that is said to be changes after nothing", func(w *world) {
			w.edit = func(m *model.Manifest) { m.Skills, m.Removed, m.Complete, m.Since = nil, nil, false, 1 }
		}, catalog.ErrPartial},
		{"an old key", func(w *world) {
			w.keys["k0"] = key("k0")
			w.signs = "k0"
		}, model.ErrUnknownKey},
		{"another key under a known name", func(w *world) { w.keys["k1"] = key("other") }, model.ErrBadSignature},
		{"a manifest of yesterday's version", func(w *world) { w.version -= 2 }, catalog.ErrRollback},
		{"a manifest of an epoch before", func(w *world) { w.epoch-- }, catalog.ErrRollback},
		{"a signed manifest again that was replaced", func(w *world) {
			w.alter = func(_ int, p *wire.SkillManifest) {
				p.Manifest, p.Size, p.Offset, p.NextPage, p.Sig, p.KeyID = old.raw, int64(len(old.raw)), 0, "", old.sig, old.key
			}
		}, catalog.ErrRollback},
		{"a manifest that has expired", func(w *world) {
			w.edit = func(m *model.Manifest) { m.Issued, m.Expires = m.Issued-1000, w.at.UnixMilli() }
		}, catalog.ErrExpired},
		{"another rack's manifest", func(w *world) { w.edit = func(m *model.Manifest) { m.Rack = "r2" } }, catalog.ErrForeign},
		{"a body of other bytes", func(w *world) {
			w.body = func(raw []byte) []byte { return append(slices.Clone(raw[:len(raw)-2]), ' ', '}') }
		}, catalog.ErrBody},
		{"a body that is cut", func(w *world) { w.body = func(raw []byte) []byte { return raw[:len(raw)-1] } }, catalog.ErrBody},
		{"a body of another skill", func(w *world) {
			w.edit = func(m *model.Manifest) { m.Skills[0].ID = "aa" }
		}, catalog.ErrBody},
		{"more than the rack has room for", func(w *world) {
			w.edit = func(m *model.Manifest) { m.Skills[0].Size = model.MaxSkillBytes }
			w.options.MaxBytes = model.MaxSkillBytes
			w.restart()
		}, catalog.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(tips("a", "1", "social"))
			old = w.sign(w.manifest(0))
			w.publish(tips("b", "1", "social"), tips("c", "1", "social"))
			w.at = w.at.Add(time.Minute)
			w.sync()
			w.publish(tips("a", "2", "social"))
			// The whole list is asked for, so that a short answer could do harm.
			w.c.Hint(wire.SkillChanged{Epoch: w.epoch, Version: w.version, Removed: []string{"x"}})
			c.attack(w)
			w.refused(c.reason)
			w.restart()
			w.want("a=1 b=1 c=1")
		})
	}
	t.Run("changes after another version than the one that was asked for", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"))
		w.sync()
		w.publish(tips("b", "1", "social"))
		w.edit = func(m *model.Manifest) { m.Complete, m.Since = false, 1 }
		w.refused(catalog.ErrPartial)
	})
}

func TestKeysRotateByWhatTheManifestNames(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"k2", "k3"} {
		w.keys[id] = key(id)
	}
	w.publish(tips("a", "1", "social"))
	w.sync()
	w.named = []string{"k1", "k2"}
	w.sync()
	w.signs, w.named = "k2", []string{"k2"}
	w.publish(tips("a", "2", "social"))
	w.sync()
	w.want("a=2")
	if last := w.asked[len(w.asked)-1]; !slices.Equal(last.Keys, []string{"k1", "k2"}) {
		t.Errorf("the rack says that it knows %v", last.Keys)
	}
	w.restart()
	w.signs = "k1" // which was dropped, although the enrolment named it
	w.refused(model.ErrUnknownKey)

	// A new enrolment takes the place of what manifests named, and of a version that a stolen key has made.
	w.options.Keys = model.Keys{"k3": w.keys["k3"].Public().(ed25519.PublicKey)}
	w.signs, w.named, w.epoch, w.version = "k3", nil, 1, 1
	w.restart()
	w.want("a=2")
	w.sync()
	if c := w.c.Copy(); c.Epoch != 1 || c.Version != 1 {
		t.Errorf("%d.%d", c.Epoch, c.Version)
	}
}

func TestAnExpiredManifestIsNotAppliedWhateverTheClockSays(t *testing.T) {
	w := newWorld(t)
	w.publish(tips("a", "1", "social"))
	w.sync()
	issued := w.at
	w.publish(tips("a", "2", "social"))
	w.edit = func(m *model.Manifest) {
		m.Issued, m.Expires = issued.Add(-48*time.Hour).UnixMilli(), issued.Add(-24*time.Hour).UnixMilli()
	}
	w.options.Now = func() (time.Time, bool) { return issued.Add(-36 * time.Hour), false } // a board without a clock
	w.restart()
	w.refused(catalog.ErrExpired)
}

func TestAManifestThatExpiresWhileItsSkillsAreFetchedIsNotApplied(t *testing.T) {
	w := newWorld(t)
	w.publish(tips("a", "1", "social"))
	w.sync()
	w.publish(tips("a", "2", "social"))
	w.cut = func(what string) error {
		if what == "blob" {
			w.at = w.at.Add(25 * time.Hour)
		}
		return nil
	}
	w.refused(catalog.ErrExpired)
}

// TestDatesPastTheYear9999, which no answer about the catalog can be written with: a manifest is not taken, and a copy that an earlier
// version has taken serves on, as stale, until there is another.
func TestDatesPastTheYear9999(t *testing.T) {
	w := newWorld(t)
	w.publish(tips("a", "1", "social"))
	w.sync()
	w.publish(tips("a", "2", "social"))
	w.text = func(raw []byte) []byte {
		return regexp.MustCompile(`"issued":\d+,"expires":\d+`).ReplaceAll(raw, []byte(`"issued":253402300800000,"expires":9223372036854775807`))
	}
	if err := w.c.Sync(w.Context()); err == nil || !strings.Contains(err.Error(), "issued") {
		t.Errorf("it is taken: %v", err)
	}
	w.text = nil
	w.want("a=1")
	for _, dates := range [][2]string{{"253402300800000", "9223372036854775807"}, {"253402300800000", "1"}, {"1", "253402300800000"}, {"-9223372036854775808", "1"}, {"1", "-9223372036854775808"}} {
		err := w.bucket.Update(func(b *bolt.Bucket) error {
			var state map[string]json.RawMessage
			if err := json.Unmarshal(b.Get([]byte("state")), &state); err != nil {
				return err
			}
			state["issued"], state["expires"] = json.RawMessage(dates[0]), json.RawMessage(dates[1])
			raw, err := json.Marshal(state)
			if err != nil {
				return err
			}
			return b.Put([]byte("state"), raw)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.restart()
		w.want("a=1")
		if _, err := json.Marshal(w.c.Status()); err != nil || w.c.Status().StaleSince.IsZero() {
			t.Errorf("issued %s, expires %s: %+v: %v", dates[0], dates[1], w.c.Status(), err)
		}
	}
	w.sync()
	w.want("a=2")
	if st := w.c.Status(); !st.Issued.Equal(w.at) || !st.StaleSince.IsZero() {
		t.Errorf("%+v", st)
	}
}
