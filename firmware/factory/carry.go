package factory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"phonerack/firmware/store"
)

// Plan is what a reset works on.
type Plan struct {
	State    string
	Runtime  string   // folder in which parts of the identity lie; "" for none
	Identity string   // file; "" for none
	Database string   // its name in State
	Kept     []string // further files and folders, some of them perhaps in State: the configuration and what it names
	// Reduce writes a new database that holds what is wanted of the phones' power as the old one does. It may be called again.
	Reduce func(from, to string) error
	// Step is called before each step; an error ends Carry there. For tests; may be nil.
	Step func(name string) error
}

// Files in the state folder that stay, beside Plan.Kept.
var (
	always = []string{markFile, unjoined, "generation"}
	keys   = []string{"adbkey", "adbkey.next"}
)

// Carry carries out a reset that was asked for; false if none was. An error leaves the mark, so that the next start goes on.
func Carry(p Plan) (Mark, bool, error) {
	m, is, err := Asked(p.State)
	if err != nil || !is {
		return m, false, err
	}
	p = p.resolved()
	for _, s := range p.steps(m) {
		if p.Step != nil {
			if err := p.Step(s.name); err != nil {
				return m, true, err
			}
		}
		if err := s.do(); err != nil {
			return m, true, fmt.Errorf("factory reset: %s: %w", s.name, err)
		}
	}
	return m, true, nil
}

// step is one of a reset. It may be done again.
type step struct {
	name string
	do   func() error
}

// steps are those of a reset, in their order.
func (p Plan) steps(m Mark) []step {
	fresh, database := filepath.Join(p.State, p.Database+".new"), filepath.Join(p.State, p.Database)
	return []step{
		{"note that the rack is not enrolled", func() error {
			if p.Identity == "" {
				return nil
			}
			return write(filepath.Join(p.State, unjoined), nil)
		}},
		// First, for room on a full disk; the copy may be needed to read the database.
		{"remove what has gathered", func() error { return p.sweep(m.Keys, p.Database+".copy") }},
		{"make a new database", func() error {
			if err := remove(fresh); err != nil {
				return err
			}
			return p.Reduce(database, fresh)
		}},
		{"put it in the place of the old one", func() error {
			if err := os.Rename(fresh, database); err != nil {
				return err
			}
			return store.SyncFolder(p.State)
		}},
		{"remove copies", func() error { return p.sweep(m.Keys) }},
		{"remove the identity", func() error {
			if p.Runtime != "" {
				if err := remove(p.Runtime); err != nil {
					return err
				}
			}
			if p.Identity == "" || !exists(p.Identity) {
				return nil
			}
			if err := remove(p.Identity); err != nil {
				return err
			}
			return store.SyncFolder(filepath.Dir(p.Identity))
		}},
		{"end", func() error {
			if err := remove(filepath.Join(p.State, markFile)); err != nil {
				return err
			}
			return store.SyncFolder(p.State)
		}},
	}
}

// sweep removes all of the state folder that does not stay.
func (p Plan) sweep(withKeys bool, also ...string) error {
	stays := slices.Concat(always, also, []string{p.Database})
	if !withKeys {
		stays = append(stays, keys...)
	}
	entries, err := os.ReadDir(p.State)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(stays, e.Name()) {
			continue
		}
		if err := p.clear(filepath.Join(p.State, e.Name())); err != nil {
			return err
		}
	}
	return store.SyncFolder(p.State)
}

// resolved is the plan with paths that can be compared: a configuration may write a folder with a slash at its end, and name it by
// a link.
func (p Plan) resolved() Plan {
	var kept []string
	state := absolute(p.State)
	real := linkless(state)
	for _, k := range p.Kept {
		k = absolute(k)
		kept = append(kept, k, filepath.Join(linkless(filepath.Dir(k)), filepath.Base(k)), linkless(k))
		if rel, err := filepath.Rel(state, k); err == nil && filepath.IsLocal(rel) {
			kept = append(kept, filepath.Join(real, rel))
		}
	}
	p.State, p.Kept = real, kept
	return p
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// linkless is a path without the links that lead to it, if there is something.
func linkless(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// clear removes a file, or a folder but for what is kept in it. A link to such a folder stays, with all that it leads to: only the
// state folder is cleared.
func (p Plan) clear(path string) error {
	inside := false
	for _, kept := range p.Kept {
		if kept == path {
			return nil
		}
		rel, err := filepath.Rel(path, kept)
		inside = inside || err == nil && filepath.IsLocal(rel)
	}
	if !inside {
		return remove(path)
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.clear(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
