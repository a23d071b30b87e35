package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// DefaultTenant is an operator's tenant if none is named.
const DefaultTenant = "default"

// Providers is what operators do with provider profiles. Credentials come in and never go out.
type Providers interface {
	Add(ctx context.Context, sc store.Scope, n NewProvider) (Provider, error)
	List(ctx context.Context, sc store.Scope) ([]Provider, error)
	Activate(ctx context.Context, sc store.Scope, name string) (Provider, error)
	Rotate(ctx context.Context, sc store.Scope, name, key string) (Provider, error)
}

// Admin serves operators.
type Admin struct {
	office    *enroll.Office
	fleet     *fleet.Fleet
	store     *store.Store
	providers Providers
	skills    *catalog.Catalog
	token     [32]byte // SHA-256 of the token; zero: none is accepted
	backup    func(ctx context.Context, path string) error
	log       *slog.Logger
}

// operation is one thing that an operator may ask. It gives the status of success and the body.
type operation func(r *http.Request, op fleet.Operator) (int, any, error)

func (a *Admin) operations() map[string]operation {
	all := map[string]operation{
		"GET /v1/admin/hosts":                      a.hosts,
		"POST /v1/admin/hosts":                     a.enrol,
		"GET /v1/admin/hosts/{host}":               a.host,
		"PATCH /v1/admin/hosts/{host}":             a.label,
		"GET /v1/admin/hosts/{host}/configure":     a.configuration,
		"POST /v1/admin/hosts/{host}/configure":    a.configure,
		"POST /v1/admin/hosts/{host}/rotate":       a.rotate,
		"POST /v1/admin/hosts/{host}/issue":        a.issue,
		"POST /v1/admin/hosts/{host}/revoke":       a.revoke,
		"GET /v1/admin/tasks":                      a.tasks,
		"POST /v1/admin/tasks":                     a.submit,
		"GET /v1/admin/tasks/{task}":               a.task,
		"POST /v1/admin/tasks/{task}/cancel":       a.cancel,
		"POST /v1/admin/tasks/{task}/answer":       a.answer,
		"POST /v1/admin/tasks/{task}/requeue":      a.requeue,
		"GET /v1/admin/tasks/{task}/decisions":     a.decisions,
		"POST /v1/admin/files":                     a.putFile,
		"GET /v1/admin/commands":                   a.commands,
		"POST /v1/admin/commands":                  a.send,
		"GET /v1/admin/commands/{command}":         a.command,
		"GET /v1/admin/commands/{command}/picture": a.picture,
		"GET /v1/admin/providers":                  a.listProviders,
		"POST /v1/admin/providers":                 a.addProvider,
		"POST /v1/admin/providers/{name}/activate": a.activateProvider,
		"POST /v1/admin/providers/{name}/rotate":   a.rotateProvider,
		"GET /v1/admin/usage":                      a.usage,
		"GET /v1/admin/events":                     a.events,
		"GET /v1/admin/audits":                     a.audits,
		"POST /v1/admin/backup":                    a.saveBackup,
	}
	maps.Copy(all, a.skillOperations())
	return all
}

// routes of the admin API. free tells that the listener is reachable from this machine alone.
func (a *Admin) routes(mux *http.ServeMux, free bool) {
	for pattern, do := range a.operations() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			op, err := a.operator(r, free)
			if err != nil {
				refuse(w, 0, failure{Error: wire.From(err)})
				return
			}
			status, body, err := a.guard(do, r, op)
			if err != nil {
				a.fail(w, r, err)
				return
			}
			if b, ok := body.(jpeg); ok {
				w.Header().Set("Content-Type", "image/jpeg")
				w.Header().Set("Cache-Control", "no-store")
				w.Header().Set("X-Content-Type-Options", "nosniff")
				_, _ = w.Write(b) // the client is gone, or has it
				return
			}
			writeJSON(w, status, body)
		})
	}
}

// jpeg is a body that is no JSON.
type jpeg []byte

// guard keeps a fault in one request from looking like success.
func (a *Admin) guard(do operation, r *http.Request, op fleet.Operator) (status int, body any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("an operation failed", "path", r.URL.Path, "panic", p)
			err = wire.Refuse(wire.Internal, nil)
		}
	}()
	return do(r, op)
}

func (a *Admin) fail(w http.ResponseWriter, r *http.Request, err error) {
	refusal := wire.From(err)
	if refusal.Code == wire.Internal {
		a.log.Error("an operation failed", "path", r.URL.Path, "error", refusal.Unwrap())
	}
	refuse(w, 0, failure{Error: refusal})
}

// operator tells who asks: by the token, or by the listener.
func (a *Admin) operator(r *http.Request, free bool) (fleet.Operator, error) {
	op := fleet.Operator{Tenant: r.URL.Query().Get("tenant"), Name: "local"}
	if op.Tenant == "" {
		op.Tenant = DefaultTenant
	}
	if !wire.ValidID(op.Tenant) {
		return op, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the tenant is no id"})
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok && free {
		return op, nil
	}
	if !ok || !a.tokenIs(shown) {
		return op, wire.Refuse(wire.Unauthenticated, nil)
	}
	op.Name = "token"
	return op, nil
}

func (a *Admin) tokenIs(shown string) bool {
	sum := sha256.Sum256([]byte(shown))
	return a.token != [32]byte{} && subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1
}

// read reads the body of an operation.
func read[B any](r *http.Request) (b B, err error) {
	raw, _, err := readBody(nil, r, maxBody)
	if err != nil {
		return b, err
	}
	if err := wire.Unmarshal(raw, &b); err != nil {
		return b, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	return b, nil
}

// paged answers with a part of a list.
func paged[T any](r *http.Request, list func(p store.Page) ([]T, string, error)) (int, any, error) {
	p, err := pageOf(r)
	if err != nil {
		return 0, nil, err
	}
	items, next, err := list(p)
	return http.StatusOK, page[T]{items, next}, err
}

// one answers with one record.
func one[T any](v T, err error) (int, any, error) { return http.StatusOK, v, err }
