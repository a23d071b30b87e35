package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Row is what a list knows of a catalog skill: its entry, and all of it but the body.
type Row struct {
	Entry
	Name         string    `json:"name"`
	Description  string    `json:"description"`
	Tags         []string  `json:"tags,omitempty"`
	Aliases      []string  `json:"aliases,omitempty"`
	Subscription string    `json:"subscription_id,omitempty"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
}

// RowOf is the row of a skill that e stands for.
func RowOf(e Entry, s *Skill) Row {
	return Row{Entry: e, Name: s.Name, Description: s.Description, Tags: s.Tags, Aliases: s.Aliases, Subscription: s.Subscription, UpdatedAt: s.UpdatedAt}
}

// Copy is a rack's copy of its catalog at one moment. It does not change.
type Copy struct {
	Epoch, Version int64
	Rows           []Row // by id
	Subscriptions  []SubscriptionState
	// Hidden and Closed are skills and subscriptions that are known to be gone,
	// although the list does not say so yet. All hides every skill.
	Hidden, Closed map[string]bool
	All            bool
}

// Row finds a row by the id of its skill.
func (c *Copy) Row(id string) (Row, bool) {
	i, found := slices.BinarySearchFunc(c.Rows, id, func(r Row, id string) int { return strings.Compare(r.ID, id) })
	if !found {
		return Row{}, false
	}
	return c.Rows[i], true
}

// Entitled reports whether somebody who asks as one of agents has the skill of a
// row: its subscription is active and for one of them, and nothing says that it is
// gone. It is the one rule about who sees what.
func (c *Copy) Entitled(r Row, agents ...string) bool {
	if c.All || c.Hidden[r.ID] || c.Closed[r.Subscription] {
		return false
	}
	i, found := slices.BinarySearchFunc(c.Subscriptions, r.Subscription, func(s SubscriptionState, id string) int { return strings.Compare(s.ID, id) })
	if !found || c.Subscriptions[i].State != Active {
		return false
	}
	of := c.Subscriptions[i].Agents
	return len(of) == 0 || slices.ContainsFunc(agents, func(a string) bool { return slices.Contains(of, a) })
}

// Fingerprint changes with what the copy shows to anybody, and with nothing else:
// the version of a catalog may change without it.
func (c *Copy) Fingerprint() string {
	h := sha256.New()
	for _, r := range c.Rows {
		if !c.All && !c.Hidden[r.ID] && !c.Closed[r.Subscription] {
			fmt.Fprintf(h, "%s %s\n", r.ID, r.SHA256)
		}
	}
	for _, s := range c.Subscriptions {
		fmt.Fprintf(h, "%s %s %v\n", s.ID, s.State, s.Agents)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
