package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/cloud/store"
	"phonerack/cloud/store/pgtest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "25") // each does some 30 things with a database; -rapid.checks asks for more
	goleak.VerifyTestMain(m)
}

// contract is what every database must keep; tests add themselves in init order of their files.
var contract = []struct {
	name string
	test func(*testing.T, place)
}{
	{"ForeignTenantsFindNothing", testForeignTenants},
	{"ChangesAreWrittenDown", testAudits},
	{"Hosts", testHosts},
	{"Identities", testIdentities},
	{"Hello", testHello},
	{"Presence", testPresence},
	{"Sessions", testSessions},
	{"Configurations", testConfigurations},
	{"Events", testEvents},
	{"Profiles", testProfiles},
	{"Limits", testLimits},
	{"Submit", testSubmit},
	{"ClaimPicksByTargetTimePriorityAndAge", testClaimPicks},
	{"ClaimAgainGivesTheSameLease", testClaimAgain},
	{"Release", testRelease},
	{"Heartbeat", testHeartbeat},
	{"Questions", testQuestions},
	{"Results", testResults},
	{"LostAttempts", testLost},
	{"Cancel", testCancel},
	{"Deadline", testDeadline},
	{"PlannerLog", testPlannerLog},
	{"PlannerOutsideATask", testPlannerLoose},
	{"PlannerProfile", testPlannerProfile},
	{"DecisionPages", testDecisionPages},
	{"Prune", testPrune},
	{"WhatIsOverIsForgotten", testForget},
	{"Files", testFiles},
	{"HellosAreWrittenDownOnce", testHelloAudits},
	{"Commands", testCommands},
	{"CommandsExpire", testCommandsExpire},
	{"Restored", testRestored},
	{"Reseal", testReseal},
	{"OneWinner", testOneWinner},
	{"StepsWithoutGaps", testSteps},
	{"OneOwnerOfARequest", testOneOwner},
	{"ReplicasStartAtOnce", testStartAtOnce},
	{"NewerSchema", testNewerSchema},
	{"TaskStates", testTaskStates},
	{"OddText", testOddText},
	{"Tenants", testTenants},
	{"WhatNoTextHoldsIsNotFound", testLookups},
	{"Subscriptions", testSubscriptions},
	{"PublishedSkills", testPublished},
	{"RackSkills", testRackSkills},
	{"RackSkillsByChanges", testRackSkillsByChanges},
	{"RackBlobs", testRackBlobs},
	{"CatalogKeys", testCatalogKeys},
	{"PrunedSkills", testPrunedSkills},
	{"ManyPrunedSkills", testManyPrunedSkills},
	{"PublishAtOnce", testPublishAtOnce},
	{"FirstSchemaIsCarriedOn", testFirstSchema},
}

func TestOnSQLite(t *testing.T) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, newPlace("sqlite:"+filepath.Join(t.TempDir(), "cloud.db")))
		})
	}
}

func TestOnPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) { c.test(t, newPlace(server.Database(t))) })
	}
}

// place is a database that does not exist yet, and the time there.
type place struct {
	dsn string
	now *atomic.Int64 // ms
}

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func newPlace(dsn string) place {
	p := place{dsn, new(atomic.Int64)}
	p.now.Store(start.UnixMilli())
	return p
}

func (p place) clock() time.Time       { return time.UnixMilli(p.now.Load()).UTC() }
func (p place) wait(d time.Duration)   { p.now.Add(d.Milliseconds()) }
func (p place) sqlite() (string, bool) { return strings.CutPrefix(p.dsn, "sqlite:") }

func (p place) open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), p.dsn, store.Options{Clock: p.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var (
	acme  = store.Scope{Tenant: "acme", Actor: "admin:anna"}
	other = store.Scope{Tenant: "other", Actor: "admin:otto"}
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func identity(seed string) store.NewIdentity {
	return store.NewIdentity{
		BearerHash: sha256.Sum256([]byte(seed)), MACSecret: []byte("sealed " + seed), KEK: "k1", Kid: "kid-" + seed,
		Fingerprint: "ab", CertPEM: "cert",
	}
}

func addHost(t testing.TB, s *store.Store, id string, tags ...string) {
	t.Helper()
	_, err := s.CreateHost(t.Context(), acme, store.NewHost{ID: id, Name: "rack " + id, Tags: tags}, identity(id))
	ok(t, err)
}

func submit(t testing.TB, s *store.Store, n store.NewTask) store.Task {
	t.Helper()
	if n.Body == nil {
		n.Body = json.RawMessage(`{"goal":"look"}`)
	}
	task, _, err := s.Submit(t.Context(), acme, n)
	ok(t, err)
	return task
}

const leaseTime = 2 * time.Minute

func claim(host string, slot int, id string) store.Claim {
	return store.Claim{Host: host, Slot: slot, Phone: fmt.Sprint("phone", slot), ID: id, SkillsVersion: "1", Lease: leaseTime}
}

// lease claims and wants to get something.
func lease(t testing.TB, s *store.Store, c store.Claim) store.Lease {
	t.Helper()
	l, found, err := s.Claim(t.Context(), acme, c)
	ok(t, err)
	if !found {
		t.Fatalf("claim %s of %s got nothing", c.ID, c.Host)
	}
	return l
}

func none(t testing.TB, s *store.Store, c store.Claim) {
	t.Helper()
	l, found, err := s.Claim(t.Context(), acme, c)
	ok(t, err)
	if found {
		t.Fatalf("claim %s of %s got %s", c.ID, c.Host, l.Attempt.Ref)
	}
}

func state(t testing.TB, s *store.Store, task string, want store.TaskState) store.Task {
	t.Helper()
	k := must(s.Task(t.Context(), acme, task))(t)
	if k.State != want {
		t.Fatalf("task is %s, want %s", k.State, want)
	}
	if k.State.Terminal() == k.Ended.IsZero() {
		t.Fatalf("task is %s and ended at %v", k.State, k.Ended)
	}
	return k
}

func plan(host, id string, r store.Ref, owner string) store.PlanRequest {
	return store.PlanRequest{Host: host, ID: id, Ref: r, BodyHash: sha256.Sum256([]byte(id)), Owner: owner, Lease: time.Minute}
}

func finish(host, id, owner string) store.Finish {
	return store.Finish{
		Host: host, RequestID: id, Owner: owner, SystemPrompt: "system of " + id, UserPrompt: "user of " + id, Tool: "tap",
		Arguments: json.RawMessage(`{"element":3}`), TokensIn: 10, TokensOut: 2, Profile: "p",
	}
}

// decide runs a request through.
func decide(ctx context.Context, s *store.Store, host, id string, r store.Ref) (store.Decision, error) {
	b, err := s.Begin(ctx, acme, plan(host, id, r, "o1"))
	if err != nil {
		return store.Decision{}, err
	}
	if b.Standing != store.Fresh {
		return store.Decision{}, fmt.Errorf("standing is %d", b.Standing)
	}
	return s.Finish(ctx, acme, finish(host, id, "o1"))
}

func same(t testing.TB, what string, got, want json.RawMessage) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: got %s, want %s", what, got, want)
	}
}
