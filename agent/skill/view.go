package skill

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/skill/model"
	"phonerack/agent/skill/template"
)

// View is what one caller may see of the catalog, at each question anew. It
// implements registry.Catalog.
type View struct {
	c      *Catalog
	agents []string
}

// For is the view of a caller.
func (c *Catalog) For(caller Caller) *View { return &View{c, caller.agents()} }

// sees is the one check of visibility: every question passes it.
func (v *View) sees(now *model.Copy, r model.Row) bool { return now.Entitled(r, v.agents...) }

// Sees tells whether the caller may see a skill now. It reads nothing.
func (v *View) Sees(id string) bool {
	now := v.c.o.Source.Copy()
	r, known := now.Row(id)
	return known && v.sees(now, r)
}

// find reads a skill that the caller may see.
func (v *View) find(id string) (*model.Skill, error) {
	for try := 1; ; try++ {
		now := v.c.o.Source.Copy()
		r, known := now.Row(id)
		if !known || !v.sees(now, r) {
			return nil, ErrUnknown
		}
		s, err := v.c.o.Source.Skill(r.Entry)
		if err == nil && v.sees(v.c.o.Source.Copy(), r) {
			return s, nil
		}
		if try > 1 {
			if err == nil {
				return nil, ErrUnknown
			}
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
}

// Skill implements registry.Catalog: it finds a skill that can be used now.
func (v *View) Skill(id string) (*model.Skill, bool) {
	s, err := v.find(id)
	if err != nil || v.c.check(s) != nil {
		return nil, false
	}
	return s, true
}

// Row is a skill in a list.
type Row struct {
	model.Row
	Unavailable string // why it cannot be used with the tools that are registered; "" if it can
}

// List returns at most limit skills whose ids come after the given one, by id, and
// whether there are more.
func (v *View) List(after string, limit int) (rows []Row, more bool) {
	now := v.c.o.Source.Copy()
	_, faults := v.c.ready(now)
	from, found := slices.BinarySearchFunc(now.Rows, after, func(r model.Row, id string) int { return strings.Compare(r.ID, id) })
	if found {
		from++
	}
	for _, r := range now.Rows[from:] {
		if !v.sees(now, r) {
			continue
		}
		if len(rows) == limit {
			return rows, true
		}
		rows = append(rows, Row{r, faults[r.SHA256]})
	}
	return rows, false
}

// Count returns how many skills there are, and how many of them cannot be used with
// the tools that are registered.
func (v *View) Count() (all, unavailable int) {
	now := v.c.o.Source.Copy()
	_, faults := v.c.ready(now)
	for _, r := range now.Rows {
		if !v.sees(now, r) {
			continue
		}
		if all++; faults[r.SHA256] != "" {
			unavailable++
		}
	}
	return all, unavailable
}

// Search returns the at most limit skills that a query finds best, the best first.
func (v *View) Search(query string, limit int) []Row {
	now := v.c.o.Source.Copy()
	index, faults := v.c.ready(now)
	var rows []Row
	visible := func(id string) bool {
		r, known := now.Row(id)
		return known && v.sees(now, r)
	}
	for _, hit := range index.Search(query, visible, 0, limit) {
		r, _ := now.Row(hit.ID)
		rows = append(rows, Row{r, faults[r.SHA256]})
	}
	return rows
}

// Get reads a skill. unavailable says why it cannot be used with the tools that are
// registered now. The error is ErrUnknown or ErrUnreadable.
func (v *View) Get(id string) (s *model.Skill, unavailable error, err error) {
	if s, err = v.find(id); err != nil {
		return nil, nil, err
	}
	return s, v.c.check(s), nil
}

// Resolve makes the calls of a flow template with given values. Errors are
// ErrUnknown, ErrUnreadable and those of package template.
func (v *View) Resolve(id string, values json.RawMessage) ([]template.Call, error) {
	s, err := v.find(id)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse(s)
	if err != nil {
		return nil, err
	}
	if err := t.Check(v.c.o.Tools); err != nil {
		return nil, err
	}
	return t.Resolve(values, v.c.o.Tools)
}
