package firmware_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

// scriptedCloud is the cloud of a bench: a broker on a port of the loopback and what answers behind it.
type scriptedCloud struct {
	*linktest.Cloud
	broker *linktest.Broker
	rack   wire.Topic

	mu     sync.Mutex
	grants []wire.Lease // handed out one a claim, oldest first
}

// join gives the bench an identity and the cloud that belongs to it. transport is who decides.
func (b *bench) join(transport string) *scriptedCloud {
	b.t.Helper()
	secret := bytes.Repeat([]byte{7}, wire.SecretBytes)
	keys, err := wire.DeriveKeys("k1", secret)
	if err != nil {
		b.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	c := &scriptedCloud{broker: linktest.NewBroker(), rack: wire.Topic{Tenant: "acme", Rack: "r1"}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c.broker.Serve(l)
	}()
	b.t.Cleanup(func() {
		l.Close()
		c.broker.Close()
		<-served
	})
	c.Cloud = linktest.NewCloud(c.broker, time.Now, keys)
	c.On(wire.TypeHeartbeat, func(h linktest.Heard) {
		var beat wire.Heartbeat
		if h.Decode(&beat) != nil {
			return
		}
		sync := wire.Sync{Leases: []wire.LeaseRef{}, Cancel: []wire.AttemptRef{}, Unknown: []wire.AttemptRef{}}
		for _, r := range beat.Running {
			sync.Leases = append(sync.Leases, wire.LeaseRef{TaskID: r.TaskID, Attempt: r.Attempt, LeaseMS: 60_000})
		}
		c.Reply(h, wire.TypeSync, sync)
	})
	c.On(wire.TypePending, func(h linktest.Heard) { c.Reply(h, wire.TypeCommands, wire.Commands{}) })
	c.On(wire.TypeClaim, func(h linktest.Heard) {
		var claim wire.Claim
		if h.Decode(&claim) != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.grants) == 0 {
			c.Reply(h, wire.TypeNone, wire.NoTask{RetryAfterMS: 300})
			return
		}
		grant := c.grants[0]
		c.grants = c.grants[1:]
		grant.ClaimID = claim.ClaimID
		c.Reply(h, wire.TypeLease, grant)
	})
	c.On(wire.TypeRelease, func(h linktest.Heard) { c.Reply(h, wire.TypeTaskAck, wire.Ack{}) })
	c.On(wire.TypeQuestion, func(h linktest.Heard) { c.Reply(h, wire.TypeTaskAck, wire.Ack{}) })
	raw, err := wire.Bundle{
		V: 1, Rack: "r1", Tenant: "acme", Bearer: "b", KID: "k1", MACSecret: base64.StdEncoding.EncodeToString(secret), Broker: "tcp://" + l.Addr().String(),
	}.File()
	if err != nil {
		b.t.Fatal(err)
	}
	b.reconfigure(raw, transport)
	return c
}

// reconfigure writes the identity beside the bench's configuration and reads both.
func (b *bench) reconfigure(bundle []byte, transport string) {
	b.t.Helper()
	dir := filepath.Dir(b.config.Rack.State)
	file := filepath.Join(dir, "rackd.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "identity.json"), bundle, 0o600); err != nil {
		b.t.Fatal(err)
	}
	more := fmt.Sprintf("\n[planner]\ntransport = %q\n[cloud]\nidentity = \"identity.json\"\n", transport)
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if b.config, err = config.Load(file); err != nil {
		b.t.Fatal(err)
	}
}

// grant has the next claim answered with a task.
func (c *scriptedCloud) grant(task wire.Task, attempt int, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants = append(c.grants, wire.Lease{Task: task, Attempt: attempt, LeaseMS: length.Milliseconds()})
}

// await waits for the nth message of a type.
func await[T any](t *testing.T, c *scriptedCloud, typ wire.Type, n int) T {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if heard := c.Heard(typ); len(heard) > n {
			return linktest.Decode[T](t, heard[n].Message)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s number %d", typ, n)
		}
	}
}

func TestATaskOfTheCloudIsClaimedRunAndReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.Script)
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: shopGoal}, 3, 2*time.Minute)
	b.start()
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	if result.TaskID != "t1" || result.Attempt != 3 || result.Outcome != wire.Succeeded || !result.Wrote || result.Steps == 0 {
		t.Errorf("%+v", result)
	}
	claim := linktest.Decode[wire.Claim](t, c.Heard(wire.TypeClaim)[0].Message)
	if claim.Slot != 1 || claim.Phone != "SIM0001" || claim.ClaimID == "" || claim.SkillsVersion == "" {
		t.Errorf("%+v", claim)
	}
	var list action.TaskList
	if err := b.Call(t.Context(), "task_list", nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Tasks) != 1 || list.Tasks[0].CloudTask != "t1" || list.Tasks[0].Attempt != 3 || list.Tasks[0].State != action.Succeeded {
		t.Errorf("%+v", list.Tasks)
	}
	if bad := c.Refused(); len(bad) > 0 {
		t.Errorf("the cloud refused frames: %v", bad)
	}
}

// TestTheFenceClosesTenSecondsBeforeTheLeaseEnds: a rack that cannot renew stops writing before the cloud gives the task
// to somebody else.
func TestTheFenceClosesTenSecondsBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	c.On(wire.TypePlanRequest, nil) // nobody decides
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	const length = 14 * time.Second
	granted := time.Now()
	c.grant(wire.Task{TaskID: "t1", Goal: shopGoal}, 1, length)
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	took := time.Since(granted)
	if result.Outcome == wire.Succeeded || result.Error == nil || result.Error.Code != wire.NotLeased {
		t.Errorf("%+v", result)
	}
	if took < length-10*time.Second-500*time.Millisecond || took > length {
		t.Errorf("the attempt ended %s after its grant, its fence is at %s", took, length-10*time.Second)
	}
	if b.state(1).Lease != nil {
		t.Error("the slot is still leased")
	}
}

func TestATaskThatThisRackCannotDoIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.Script)
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: shopGoal, Skills: []string{"catalog/shopping"}}, 1, time.Minute)
	c.grant(wire.Task{TaskID: "t2", Goal: shopGoal, Permissions: []string{"everything"}}, 1, time.Minute)
	c.grant(wire.Task{TaskID: "t3", Goal: shopGoal, Deadline: time.Now().Add(-time.Second).UnixMilli()}, 1, time.Minute)
	b.start()
	for n, code := range []wire.Code{wire.SkillUnknown, wire.BadRequest, wire.DeadlinePassed} {
		r := await[wire.Release](t, c, wire.TypeRelease, n)
		if r.TaskID != fmt.Sprintf("t%d", n+1) || r.Error == nil || r.Error.Code != code {
			t.Errorf("%+v, want %s", r, code)
		} else if strings.Contains(r.Error.Error(), "unknown") {
			t.Errorf("an argument is missing: %v", r.Error)
		}
	}
	if journal := b.phones[1].engine.Journal(); len(journal) > 0 {
		t.Errorf("the phone was touched: %q", journal)
	}
}

// TestAFileOfATaskIsHereBeforeItsFirstStep: fetched by its hash. One that the cloud does not give has the task go back.
func TestAFileOfATaskIsHereBeforeItsFirstStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	body := []byte("the file")
	sum := fmt.Sprintf("%x", sha256.Sum256(body))
	c.On(wire.TypeBlobGet, func(h linktest.Heard) {
		var get wire.BlobGet
		if h.Decode(&get) != nil {
			return
		}
		if get.SHA256 != sum {
			c.Reply(h, wire.TypeError, wire.Refuse(wire.NotFound, map[string]any{"what": "blob", "id": get.SHA256}))
			return
		}
		m := c.Message(h.Topic.Rack, wire.TypeBlobData, wire.BlobData{SHA256: sum, Size: int64(len(body))})
		m.Corr = h.ID
		m.Attach(wire.BlobAttachment, "application/json", body)
		c.Send(h.Topic, wire.KindSkill, m)
	})
	var here atomic.Bool
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		got, err := os.ReadFile(filepath.Join(b.config.Rack.State, "inputs", sum))
		here.Store(err == nil && bytes.Equal(got, body))
		c.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: q.RequestID, ToolName: "finish", Arguments: []byte(`{"message":"done"}`)})
	})
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "g", Inputs: []wire.Input{{Name: "a", SHA256: strings.Repeat("0", 64), Size: 1}}}, 1, 2*time.Minute)
	c.grant(wire.Task{TaskID: "t2", Goal: "g", Inputs: []wire.Input{{Name: "../a", SHA256: sum, Size: 8}}}, 1, 2*time.Minute)
	c.grant(wire.Task{TaskID: "t3", Goal: "g", Inputs: []wire.Input{{Name: "a.txt", SHA256: sum, Size: 8}}}, 1, 2*time.Minute)
	b.planner = nil
	b.start()
	for n, code := range []wire.Code{wire.InputMissing, wire.BadRequest} {
		if r := await[wire.Release](t, c, wire.TypeRelease, n); r.TaskID != fmt.Sprintf("t%d", n+1) || r.Error == nil || r.Error.Code != code {
			t.Errorf("%+v, want %s", r, code)
		}
	}
	if r := await[wire.Result](t, c, wire.TypeResult, 0); r.TaskID != "t3" || r.Outcome != wire.Succeeded {
		t.Errorf("%+v", r)
	}
	if !here.Load() {
		t.Error("the file was not here at the first step")
	}
}

// TestATaskOfTheCloudSaysWhatItsResultLooksLike: the planner is told, and corrects a result that does not match.
func TestATaskOfTheCloudSaysWhatItsResultLooksLike(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	var mu sync.Mutex
	var asked []string
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		mu.Lock()
		asked = append(asked, q.UserPrompt)
		n := len(asked)
		mu.Unlock()
		args := `{"message":"found","result":{"price":4.5}}`
		if n == 1 {
			args = `{"message":"found","result":{"price":"4.5"}}`
		}
		c.Reply(h, wire.TypePlanAccepted, wire.PlanAccepted{RequestID: q.RequestID, DeadlineMS: 30_000})
		c.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: q.RequestID, ToolName: "finish", Arguments: []byte(args)})
	})
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t0", Goal: "look around", ResultSchema: []byte(`{"type":"object","$ref":"#"}`)}, 1, 2*time.Minute)
	schema := `{"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}`
	c.grant(wire.Task{TaskID: "t1", Goal: "look around", ResultSchema: []byte(schema)}, 1, 2*time.Minute)
	b.planner = nil
	b.start()
	if r := await[wire.Release](t, c, wire.TypeRelease, 0); r.TaskID != "t0" || r.Error == nil || r.Error.Code != wire.BadRequest {
		t.Errorf("%+v", r)
	}
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	if result.TaskID != "t1" || result.Outcome != wire.Succeeded || string(result.Result) != `{"price":4.5}` || result.Steps != 2 {
		t.Errorf("%+v", result)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || !strings.Contains(asked[0], `wanted: "{\"type\"`) || !strings.Contains(asked[1], "$.result.price does not match") {
		t.Errorf("asked %q", asked)
	}
}

// TestTheCloudsPlannerDecides is the turn of a rack without any provider's key: the question goes to the cloud with its
// task, the answer comes back.
func TestTheCloudsPlannerDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	var mu sync.Mutex
	var asked []wire.PlanRequest
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		mu.Lock()
		asked = append(asked, q)
		n := len(asked)
		mu.Unlock()
		c.Reply(h, wire.TypePlanAccepted, wire.PlanAccepted{RequestID: q.RequestID, DeadlineMS: 30_000})
		if n == 1 { // a failure is a failed turn, and nothing is done in its place
			c.Reply(h, wire.TypePlanFailure, wire.PlanFailure{RequestID: q.RequestID, Error: wire.Refuse(wire.NoToolCall, nil)})
			return
		}
		c.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: q.RequestID, ToolName: "finish", Arguments: []byte(`{"success":true,"message":"there is nothing to do"}`)})
	})
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "look around"}, 2, 2*time.Minute)
	b.planner = nil
	b.start()
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	if result.Outcome != wire.Succeeded || result.Wrote || result.Steps != 2 {
		t.Errorf("%+v", result)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, q := range asked {
		if q.HostID != "r1" || q.TaskID != "t1" || q.Attempt != 2 || !strings.Contains(q.UserPrompt, "look around") || len(q.Tools) == 0 {
			t.Errorf("asked %+v", q)
		}
	}
	if len(asked) != 2 || asked[0].RequestID == asked[1].RequestID {
		t.Errorf("%d questions", len(asked))
	}
}

// TestATaskOfThisRackIsDecidedOutsideOfAnyTask: the cloud does not know it, and must not be asked to keep decisions of it.
func TestATaskOfThisRackIsDecidedOutsideOfAnyTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		c.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: q.RequestID, ToolName: "finish", Arguments: []byte(`{"success":true,"message":"done"}`)})
	})
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	await[wire.Hello](t, c, wire.TypeHello, 0)
	_, status := b.watchTask(b.runTask(1, "look around").ID)
	if status.State != action.Succeeded {
		t.Errorf("%+v", status)
	}
	q := await[wire.PlanRequest](t, c, wire.TypePlanRequest, 0)
	if q.TaskID != "" || q.Attempt != 0 {
		t.Errorf("asked for task %q, attempt %d", q.TaskID, q.Attempt)
	}
}

// TestAQuestionOfATaskIsAnsweredByTheCloud: it waits under its lease, takes the answer to this question alone, and goes on.
func TestAQuestionOfATaskIsAnsweredByTheCloud(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	var mu sync.Mutex
	var prompts []string
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		mu.Lock()
		prompts = append(prompts, q.UserPrompt)
		d := wire.PlanDecision{RequestID: q.RequestID, ToolName: "ask_human", Arguments: []byte(`{"question":"Which colour?"}`)}
		if len(prompts) > 1 {
			d.ToolName, d.Arguments = "finish", []byte(`{"success":true,"message":"done"}`)
		}
		mu.Unlock()
		c.Reply(h, wire.TypePlanDecision, d)
	})
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "buy a scarf"}, 1, 2*time.Minute)
	b.start()
	q := await[wire.Question](t, c, wire.TypeQuestion, 0)
	if q.TaskID != "t1" || q.Attempt != 1 || q.Text != "Which colour?" || q.QuestionID == "" {
		t.Fatalf("%+v", q)
	}
	if b.state(1).Lease == nil {
		t.Error("the slot is free while the task waits")
	}
	say := func(id, text string) {
		c.Send(c.rack, wire.KindTask, c.Message("r1", wire.TypeAnswer, wire.Answer{TaskID: "t1", Attempt: 1, QuestionID: id, Text: text}))
	}
	say("another", "blue")
	time.Sleep(300 * time.Millisecond)
	say(q.QuestionID, "red")
	say(q.QuestionID, "green") // the first counts
	if r := await[wire.Result](t, c, wire.TypeResult, 0); r.Outcome != wire.Succeeded {
		t.Errorf("%+v", r)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(prompts) != 2 || !strings.Contains(prompts[1], `answer 1: "red"`) {
		t.Errorf("%d prompts, the last:\n%s", len(prompts), prompts[len(prompts)-1])
	}
}

// TestAStopInTheMiddleIsReportedAsLostWithWhatWasWritten, by the next rackd, once.
func TestAStopInTheMiddleIsReportedAsLostWithWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	c.On(wire.TypePlanRequest, nil)
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "look around"}, 1, 2*time.Minute)
	b.start()
	await[wire.PlanRequest](t, c, wire.TypePlanRequest, 0)
	b.stop()
	b.start()
	result := await[wire.Result](t, c, wire.TypeResult, 0)
	if result.TaskID != "t1" || result.Outcome != wire.Lost || result.Wrote {
		t.Errorf("%+v", result)
	}
	time.Sleep(time.Second)
	ids := map[string]bool{}
	for _, h := range c.Heard(wire.TypeResult) {
		ids[h.ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d results", len(ids))
	}
}

func TestCommandsOfTheCloud(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	c := b.join(config.Script)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	await[wire.Hello](t, c, wire.TypeHello, 0)
	await[wire.Pending](t, c, wire.TypePending, 0)
	expires := time.Now().Add(time.Minute).UnixMilli()
	for i, cmd := range []wire.Command{
		{Name: "ping"},
		{Name: "screenshot", Target: wire.CommandTarget{Slot: 1}},
		{Name: "identify", Target: wire.CommandTarget{Slot: 1}},
		{Name: "screenshot", Target: wire.CommandTarget{Slot: 2}},
		{Name: "self-destruct"},
		{Name: "quarantine", Target: wire.CommandTarget{Slot: 1}, Args: json.RawMessage(`{"seconds":600,"reason":"swollen"}`)},
		{Name: "power_off", Target: wire.CommandTarget{Slot: 1}},
		{Name: "quarantine", Target: wire.CommandTarget{Slot: 1}, Args: json.RawMessage(`{"seconds":600,"for":"ever"}`)},
	} {
		cmd.CommandID, cmd.Seq, cmd.Expires = fmt.Sprintf("c%d", i+1), uint64(i+1), expires
		c.Send(c.rack, wire.KindCommand, c.Message("r1", wire.TypeExecute, cmd))
	}
	ends := map[string]wire.CommandStatus{}
	var picture []byte
	for deadline := time.Now().Add(40 * time.Second); len(ends) < 8 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, h := range c.Heard(wire.TypeCommandStatus) {
			s := linktest.Decode[wire.CommandStatus](t, h.Message)
			if s.Status.Over() {
				ends[s.CommandID] = s
				if s.CommandID == "c2" {
					picture = h.Attachment(wire.ScreenAttachment)
				}
			}
		}
	}
	for id, want := range map[string]wire.CommandState{
		"c1": wire.CommandSucceeded, "c2": wire.CommandSucceeded, "c3": wire.CommandSucceeded, "c4": wire.CommandFailed, "c5": wire.CommandRejected,
		"c6": wire.CommandSucceeded, "c7": wire.CommandFailed, "c8": wire.CommandFailed,
	} {
		if ends[id].Status != want {
			t.Errorf("%s: %+v, want %s", id, ends[id], want)
		}
	}
	if !bytes.HasPrefix(picture, []byte{0xff, 0xd8}) {
		t.Errorf("the picture has %d bytes", len(picture))
	}
	if e := ends["c4"].Error; e == nil || e.Code != wire.SlotEmpty {
		t.Errorf("an empty slot: %+v", e)
	}
	if e := ends["c7"].Error; e == nil || e.Code != wire.PowerFixed {
		t.Errorf("power that nothing switches: %+v", e)
	}
	if e := ends["c8"].Error; e == nil || e.Code != wire.BadRequest {
		t.Errorf("an argument that the action does not know: %+v", e)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		told := slices.ContainsFunc(c.Heard(wire.TypeEvent), func(h linktest.Heard) bool {
			e := linktest.Decode[wire.Event](t, h.Message)
			return e.Kind == "health.quarantined" && e.Slot == 1 && strings.Contains(string(e.Detail), "quarantined")
		})
		if told {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the cloud did not hear of the quarantine")
		}
	}
	time.Sleep(500 * time.Millisecond) // what was on its way is there
	claims := len(c.Heard(wire.TypeClaim))
	time.Sleep(1500 * time.Millisecond)
	if now := len(c.Heard(wire.TypeClaim)); now > claims {
		t.Errorf("%d claims, then %d: a phone in quarantine takes no task", claims, now)
	}
}

func TestTheGenerationRisesWithEachDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.Script)
	generations := func() (list []uint64) {
		for _, h := range c.Heard(wire.TypeHello) {
			list = append(list, linktest.Decode[wire.Hello](t, h.Message).Generation)
		}
		return list
	}
	run := func(n int) {
		t.Helper()
		b.start()
		await[wire.Hello](t, c, wire.TypeHello, n)
		b.stop()
	}
	run(0)
	run(1)
	for _, name := range []string{"rackd.db", "rackd.db.copy"} {
		if err := os.Remove(filepath.Join(b.config.Rack.State, name)); err != nil {
			t.Fatal(err)
		}
	}
	run(2)
	if got := generations(); !slices.Equal(got, []uint64{1, 1, 2}) {
		t.Errorf("generations %v", got)
	}
	db := filepath.Join(b.config.Rack.State, "rackd.db")
	old, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	run(3)
	if err := os.WriteFile(db, old, 0o640); err != nil { // a copy from before the last run
		t.Fatal(err)
	}
	run(4)
	run(5)
	if got := generations(); !slices.Equal(got[3:6], []uint64{2, 3, 3}) {
		t.Errorf("generations %v", got)
	}
}

// TestAnAnswerAtTheRackIsToldToTheCloud, which waits for one as well.
func TestAnAnswerAtTheRackIsToldToTheCloud(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.ByCloud)
	var asked atomic.Int32
	c.On(wire.TypePlanRequest, func(h linktest.Heard) {
		var q wire.PlanRequest
		if h.Decode(&q) != nil {
			return
		}
		d := wire.PlanDecision{RequestID: q.RequestID, ToolName: "ask_human", Arguments: []byte(`{"question":"Which colour?"}`)}
		if asked.Add(1) > 1 {
			d.ToolName, d.Arguments = "wait", []byte(`{"ms":2000}`) // so that it still runs when the cloud is told
		}
		c.Reply(h, wire.TypePlanDecision, d)
	})
	b.phones[1].plug(t)
	c.grant(wire.Task{TaskID: "t1", Goal: "buy a scarf"}, 1, 2*time.Minute)
	b.start()
	q := await[wire.Question](t, c, wire.TypeQuestion, 0)
	var list action.TaskList
	if err := b.Call(t.Context(), "task_list", nil, &list); err != nil {
		t.Fatal(err)
	}
	if err := b.Call(t.Context(), "task_answer", action.AnswerArgs{TaskArgs: action.TaskArgs{ID: list.Tasks[0].ID}, Answer: "red"}, nil); err != nil {
		t.Fatal(err)
	}
	told := func() bool {
		return slices.ContainsFunc(c.Heard(wire.TypeHeartbeat), func(h linktest.Heard) bool {
			beat := linktest.Decode[wire.Heartbeat](t, h.Message)
			return len(beat.Running) == 1 && beat.Running[0].TaskID == "t1" && beat.Running[0].Answered == q.QuestionID
		})
	}
	for deadline := time.Now().Add(10 * time.Second); !told(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the cloud was not told")
		}
	}
}
