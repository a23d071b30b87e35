package model

import "testing"

func TestAFingerprintChangesWithWhatIsShownAndWithNothingElse(t *testing.T) {
	of := func(edit func(*Copy)) string {
		c := &Copy{
			Epoch: 1, Version: 1, Rows: []Row{{Entry: Entry{ID: "a", SHA256: Sum([]byte("a"))}, Subscription: "s"}, {Entry: Entry{ID: "b", SHA256: Sum([]byte("b"))}, Subscription: "u"}},
			Subscriptions: []SubscriptionState{{ID: "s", State: Active}, {ID: "u", State: Active}},
		}
		edit(c)
		return c.Fingerprint()
	}
	first := of(func(*Copy) {})
	for name, edit := range map[string]func(*Copy){
		"a version": func(c *Copy) { c.Version++ }, "an epoch": func(c *Copy) { c.Epoch++ }, "a hide of what is not there": func(c *Copy) { c.Hidden = map[string]bool{"x": true} },
	} {
		if of(edit) != first {
			t.Errorf("%s changes it", name)
		}
	}
	for name, edit := range map[string]func(*Copy){
		"contents": func(c *Copy) { c.Rows[0].SHA256 = Sum(nil) }, "a skill less": func(c *Copy) { c.Rows = c.Rows[:1] },
		"a hidden skill": func(c *Copy) { c.Hidden = map[string]bool{"a": true} }, "a hidden subscription": func(c *Copy) { c.Closed = map[string]bool{"u": true} },
		"a revocation": func(c *Copy) { c.Subscriptions[1].State = Revoked }, "agents": func(c *Copy) { c.Subscriptions[1].Agents = []string{"mcp"} },
		"everything hidden": func(c *Copy) { c.All = true },
	} {
		if of(edit) == first {
			t.Errorf("%s does not change it", name)
		}
	}
}
