package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Racks.

func (a *Admin) hosts(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]fleet.Host, string, error) { return a.fleet.Hosts(r.Context(), op, p) })
}

func (a *Admin) host(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Host(r.Context(), op, r.PathValue("host")))
}

// label is a rack's name and tags.
type label struct {
	Name string   `json:"name,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

// enrol answers with the bundle, which is nowhere else.
func (a *Admin) enrol(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[label](r)
	if err != nil {
		return 0, nil, err
	}
	bundle, err := a.office.Enrol(r.Context(), op.Scope(), b.Name, b.Tags)
	return http.StatusCreated, bundle, fleet.Refusal(err)
}

func (a *Admin) label(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[label](r)
	if err != nil {
		return 0, nil, err
	}
	if err := a.fleet.Label(r.Context(), op, r.PathValue("host"), b.Name, b.Tags); err != nil {
		return 0, nil, err
	}
	return a.host(r, op)
}

func (a *Admin) rotate(r *http.Request, op fleet.Operator) (int, any, error) {
	bundle, err := a.office.Rotate(r.Context(), op.Scope(), r.PathValue("host"))
	return http.StatusCreated, bundle, fleet.Named(err, "rack", r.PathValue("host"))
}

func (a *Admin) issue(r *http.Request, op fleet.Operator) (int, any, error) {
	bundle, err := a.office.Issue(r.Context(), op.Scope(), r.PathValue("host"))
	return http.StatusCreated, bundle, fleet.Named(err, "rack", r.PathValue("host"))
}

func (a *Admin) revoke(r *http.Request, op fleet.Operator) (int, any, error) {
	if err := a.office.Revoke(r.Context(), op.Scope(), r.PathValue("host")); err != nil {
		return 0, nil, fleet.Named(err, "rack", r.PathValue("host"))
	}
	a.fleet.Revoked(r.Context(), op, r.PathValue("host"))
	return a.host(r, op)
}

func (a *Admin) configuration(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Configuration(r.Context(), op, r.PathValue("host")))
}

func (a *Admin) configure(r *http.Request, op fleet.Operator) (int, any, error) {
	n, err := read[fleet.NewSettings](r)
	if err != nil {
		return 0, nil, err
	}
	return one(a.fleet.Configure(r.Context(), op, r.PathValue("host"), n))
}

// Tasks.

func (a *Admin) tasks(r *http.Request, op fleet.Operator) (int, any, error) {
	q := r.URL.Query()
	return paged(r, func(p store.Page) ([]fleet.Task, string, error) {
		return a.fleet.Tasks(r.Context(), op, q.Get("rack"), q["state"], p)
	})
}

func (a *Admin) submit(r *http.Request, op fleet.Operator) (int, any, error) {
	n, err := read[fleet.NewTask](r)
	if err != nil {
		return 0, nil, err
	}
	t, created, err := a.fleet.Submit(r.Context(), op, n)
	if created {
		return http.StatusCreated, t, err
	}
	return http.StatusOK, t, err
}

func (a *Admin) task(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Task(r.Context(), op, r.PathValue("task")))
}

func (a *Admin) cancel(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Cancel(r.Context(), op, r.PathValue("task")))
}

func (a *Admin) requeue(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Requeue(r.Context(), op, r.PathValue("task")))
}

func (a *Admin) answer(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[struct {
		QuestionID string `json:"question_id,omitempty"`
		Text       string `json:"text"`
	}](r)
	if err != nil {
		return 0, nil, err
	}
	return one(a.fleet.Answer(r.Context(), op, r.PathValue("task"), b.QuestionID, b.Text))
}

func (a *Admin) decisions(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(listDecisions(r, a.store, op.Scope(), r.PathValue("task"), func(store.Decision) bool { return true }))
}

// putFile takes a file as it is.
func (a *Admin) putFile(r *http.Request, op fleet.Operator) (int, any, error) {
	raw, err := readOctets(r, wire.MaxInput)
	if err != nil {
		return 0, nil, err
	}
	f, err := a.fleet.PutFile(r.Context(), op, raw)
	return http.StatusCreated, f, err
}

// Commands.

func (a *Admin) commands(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]fleet.Command, string, error) {
		return a.fleet.Commands(r.Context(), op, r.URL.Query().Get("rack"), p)
	})
}

func (a *Admin) send(r *http.Request, op fleet.Operator) (int, any, error) {
	n, err := read[fleet.NewCommand](r)
	if err != nil {
		return 0, nil, err
	}
	c, err := a.fleet.Send(r.Context(), op, n)
	return http.StatusCreated, c, err
}

func (a *Admin) command(r *http.Request, op fleet.Operator) (int, any, error) {
	return one(a.fleet.Command(r.Context(), op, r.PathValue("command")))
}

func (a *Admin) picture(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := a.fleet.Picture(r.Context(), op, r.PathValue("command"))
	return http.StatusOK, jpeg(b), err
}

// Provider profiles.

// NewProvider is a profile as an operator adds it. Key may be empty for a provider without one.
type NewProvider struct {
	Name      string          `json:"name"`
	Provider  string          `json:"provider"`
	Model     string          `json:"model,omitempty"`
	BaseURL   string          `json:"base_url,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"`
	PerMinute int64           `json:"requests_per_minute,omitempty"`
	PerDay    int64           `json:"tokens_per_day,omitempty"`
	PriceIn   int64           `json:"price_in,omitempty"`
	PriceOut  int64           `json:"price_out,omitempty"`
	Key       string          `json:"key,omitempty"`
}

// Provider is a profile as it is shown: without its key.
type Provider struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Provider   string          `json:"provider"`
	Model      string          `json:"model,omitempty"`
	BaseURL    string          `json:"base_url,omitempty"`
	TimeoutMS  int64           `json:"timeout_ms"`
	Options    json.RawMessage `json:"options,omitempty"`
	PerMinute  int64           `json:"requests_per_minute,omitempty"`
	PerDay     int64           `json:"tokens_per_day,omitempty"`
	PriceIn    int64           `json:"price_in,omitempty"`
	PriceOut   int64           `json:"price_out,omitempty"`
	Active     bool            `json:"active"`
	KeyVersion int             `json:"key_version"`
	// State says whether the key can be decrypted: ok, none or undecryptable.
	State   string `json:"key_state"`
	Created int64  `json:"created"`
}

func (a *Admin) listProviders(r *http.Request, op fleet.Operator) (int, any, error) {
	all, err := a.providers.List(r.Context(), op.Scope())
	if all == nil {
		all = []Provider{}
	}
	return http.StatusOK, page[Provider]{Items: all}, fleet.Refusal(err)
}

func (a *Admin) addProvider(r *http.Request, op fleet.Operator) (int, any, error) {
	n, err := read[NewProvider](r)
	if err != nil {
		return 0, nil, err
	}
	p, err := a.providers.Add(r.Context(), op.Scope(), n)
	if errors.Is(err, store.ErrConflict) {
		err = wire.Refuse(wire.Conflict, map[string]any{"reason": fmt.Sprintf("there is a provider profile %q already", n.Name)}).Because(err)
	}
	return http.StatusCreated, p, fleet.Refusal(err)
}

func (a *Admin) activateProvider(r *http.Request, op fleet.Operator) (int, any, error) {
	p, err := a.providers.Activate(r.Context(), op.Scope(), r.PathValue("name"))
	return http.StatusOK, p, fleet.Named(err, "provider profile", r.PathValue("name"))
}

func (a *Admin) rotateProvider(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[struct {
		Key string `json:"key"`
	}](r)
	if err != nil {
		return 0, nil, err
	}
	p, err := a.providers.Rotate(r.Context(), op.Scope(), r.PathValue("name"), b.Key)
	return http.StatusOK, p, fleet.Named(err, "provider profile", r.PathValue("name"))
}

// The rest.

// Usage is a row of the accounts.
type Usage struct {
	Day       string `json:"day"`
	Rack      string `json:"rack_id"`
	TaskID    string `json:"task_id,omitempty"`
	Profile   string `json:"profile"`
	Requests  int64  `json:"requests"`
	TokensIn  int64  `json:"tokens_in"`
	TokensOut int64  `json:"tokens_out"`
	Cost      int64  `json:"cost"` // millionths of the currency
}

func (a *Admin) usage(r *http.Request, op fleet.Operator) (int, any, error) {
	v := r.URL.Query()
	for _, day := range []string{v.Get("from"), v.Get("to")} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return 0, nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("%.40q is no day such as 2026-11-01", day)})
		}
	}
	q := store.UsageQuery{From: v.Get("from"), To: v.Get("to"), Host: v.Get("rack"), Task: v.Get("task"), Profile: v.Get("profile")}
	return paged(r, func(p store.Page) ([]Usage, string, error) {
		all, next, err := a.store.Usage(r.Context(), op.Scope(), q, p)
		out := []Usage{}
		for _, u := range all {
			out = append(out, Usage{u.Day, u.Host, u.Task, u.Profile, u.Requests, u.TokensIn, u.TokensOut, u.Cost})
		}
		return out, next, fleet.Refusal(err)
	})
}

func (a *Admin) events(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]fleet.Event, string, error) {
		return a.fleet.Events(r.Context(), op, r.URL.Query().Get("rack"), p)
	})
}

func (a *Admin) audits(r *http.Request, op fleet.Operator) (int, any, error) {
	return paged(r, func(p store.Page) ([]fleet.Audit, string, error) { return a.fleet.Audits(r.Context(), op, p) })
}

// backupFile names the copy that a backup writes, on the machine of rackcloud.
type backupFile struct {
	Path string `json:"path"`
}

func (a *Admin) saveBackup(r *http.Request, op fleet.Operator) (int, any, error) {
	b, err := read[backupFile](r)
	if err != nil {
		return 0, nil, err
	}
	if !filepath.IsAbs(b.Path) {
		return 0, nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the path of the copy is not absolute"})
	}
	if err := a.backup(r.Context(), b.Path); err != nil {
		return 0, nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	return http.StatusCreated, b, nil
}
