package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// PlanRequest claims the right to ask the provider for one decision.
type PlanRequest struct {
	Host     string
	ID       string
	Ref                    // zero for a request outside a task
	BodyHash [32]byte      // SHA-256 of the request's body
	Owner    string        // this replica's process, unique per start
	Lease    time.Duration // longer than the provider call can take
	// Active, if it is set, is told the tenant's active profile as it is when the request is claimed, nil for none, and gives
	// the Lease. It is called within the transaction, which waits for it, and again if that has to be run again.
	Active func(*Profile) time.Duration
}

// Standing is what Begin found.
type Standing int

// Standings. With Fresh and TakenOver the caller owns the request and must end it by Finish or Fail.
const (
	Fresh     Standing = iota + 1 // nobody has asked before
	TakenOver                     // the owner before ran out of time: its call may have been billed
	Answered                      // Decision or Failure holds the answer
	InFlight                      // another call is under way until Until
)

// Begun is the answer of Begin.
type Begun struct {
	Standing Standing
	Decision *Decision       // Answered, one of the two
	Failure  json.RawMessage // Answered, one of the two: a wire refusal
	Until    time.Time       // InFlight
}

// Decision is a row of the planner's log. A decision outside a task has only Tool and Arguments, kept for an hour.
type Decision struct {
	Ref
	Step         int // from 0, without gaps
	Host         string
	RequestID    string
	SystemPrompt string
	UserPrompt   string
	Tool         string
	Arguments    json.RawMessage
	TokensIn     int64
	TokensOut    int64
	Profile      string
	At           time.Time
}

// Finish ends an owned request with a decision.
type Finish struct {
	Host         string
	RequestID    string
	Owner        string
	SystemPrompt string // dropped outside a task
	UserPrompt   string
	Tool         string
	Arguments    json.RawMessage
	TokensIn     int64
	TokensOut    int64
	Profile      string
	Reservation  Reservation // settled with it; the zero one if there is none
}

// Failure ends an owned request with a failure.
type Failure struct {
	Host        string
	RequestID   string
	Owner       string
	Refusal     json.RawMessage // as the wire has it
	TokensIn    int64           // failures may cost too
	TokensOut   int64
	Reservation Reservation // settled with it; the zero one if no call was made
}

const maxOwnership = time.Hour

func (r *PlanRequest) check() error {
	err := check(textOK("request id", r.ID, 1, maxName), textOK("owner", r.Owner, 1, maxName))
	if r.Active == nil {
		err = check(err, leaseInRange(r.Lease))
	}
	if err == nil && (r.Task == "") != (r.Attempt == 0) {
		err = invalid("task and attempt are there or absent together")
	}
	return err
}

func leaseInRange(d time.Duration) error {
	return inRange("ownership in ms", d.Milliseconds(), 1, maxOwnership.Milliseconds())
}

// planRow is a row of plan_requests.
type planRow struct {
	Ref
	hash      []byte
	owner     string
	until     time.Time
	state     string
	step      int
	tool      string
	arguments json.RawMessage
	failure   json.RawMessage
	created   time.Time
}

func (t *tx) lockRequest(host, id string) (p planRow, err error) {
	err = t.row(`SELECT task, attempt, body_hash, owner, owner_until, state, step, tool, arguments, failure, created FROM plan_requests
		WHERE host = ? AND id = ? AND tenant = ? FOR UPDATE`, host, id, t.sc.Tenant).
		Scan(&p.Task, &p.Attempt, &p.hash, &p.owner, timeIn{&p.until}, &p.state, &p.step, &p.tool, jsonIn{&p.arguments}, jsonIn{&p.failure},
			timeIn{&p.created})
	return p, err
}

// Begin claims a request, before the provider is called. SQLite does not sync what it stores by itself, as nothing is answered
// from it: who loses it with the power lost the call as well, and the same request asks anew. ErrRequestConflict: same id, other body. ErrNotYourTask,
// ErrAttemptOver, ErrRevoked: nothing was stored.
func (s *Store) Begin(ctx context.Context, sc Scope, r PlanRequest) (b Begun, err error) {
	if err = check(sc.check(), r.check()); err != nil {
		return Begun{}, err
	}
	err = s.commit(ctx, sc, unsynced, func(t *tx) error {
		if err := t.mayAsk(r.Host); err != nil {
			return err
		}
		if err := t.leaseOf(&r); err != nil {
			return err
		}
		until := t.now + r.Lease.Milliseconds()
		n, err := t.exec(`INSERT INTO plan_requests (host, id, tenant, task, attempt, body_hash, owner, owner_until, state, step, tool, arguments,
			failure, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', 0, '', '', '', ?) ON CONFLICT (host, id) DO NOTHING`,
			r.Host, r.ID, sc.Tenant, r.Task, r.Attempt, r.BodyHash[:], r.Owner, until, t.now)
		if err != nil {
			return err
		}
		if n == 1 {
			b = Begun{Standing: Fresh}
			return t.mayPlan(r)
		}
		p, err := t.lockRequest(r.Host, r.ID)
		if err != nil {
			return err
		}
		if !bytes.Equal(p.hash, r.BodyHash[:]) || p.Ref != r.Ref {
			return fmt.Errorf("%w: request %q", ErrRequestConflict, r.ID)
		}
		if b, err = t.standing(r, p); b.Standing != TakenOver || err != nil {
			return err
		}
		if err = t.mayPlan(r); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE plan_requests SET owner = ?, owner_until = ? WHERE host = ? AND id = ?`, r.Owner, until, r.Host, r.ID)
		return err
	})
	return b, err
}

// mayAsk refuses a rack that was revoked after its request was let in.
func (t *tx) mayAsk(host string) error {
	var revoked time.Time
	err := t.row(`SELECT revoked FROM hosts WHERE id = ? AND tenant = ?`, host, t.sc.Tenant).Scan(timeIn{&revoked})
	if err == nil && !revoked.IsZero() {
		err = fmt.Errorf("rack %s: %w", host, ErrRevoked)
	}
	return err
}

// leaseOf asks r.Active.
func (t *tx) leaseOf(r *PlanRequest) error {
	if r.Active == nil {
		return nil
	}
	p, err := t.activeProfile()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		r.Lease = r.Active(nil)
	case err != nil:
		return err
	default:
		r.Lease = r.Active(&p)
	}
	return leaseInRange(r.Lease)
}

// mayPlan refuses a request for a task that is not this rack's live lease, and notes that the attempt runs.
func (t *tx) mayPlan(r PlanRequest) error {
	if r.Task == "" || t.runs(r) {
		return nil
	}
	task, a, err := t.lockLive(r.Host, r.Ref)
	if err != nil {
		return err
	}
	return t.running(task, a)
}

// runs tells whether the attempt is running and live, as in every turn but the first. Nothing of it is changed, so nothing
// is locked: a request of an attempt that ends meanwhile gets its answer refused.
func (t *tx) runs(r PlanRequest) bool {
	a := Attempt{State: Running}
	err := t.row(`SELECT until FROM attempts WHERE task = ? AND attempt = ? AND host = ? AND tenant = ? AND state = ?`,
		r.Task, r.Attempt, r.Host, t.sc.Tenant, Running).Scan(timeIn{&a.Until})
	return err == nil && !t.over(a)
}

// standing tells where a known request stands.
func (t *tx) standing(r PlanRequest, p planRow) (Begun, error) {
	switch {
	case p.state == "failure":
		return Begun{Standing: Answered, Failure: p.failure}, nil
	case p.state == "decision" && p.Task == "":
		d := Decision{Host: r.Host, RequestID: r.ID, Tool: p.tool, Arguments: p.arguments, At: p.created}
		return Begun{Standing: Answered, Decision: &d}, nil
	case p.state == "decision":
		d, err := scanDecision(t.row(`SELECT `+decisionColumns+` FROM decisions WHERE task = ? AND attempt = ? AND step = ?`, p.Task, p.Attempt, p.step))
		return Begun{Standing: Answered, Decision: &d}, err
	case ms(p.until) > t.now:
		return Begun{Standing: InFlight, Until: p.until}, nil
	}
	return Begun{Standing: TakenOver}, nil
}

// own ends an open request of this owner and gives its row as it was.
func (t *tx) own(host, id, owner string) (planRow, error) {
	p, err := t.lockRequest(host, id)
	if err == nil && (p.state != "open" || p.owner != owner) {
		err = fmt.Errorf("request %q: %w", id, ErrNotOwner)
	}
	return p, err
}

// Finish stores a decision, gives it its step, answers the request and settles its reservation, all in one transaction.
// ErrNotOwner, ErrAttemptOver, ErrRevoked: nothing was stored.
func (s *Store) Finish(ctx context.Context, sc Scope, f Finish) (d Decision, err error) {
	err = check(sc.check(), textOK("tool", f.Tool, 1, maxName), jsonOK("arguments", f.Arguments),
		inRange("tokens", f.TokensIn, 0, maxTokens), inRange("tokens", f.TokensOut, 0, maxTokens),
		textOK("system prompt", text(f.SystemPrompt), 0, maxText), textOK("user prompt", text(f.UserPrompt), 0, maxText))
	if err != nil {
		return Decision{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		p, err := t.own(f.Host, f.RequestID, f.Owner)
		if err != nil {
			return err
		}
		if err = t.mayAsk(f.Host); err != nil {
			return err
		}
		d = Decision{
			Ref: p.Ref, Host: f.Host, RequestID: f.RequestID, Tool: f.Tool, Arguments: f.Arguments,
			TokensIn: f.TokensIn, TokensOut: f.TokensOut, Profile: f.Profile, At: fromMS(t.now),
		}
		if err = t.settle(f.Reservation, Spent{Host: f.Host, Task: p.Task, TokensIn: f.TokensIn, TokensOut: f.TokensOut}); err != nil {
			return err
		}
		if p.Task == "" {
			_, err = t.exec(`UPDATE plan_requests SET state = 'decision', tool = ?, arguments = ? WHERE host = ? AND id = ?`,
				f.Tool, string(f.Arguments), f.Host, f.RequestID)
			return err
		}
		d.SystemPrompt, d.UserPrompt = text(f.SystemPrompt), text(f.UserPrompt)
		return t.addDecision(&d)
	})
	return d, err
}

// addDecision takes the step from the attempt's counter row, so that steps have no gaps however many replicas write: a
// transaction that fails gives its step back. A terminal attempt gets none, or its late rows would never be pruned.
func (t *tx) addDecision(d *Decision) error {
	err := t.row(`UPDATE attempts SET next_step = next_step + 1 WHERE task = ? AND attempt = ? AND host = ? AND `+liveAttempt+
		` RETURNING next_step - 1`, d.Task, d.Attempt, d.Host).Scan(&d.Step)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("attempt %s: %w", d.Ref, ErrAttemptOver)
	}
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO decisions (`+decisionColumns+`, tenant) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.Task, d.Attempt, d.Step, d.Host, d.RequestID, d.SystemPrompt, d.UserPrompt, d.Tool, string(d.Arguments), d.TokensIn, d.TokensOut,
		d.Profile, t.now, t.sc.Tenant)
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE plan_requests SET state = 'decision', step = ? WHERE host = ? AND id = ?`, d.Step, d.Host, d.RequestID)
	if err != nil {
		return err
	}
	return t.audit("plan.decide", d.Ref.String(), map[string]any{"request": d.RequestID, "step": d.Step, "tool": d.Tool})
}

// Fail answers an owned request with a failure and settles its reservation, in one transaction; no decision row comes of
// it.
func (s *Store) Fail(ctx context.Context, sc Scope, f Failure) error {
	err := check(sc.check(), jsonOK("failure", f.Refusal), inRange("size of the failure", int64(len(f.Refusal)), 1, maxJSON),
		inRange("tokens", f.TokensIn, 0, maxTokens), inRange("tokens", f.TokensOut, 0, maxTokens))
	if err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		p, err := t.own(f.Host, f.RequestID, f.Owner)
		if err != nil {
			return err
		}
		if err = t.settle(f.Reservation, Spent{Host: f.Host, Task: p.Task, TokensIn: f.TokensIn, TokensOut: f.TokensOut}); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE plan_requests SET state = 'failure', failure = ? WHERE host = ? AND id = ?`, string(f.Refusal), f.Host, f.RequestID)
		if err != nil || p.Task == "" {
			return err
		}
		return t.audit("plan.fail", p.Ref.String(), map[string]any{"request": f.RequestID})
	})
}

const decisionColumns = `task, attempt, step, host, request_id, system_prompt, user_prompt, tool, arguments, tokens_in, tokens_out, profile, at`

func scanDecision(r scanner) (Decision, error) {
	var d Decision
	err := r.Scan(&d.Task, &d.Attempt, &d.Step, &d.Host, &d.RequestID, &d.SystemPrompt, &d.UserPrompt, &d.Tool, jsonIn{&d.Arguments},
		&d.TokensIn, &d.TokensOut, &d.Profile, timeIn{&d.At})
	return d, err
}

// Decisions lists the decisions of a task by attempt and step; attempt 0 lists all attempts.
func (s *Store) Decisions(ctx context.Context, sc Scope, task string, attempt int, p Page) (all []Decision, next string, err error) {
	size, err := p.size()
	from := Ref{Attempt: -1}
	step := -1
	if err == nil && p.After != "" {
		if _, e := fmt.Sscanf(p.After, "%d.%d", &from.Attempt, &step); e != nil {
			err = invalid("page mark %.40q", p.After)
		}
	}
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if _, err := t.task(task); err != nil {
			return err
		}
		all, err = list(t, scanDecision, `SELECT `+decisionColumns+` FROM decisions WHERE task = ? AND (? = 0 OR attempt = ?)
			AND (attempt, step) > (?, ?) ORDER BY attempt, step LIMIT ?`, task, attempt, attempt, from.Attempt, step, size+1)
		return err
	})
	all, next = cut(all, size, func(d Decision) string { return fmt.Sprintf("%d.%d", d.Attempt, d.Step) })
	return all, next, err
}
