package store

import "time"

// System holds the methods that belong to no tenant, or come before one is known.
type System struct{ s *Store }

// System gives the methods without a tenant. Only the process itself may use them, never a request's handler on a
// caller's word; IdentityByBearer is how a handler learns the tenant.
func (s *Store) System() *System { return &System{s} }

// Installation tells which database this is.
type Installation struct {
	ID         string
	Generation int64 // raised by Restored
	Created    time.Time
}

// Expired is what Expire ended.
type Expired struct {
	Lost     []TenantRef // attempts
	Requeued []TenantRef // of Lost: their tasks are queued again
	Late     []TenantRef // tasks whose deadline passed while queued; Attempt is 0
	Commands []string
}

// TenantRef names an attempt with its tenant.
type TenantRef struct {
	Tenant string
	Host   string
	Ref
}

// PruneOptions bound a run of Prune.
type PruneOptions struct {
	Before      time.Time     // decisions and request rows of tasks that were terminal before go
	AuditBefore time.Time     // audit rows before go; zero keeps all
	Batch       int           // rows of one transaction; 0 means 500
	Budget      time.Duration // no further batch begins after it; 0 means a minute
}

// Pruned is what a run of Prune did.
type Pruned struct {
	Decisions int64
	Requests  int64
	Audits    int64
	Windows   int64 // used windows of limits
	Done      bool  // false: the budget ended first
}

// Sealed is one sealed value, for sealing it anew.
type Sealed struct {
	Purpose string // "profile" or "identity"
	Tenant  string
	Owner   []string // profile id; or host id
	Version int      // key version of the profile, number of the identity set
	KEK     string
	Value   []byte
}
