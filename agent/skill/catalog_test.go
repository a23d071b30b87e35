package skill_test

import (
	"testing"

	"phonerack/agent/skill"
)

// TestAFlowThatCouldNotBeReadIsLookedAtAgain: once its bytes were fetched anew it is in lists what it is.
func TestAFlowThatCouldNotBeReadIsLookedAtAgain(t *testing.T) {
	k := flow("buy", "all", "type")
	b := newBench(t, k)
	clear(b.source.skills)
	v := b.c.For(skill.Caller{Agent: skill.ForTasks})
	if rows, _ := v.List("", 10); len(rows) != 1 || rows[0].Unavailable == "" {
		t.Fatalf("without its bytes: %+v", rows)
	}
	b.source.put(t, k) // the same bytes in another list
	b.c.Changed()
	if rows, _ := v.List("", 10); len(rows) != 1 || rows[0].Unavailable != "" {
		t.Errorf("with its bytes: %+v", rows)
	}
	if _, unavailable := v.Count(); unavailable != 0 {
		t.Errorf("%d are counted as unavailable", unavailable)
	}
}
