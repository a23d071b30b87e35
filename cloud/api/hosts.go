package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Bounds of requests over HTTP.
const (
	maxBody     = wire.MaxJSON
	maxPlanBody = wire.MaxJSON + wire.MaxFrame*4/3 + 4<<10 // the screen is base64
)

// Hosts serves racks and other hosts over HTTP: the calls of the table, under the bearer of the enrolment.
type Hosts struct {
	calls   *Calls
	office  *enroll.Office
	store   *store.Store
	metrics *Metrics
	clock   func() time.Time
	log     *slog.Logger
}

// routes of the host API. The rack of the path must be the bearer's.
func (h *Hosts) routes(mux *http.ServeMux) {
	for path, t := range map[string]wire.Type{
		"hello": wire.TypeHello, "heartbeat": wire.TypeHeartbeat, "claim": wire.TypeClaim, "renew": wire.TypeRenew, "release": wire.TypeRelease,
		"result": wire.TypeResult, "questions": wire.TypeQuestion, "commands/pending": wire.TypePending, "commands/status": wire.TypeCommandStatus,
		"events": wire.TypeEvent,
	} {
		mux.HandleFunc("POST /v1/hosts/{host}/"+path, h.call(t))
	}
	mux.HandleFunc("POST /v1/hosts/{host}/planner-decisions", h.planner)
	mux.HandleFunc("GET /v1/tasks/{task}/decisions", h.decisions)
}

// caller proves a request by its bearer.
func (h *Hosts) caller(r *http.Request) (enroll.Caller, error) {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return enroll.Caller{}, wire.Refuse(wire.Unauthenticated, nil)
	}
	c, err := h.office.Bearer(r.Context(), bearer)
	if err != nil {
		return enroll.Caller{}, wire.From(err)
	}
	if host := r.PathValue("host"); host != "" && host != c.Rack {
		return enroll.Caller{}, wire.Refuse(wire.HostMismatch, map[string]any{"host": host})
	}
	return c, nil
}

// call serves one type of the table.
func (h *Hosts) call(t wire.Type) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := h.caller(r)
		if err != nil {
			h.fail(w, t, err)
			return
		}
		body, status, err := readBody(w, r, maxBody)
		if err != nil {
			refuse(w, status, failure{Error: wire.From(err)})
			return
		}
		id := r.Header.Get("Idempotency-Key")
		if id == "" || len(id) > 80 {
			id = wire.NewID(h.clock())
		}
		start := h.clock()
		ctx, cancel := context.WithTimeout(r.Context(), callTime)
		defer cancel()
		a, err := h.calls.run(ctx, t, &request{caller: c, id: id, body: body})
		if err != nil {
			h.fail(w, t, err)
			return
		}
		h.metrics.call("http", t, a.t, h.clock().Sub(start))
		if none, ok := a.body.(*wire.NoTask); ok {
			w.Header().Set("Retry-After", strconv.FormatInt(max(1, none.RetryAfterMS/1000), 10))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		writeJSON(w, http.StatusOK, a.body)
	}
}

// planRequest is the body of planner-decisions. A timeout, model or key in it is ignored.
type planRequest struct {
	wire.PlanRequest
	Screen []byte `json:"screen,omitempty"` // JPEG, as base64
}

// planner asks for a decision. It takes as long as the profile allows, and is brought to its end even if the host hangs
// up: the answer may be paid for, and the same request can come again.
func (h *Hosts) planner(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err != nil {
		h.fail(w, wire.TypePlanRequest, err)
		return
	}
	raw, status, err := readBody(w, r, maxPlanBody)
	if err != nil {
		refuse(w, status, failure{Error: wire.From(err)})
		return
	}
	var b planRequest
	if err := wire.Unmarshal(raw, &b); err != nil {
		h.fail(w, wire.TypePlanRequest, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()}))
		return
	}
	start := h.clock()
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(planTime + callTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		h.log.Debug("the time for an answer was not prolonged", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), planTime)
	defer cancel()
	a, err := guarded(ctx, func(ctx context.Context, q *request) (answer, error) { return h.calls.plan(ctx, q, b.PlanRequest) },
		&request{caller: c, id: b.RequestID, picture: b.Screen})
	if err != nil {
		h.fail(w, wire.TypePlanRequest, err)
		return
	}
	h.metrics.call("http", wire.TypePlanRequest, a.t, h.clock().Sub(start))
	if f, ok := a.body.(wire.PlanFailure); ok {
		refuse(w, 0, failure{RequestID: f.RequestID, Error: f.Error})
		return
	}
	writeJSON(w, http.StatusOK, a.body)
}

func (h *Hosts) fail(w http.ResponseWriter, t wire.Type, err error) {
	r := wire.From(err)
	if r.Code == wire.Internal {
		h.log.Error("a call failed", "type", t, "error", errors.Unwrap(r))
	}
	h.metrics.call("http", t, wire.TypeError, 0)
	refuse(w, 0, failure{Error: r})
}

// readBody reads a bounded JSON body. The status is 0 if the refusal's own is meant.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, wire.Refuse(wire.BadRequest, map[string]any{"reason": "its content type is not application/json"})
	}
	raw, err := readAll(w, r, limit)
	return raw, 0, err
}

// readOctets reads a bounded body of any bytes.
func readOctets(r *http.Request, limit int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/octet-stream" {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": "its content type is not application/octet-stream"})
	}
	return readAll(nil, r, limit)
}

func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	// With room for what is announced, a screen is not copied each time that the buffer grows.
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), limit)+bytes.MinRead))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "body", "size": max(r.ContentLength, e.Limit+1), "limit": e.Limit})
	}
	if err != nil {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": "its body ended too early"}).Because(err)
	}
	return buf.Bytes(), nil
}

// Decision is a row of the planner's log.
type Decision struct {
	TaskID       string `json:"task_id"`
	Attempt      int    `json:"attempt"`
	StepIndex    int    `json:"step_index"`
	Rack         string `json:"rack_id"`
	RequestID    string `json:"request_id"`
	SystemPrompt string `json:"system_prompt"`
	UserPrompt   string `json:"user_prompt"`
	ToolName     string `json:"tool_name"`
	Arguments    any    `json:"arguments"`
	TokensIn     int64  `json:"tokens_in"`
	TokensOut    int64  `json:"tokens_out"`
	Profile      string `json:"profile"`
	At           int64  `json:"at"`
}

// page is a part of a list; Next is "after" of the following part.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// decisions lists the decisions of a task that this host has worked on: its own.
func (h *Hosts) decisions(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err != nil {
		h.fail(w, "decisions", err)
		return
	}
	task := r.PathValue("task")
	attempts, err := h.store.Attempts(r.Context(), c.Scope(), task)
	mine := map[int]bool{}
	for _, a := range attempts {
		if a.Host == c.Rack {
			mine[a.Attempt] = true
		}
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && len(mine) == 0 {
		err = wire.Refuse(wire.TaskUnknown, map[string]any{"task": task})
	}
	var p page[Decision]
	if err == nil {
		p, err = listDecisions(r, h.store, c.Scope(), task, func(d store.Decision) bool { return mine[d.Attempt] })
	}
	if err != nil {
		h.fail(w, "decisions", err)
		return
	}
	writeJSON(w, http.StatusOK, p)
}

// listDecisions serves ?attempt=&after=&limit= for hosts and operators.
func listDecisions(r *http.Request, s *store.Store, sc store.Scope, task string, keep func(store.Decision) bool) (page[Decision], error) {
	out := page[Decision]{Items: []Decision{}}
	part, err := pageOf(r)
	if err != nil {
		return out, err
	}
	attempt := 0
	if q := r.URL.Query().Get("attempt"); q != "" {
		if attempt, err = strconv.Atoi(q); err != nil || attempt < 1 {
			return out, wire.Refuse(wire.BadRequest, map[string]any{"reason": "attempt is no number from 1"})
		}
	}
	all, next, err := s.Decisions(r.Context(), sc, task, attempt, part)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return out, wire.Refuse(wire.TaskUnknown, map[string]any{"task": task})
		}
		return out, fleet.Refusal(err)
	}
	for _, d := range all {
		if keep(d) {
			out.Items = append(out.Items, Decision{
				TaskID: d.Task, Attempt: d.Attempt, StepIndex: d.Step, Rack: d.Host, RequestID: d.RequestID, SystemPrompt: d.SystemPrompt,
				UserPrompt: d.UserPrompt, ToolName: d.Tool, Arguments: d.Arguments, TokensIn: d.TokensIn, TokensOut: d.TokensOut, Profile: d.Profile,
				At: d.At.UnixMilli(),
			})
		}
	}
	out.Next = next
	return out, nil
}

// pageOf reads ?after=&limit=.
func pageOf(r *http.Request) (store.Page, error) {
	p := store.Page{After: r.URL.Query().Get("after")}
	if q := r.URL.Query().Get("limit"); q != "" {
		var err error
		if p.Limit, err = strconv.Atoi(q); err != nil || p.Limit < 1 || p.Limit > 1000 {
			return p, wire.Refuse(wire.BadRequest, map[string]any{"reason": "limit is not 1 to 1000"})
		}
	}
	return p, nil
}
