package registry

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
)

// Bucket is a part of the rack's database; firmware/store has it.
type Bucket interface {
	View(fn func(*bolt.Bucket) error) error
	Update(fn func(*bolt.Bucket) error) error
}

// Names inside the bucket: the two tables of spec 004.
var (
	bucketSkills = []byte("skills")      // name -> skillRow
	bucketItems  = []byte("skill_items") // skill_name, 0, item_order -> itemRow
	bucketAside  = []byte("set_aside")   // skill name, 0, table, 0, key -> the row as it was
)

// skillRow is a row of the table skills, with its columns.
type skillRow struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	ShortName   string `json:"short_name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	Metadata    string `json:"metadata_json,omitempty"` // JSON of metadata; "" if there is nothing in it
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`
}

// metadata is what a skill has besides its columns and its items.
type metadata struct {
	Overrides map[string]model.Overrides `json:"overrides,omitempty"`
}

// itemRow is a row of the table skill_items, with its columns.
type itemRow struct {
	ID        uint64         `json:"id"` // rises with each item that was ever stored
	SkillName string         `json:"skill_name"`
	Type      model.ItemType `json:"item_type"`
	Name      string         `json:"item_name,omitempty"`
	Config    string         `json:"item_config,omitempty"` // JSON of the item; "" if it is no more than type and name
	Order     uint32         `json:"item_order"`
	CreatedAt string         `json:"created_at"`
}

// isoTime is ISO 8601 in UTC: 27 of the 30 characters that the columns have.
const isoTime = "2006-01-02T15:04:05.000000Z"

func (s *Skill) rows(firstID func() (uint64, error)) (row skillRow, items []itemRow, err error) {
	row = skillRow{
		Name: s.Name, Namespace: s.Namespace, ShortName: s.ShortName, Description: s.Description, Version: s.Version,
		CreatedAt: s.CreatedAt.Format(isoTime), UpdatedAt: s.UpdatedAt.Format(isoTime),
	}
	if len(s.Overrides) > 0 {
		raw, err := json.Marshal(metadata{s.Overrides})
		if err != nil {
			return row, nil, err
		}
		row.Metadata = string(raw)
	}
	for i, it := range s.Items {
		r := itemRow{SkillName: s.Name, Type: it.Type(), Name: it.Name(), Order: uint32(i), CreatedAt: row.UpdatedAt}
		if r.ID, err = firstID(); err != nil {
			return row, nil, err
		}
		if !bare(it) {
			raw, err := json.Marshal(it)
			if err != nil {
				return row, nil, err
			}
			r.Config = string(raw)
		}
		items = append(items, r)
	}
	return row, items, nil
}

// bare tells whether an item is no more than its type and its name.
func bare(it model.Item) bool {
	switch it.Type() {
	case model.ToolRefItem:
		return it.ToolRef.Overrides == nil
	case model.IncludeItem:
		return it.Include.Overrides == nil
	}
	return it.Type() == model.AgentSourceItem
}

// skill puts rows together again. A row that is not what rows wrote is an error:
// nothing is dropped silently.
func (row skillRow) skill(items []itemRow) (*Skill, error) {
	s := &Skill{Namespace: row.Namespace, ShortName: row.ShortName}
	s.Name, s.Description, s.Version, s.Items = row.Name, row.Description, row.Version, []model.Item{}
	var err error
	if s.CreatedAt, err = time.Parse(isoTime, row.CreatedAt); err != nil {
		return nil, err
	}
	if s.UpdatedAt, err = time.Parse(isoTime, row.UpdatedAt); err != nil {
		return nil, err
	}
	if row.Metadata != "" {
		var m metadata
		if err := json.Unmarshal([]byte(row.Metadata), &m); err != nil {
			return nil, fmt.Errorf("metadata_json: %w", err)
		}
		s.Overrides = m.Overrides
	}
	for i, r := range items {
		it, err := r.item()
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		if r.SkillName != row.Name || r.Order != uint32(i) || it.Type() != r.Type || it.Name() != r.Name {
			return nil, fmt.Errorf("item %d does not belong there", i)
		}
		s.Items = append(s.Items, it)
	}
	return s, nil
}

func (r itemRow) item() (it model.Item, err error) {
	if r.Config != "" {
		err := json.Unmarshal([]byte(r.Config), &it)
		return it, err
	}
	switch r.Type {
	case model.ToolRefItem:
		it.ToolRef = &model.ToolRef{Name: r.Name}
	case model.IncludeItem:
		it.Include = &model.Include{Name: r.Name}
	case model.AgentSourceItem:
		it.AgentSource = &model.AgentSource{Path: r.Name}
	default:
		return it, fmt.Errorf("a %s has no item_config", r.Type)
	}
	return it, nil
}

// itemsOf is the beginning of the keys of a skill's items. Names hold no zero
// byte, so that foo and foobar stay apart.
func itemsOf(name string) []byte { return append([]byte(name), 0) }

// storeSkill writes a skill in place of what is there under its name.
func storeSkill(b *bolt.Bucket, s *Skill) error {
	if err := dropItems(b, s.Name); err != nil {
		return err
	}
	table := b.Bucket(bucketItems)
	row, items, err := s.rows(table.NextSequence)
	if err != nil {
		return err
	}
	for _, it := range items {
		if err := put(table, binary.BigEndian.AppendUint32(itemsOf(s.Name), it.Order), it); err != nil {
			return err
		}
	}
	return put(b.Bucket(bucketSkills), []byte(s.Name), row)
}

// dropSkill removes a skill and its items.
func dropSkill(b *bolt.Bucket, name string) error {
	if err := dropItems(b, name); err != nil {
		return err
	}
	return b.Bucket(bucketSkills).Delete([]byte(name))
}

func dropItems(b *bolt.Bucket, name string) error {
	return dropPrefix(b.Bucket(bucketItems), itemsOf(name))
}

func dropPrefix(table *bolt.Bucket, prefix []byte) error {
	var found [][]byte // collected first: a cursor may pass over a key while others are deleted
	c := table.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		found = append(found, bytes.Clone(k))
	}
	for _, k := range found {
		if err := table.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// setAside moves the rows of a skill that cannot be read out of the tables. What was set aside under its name before stays.
func setAside(b *bolt.Bucket, name string) error {
	aside := b.Bucket(bucketAside)
	n, err := aside.NextSequence()
	if err != nil {
		return err
	}
	move := func(table, key, raw []byte) error {
		return aside.Put(binary.BigEndian.AppendUint64(bytes.Join([][]byte{[]byte(name), table, key, {}}, []byte{0}), n), raw)
	}
	if err := move(bucketSkills, []byte(name), b.Bucket(bucketSkills).Get([]byte(name))); err != nil {
		return err
	}
	prefix, c := itemsOf(name), b.Bucket(bucketItems).Cursor()
	for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		if err := move(bucketItems, k, raw); err != nil {
			return err
		}
	}
	return dropSkill(b, name)
}

// asideNames are the skills that rows were set aside of.
func asideNames(b *bolt.Bucket) map[string]bool {
	names := map[string]bool{}
	c := b.Bucket(bucketAside).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		name, _, _ := bytes.Cut(k, []byte{0})
		names[string(name)] = true
	}
	return names
}

// forgetAside removes what was set aside of a skill.
func forgetAside(b *bolt.Bucket, name string) error {
	return dropPrefix(b.Bucket(bucketAside), itemsOf(name))
}

func put(b *bolt.Bucket, key []byte, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, raw)
}

// loadSkills reads all skills. Those that cannot be read are set aside, with all their rows: a registry that forgets skills is worse
// than one without them, and one that does not open takes those that can be read from everybody. It gives their names and why.
func loadSkills(b *bolt.Bucket) (all map[string]*Skill, damaged map[string]error, err error) {
	all, damaged = map[string]*Skill{}, map[string]error{}
	err = b.Bucket(bucketSkills).ForEach(func(k, raw []byte) error {
		if s, err := loadSkill(b, k, raw); err != nil {
			damaged[string(k)] = err
		} else {
			all[s.Name] = s
		}
		return nil
	})
	for name := range damaged {
		err = errors.Join(err, setAside(b, name))
	}
	return all, damaged, err
}

func loadSkill(b *bolt.Bucket, key, raw []byte) (*Skill, error) {
	var row skillRow
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, err
	}
	if row.Name != string(key) {
		return nil, fmt.Errorf("its name is %.255q", row.Name)
	}
	items, err := loadItems(b.Bucket(bucketItems), row.Name)
	if err != nil {
		return nil, err
	}
	return row.skill(items)
}

func loadItems(table *bolt.Bucket, name string) ([]itemRow, error) {
	prefix := itemsOf(name)
	var items []itemRow
	c := table.Cursor()
	for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		var r itemRow
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, err
		}
		items = append(items, r)
	}
	return items, nil
}
