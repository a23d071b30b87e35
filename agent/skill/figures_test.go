package skill_test

import (
	"fmt"
	"strings"
	"testing"

	"phonerack/agent/skill"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
)

// large is a copy of 2,500 skills, a fifth of them flow templates.
func large(b *testing.B) *source {
	b.Helper()
	s := &source{skills: map[string]*model.Skill{}}
	s.copy.Subscriptions = []model.SubscriptionState{{ID: "social", State: model.Active}}
	rows := make([]model.Row, 0, 2500)
	for i := range 2500 {
		id := fmt.Sprintf("skill-%04d", i)
		k := knowledge(id, "social")
		if i%5 == 0 {
			k = flow(id, "social", "type")
		}
		k.Description = strings.Repeat("what it is for ", 8)
		raw, err := k.Encode()
		if err != nil {
			b.Fatal(err)
		}
		e := model.EntryOf(k, raw)
		s.skills[e.SHA256] = k
		rows = append(rows, model.RowOf(e, k))
	}
	s.copy.Rows = rows
	return s
}

func typing(b *testing.B) tools {
	x := tools{&registry.Tools{}}
	x.add(b, "type")
	return x
}

func page(b *testing.B, v *skill.View, after string) (last string, more bool) {
	rows, more := v.List(after, model.MaxPage)
	if len(rows) != model.MaxPage {
		b.Fatalf("%d rows after %q", len(rows), after)
	}
	return rows[len(rows)-1].ID, more
}

// BenchmarkFirstAnswer2500 is what the first question costs when there is a new copy: the index, and the check of each
// flow template.
func BenchmarkFirstAnswer2500(b *testing.B) {
	s, known := large(b), typing(b)
	for b.Loop() {
		page(b, skill.New(skill.Options{Source: s, Tools: known.find}).For(skill.Caller{Agent: skill.ForTasks}), "")
	}
}

// BenchmarkListPaged2500 is a page of 50 rows.
func BenchmarkListPaged2500(b *testing.B) {
	v := skill.New(skill.Options{Source: large(b), Tools: typing(b).find}).For(skill.Caller{Agent: skill.ForTasks})
	page(b, v, "")
	for after, more := "", true; b.Loop(); {
		if after, more = page(b, v, after); !more {
			after = ""
		}
	}
}
