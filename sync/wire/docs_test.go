package wire

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// page is docs/wire.md.
func page(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPageNamesEveryTypeAndKey keeps docs/wire.md complete: each type with its
// topic and each key of each body.
func TestPageNamesEveryTypeAndKey(t *testing.T) {
	text := page(t)
	bodies := map[Type]any{
		TypeHello: Hello{}, TypeWelcome: Welcome{}, TypeState: State{}, TypeDesired: Desired{}, TypeTelemetry: struct{}{}, TypeError: refusalJSON{},
		TypePlanRequest: PlanRequest{}, TypePlanAccepted: PlanAccepted{}, TypePlanDecision: PlanDecision{}, TypePlanFailure: PlanFailure{},
		TypeClaim: Claim{}, TypeLease: Lease{}, TypeNone: NoTask{}, TypeRenew: Renew{}, TypeRenewed: Renewed{}, TypeRelease: Release{},
		TypeHeartbeat: Heartbeat{}, TypeSync: Sync{}, TypeCancel: Cancel{}, TypeQuestion: Question{}, TypeAnswer: Answer{}, TypeResult: Result{}, TypeTaskAck: Ack{},
		TypeSkillChanges: SkillChanges{}, TypeSkillManifest: SkillManifest{}, TypeSkillChanged: SkillChanged{}, TypeBlobGet: BlobGet{}, TypeBlobData: BlobData{},
		TypeExecute: Command{}, TypePending: Pending{}, TypeCommands: Commands{}, TypeCommandStatus: CommandStatus{}, TypeCommandAck: Ack{},
		TypeEvent: Event{}, TypeEventAck: Ack{},
	}
	for _, typ := range Types() {
		body, ok := bodies[typ]
		if !ok {
			t.Errorf("%s: this test does not know its body", typ)
			continue
		}
		row := rowOf(text, typ)
		if row == "" {
			t.Errorf("%s has no row", typ)
			continue
		}
		if s := specs[typ]; s.direction != "" && !strings.Contains(row, string(s.direction)+"/"+string(s.kind)) {
			t.Errorf("%s is not said to belong on %s/%s: %s", typ, s.direction, s.kind, row)
		}
		for _, key := range keysOf(reflect.TypeOf(body)) {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("%s: the row does not name %s", typ, key)
			}
		}
	}
	for _, key := range keysOf(reflect.TypeFor[Task]()) {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("the key %s of a task is not named", key)
		}
	}
}

func rowOf(text string, typ Type) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "| `"+string(typ)+"` |") {
			return line
		}
	}
	return ""
}

func keysOf(t reflect.Type) (keys []string) {
	for _, f := range reflect.VisibleFields(t) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestPageExampleMakesTheVector runs the page's lines for openssl.
func TestPageExampleMakesTheVector(t *testing.T) {
	_, rest, ok := strings.Cut(page(t), "```bash\n")
	script, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the page has no example")
	}
	for _, program := range []string{"bash", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed: run make setup", program)
		}
	}
	c := exec.CommandContext(t.Context(), "bash", "-euc", script)
	c.Stderr = os.Stderr
	got, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Frames []struct {
			Name  string `json:"name"`
			Frame string `json:"frame_base64"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Frames {
		if v.Name == "hello" {
			if want, err := base64.StdEncoding.DecodeString(v.Frame); err != nil || string(got) != string(want) {
				t.Errorf("the example makes\n%s\nthe vector is\n%s", got, want)
			}
			return
		}
	}
	t.Error("there is no vector hello")
}
