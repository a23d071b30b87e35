package api

import (
	"encoding/json"
	"net/http"

	"phonerack/agent/skill/model"
	"phonerack/cloud/catalog"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// maxSkillBody bounds a draft as JSON: each byte of it may be escaped.
const maxSkillBody = 6*model.MaxSkillBytes + 4096

// skillOperations are what operators do with skills, subscriptions and signing keys.
func (a *Admin) skillOperations() map[string]operation {
	return map[string]operation{
		"GET /v1/admin/skills":                                a.listSkills,
		"POST /v1/admin/skills":                               a.publishSkill,
		"GET /v1/admin/skills/{skill}":                        a.skill,
		"POST /v1/admin/skills/{skill}/remove":                a.removeSkill,
		"GET /v1/admin/subscriptions":                         a.subscriptions,
		"POST /v1/admin/subscriptions":                        a.createSubscription,
		"GET /v1/admin/subscriptions/{subscription}":          a.subscription,
		"PATCH /v1/admin/subscriptions/{subscription}":        a.setSubscription,
		"POST /v1/admin/subscriptions/{subscription}/grants":  a.grant,
		"POST /v1/admin/subscriptions/{subscription}/revokes": a.endGrant,
		"GET /v1/admin/hosts/{host}/skills":                   a.rackSkills,
		"GET /v1/admin/skill-keys":                            a.skillKeys,
		"POST /v1/admin/skill-keys":                           a.addSkillKey,
		"POST /v1/admin/skill-keys/{key}/activate":            a.activateSkillKey,
		"POST /v1/admin/skill-keys/{key}/drop":                a.dropSkillKey,
	}
}

// PublishedSkill is a skill with its canonical JSON.
type PublishedSkill struct {
	catalog.Skill
	Body json.RawMessage `json:"body"`
}

// NewSubscription is a subscription as an operator makes it.
type NewSubscription struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// SubscriptionState opens or closes a subscription.
type SubscriptionState struct {
	Active bool `json:"active"`
}

func (a *Admin) listSkills(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]catalog.Skill, string, error) {
		return a.skills.Skills(r.Context(), op, r.URL.Query().Get("subscription"), p)
	})
}

func (a *Admin) publishSkill(r *http.Request, op fleet.Operator) (int, any, error) {
	raw, _, err := readBody(nil, r, maxSkillBody)
	if err != nil {
		return 0, nil, err
	}
	var n catalog.NewSkill
	if err := wire.Unmarshal(raw, &n); err != nil {
		return 0, nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	s, err := a.skills.Publish(r.Context(), op, n)
	if s.Unchanged {
		return http.StatusOK, s, err
	}
	return http.StatusCreated, s, err
}

func (a *Admin) skill(r *http.Request, op fleet.Operator) (int, any, error) {
	s, body, err := a.skills.Skill(r.Context(), op, r.PathValue("skill"))
	return http.StatusOK, PublishedSkill{s, body}, err
}

func (a *Admin) removeSkill(r *http.Request, op fleet.Operator) (int, any, error) {
	return http.StatusOK, struct{}{}, a.skills.Remove(r.Context(), op, r.PathValue("skill"))
}

func (a *Admin) subscriptions(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]catalog.Subscription, string, error) {
		return a.skills.Subscriptions(r.Context(), op, p)
	})
}

func (a *Admin) createSubscription(r *http.Request, op fleet.Operator) (int, any, error) {
	n, err := read[NewSubscription](r)
	if err != nil {
		return 0, nil, err
	}
	s, err := a.skills.CreateSubscription(r.Context(), op, n.ID, n.Name)
	return http.StatusCreated, s, err
}

func (a *Admin) subscription(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.skills.Subscription(r.Context(), op, r.PathValue("subscription")))
}

func (a *Admin) setSubscription(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[SubscriptionState](r)
	if err == nil {
		err = a.skills.SetSubscription(r.Context(), op, r.PathValue("subscription"), b.Active)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.subscription(r, op)
}

func (a *Admin) grant(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[catalog.Grant](r)
	if err == nil {
		err = a.skills.Grant(r.Context(), op, r.PathValue("subscription"), b)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.subscription(r, op)
}

func (a *Admin) endGrant(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[catalog.Grant](r)
	if err == nil {
		err = a.skills.Revoke(r.Context(), op, r.PathValue("subscription"), b)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.subscription(r, op)
}

func (a *Admin) rackSkills(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.skills.Show(r.Context(), op, r.PathValue("host")))
}

func (a *Admin) skillKeys(r *http.Request, op fleet.Operator) (int, any, error) {
	all, err := a.skills.Keys(r.Context(), op)
	return http.StatusOK, page[catalog.Key]{Items: all}, err
}

func (a *Admin) addSkillKey(r *http.Request, op fleet.Operator) (int, any, error) {
	k, err := a.skills.AddKey(r.Context(), op)
	return http.StatusCreated, k, err
}

func (a *Admin) activateSkillKey(r *http.Request, op fleet.Operator) (int, any, error) {
	if err := a.skills.ActivateKey(r.Context(), op, r.PathValue("key")); err != nil {
		return 0, nil, err
	}
	return a.skillKeys(r, op)
}

func (a *Admin) dropSkillKey(r *http.Request, op fleet.Operator) (int, any, error) {
	if err := a.skills.DropKey(r.Context(), op, r.PathValue("key")); err != nil {
		return 0, nil, err
	}
	return a.skillKeys(r, op)
}
