package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"phonerack/sync/wire"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

var (
	secret  = bytes.Repeat([]byte{7}, wire.SecretBytes)
	planUp  = wire.Topic{Tenant: "acme", Rack: "rack-1", Direction: wire.Up, Kind: wire.KindPlan}
	taskUp  = wire.Topic{Tenant: "acme", Rack: "rack-1", Direction: wire.Up, Kind: wire.KindTask}
	taskDn  = wire.Topic{Tenant: "acme", Rack: "rack-1", Direction: wire.Down, Kind: wire.KindTask}
	sending = time.UnixMilli(1790000000000)
)

func keys(t testing.TB) wire.Keys {
	t.Helper()
	k, err := wire.DeriveKeys("k1", secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// only is a rack that has one set of keys.
func only(k wire.Keys) func(string) (wire.Keys, bool) {
	return func(kid string) (wire.Keys, bool) { return k, kid == k.KID }
}

func message(t testing.TB, typ wire.Type, life time.Duration, body any) *wire.Message {
	t.Helper()
	m, err := wire.NewMessage(typ, sending, life, body)
	if err != nil {
		t.Fatal(err)
	}
	m.ID = "01K5V9AZ00000000000000000X"
	return m
}

func TestAFrameIsReadAsItWasMade(t *testing.T) {
	k := keys(t)
	m := message(t, wire.TypePlanRequest, 30*time.Second, wire.PlanRequest{RequestID: "r1", HostID: "rack-1", UserPrompt: "Grüße 你好 \u2028"})
	m.Boot, m.Seq = "4-abcd", 17
	m.Attach(wire.ScreenAttachment, "image/jpeg", []byte{0xff, 0xd8, 0, 1, 0, '\n'})
	m.Attach("second", "text/plain", nil)
	frame, err := wire.Seal(planUp, k, m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Open(planUp, only(k), frame)
	if err != nil {
		t.Fatal(err)
	}
	got.Attachments[1].Data = nil
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
	var body wire.PlanRequest
	if err := got.Decode(&body); err != nil || body.UserPrompt != "Grüße 你好 \u2028" {
		t.Errorf("%+v, %v", body, err)
	}
}

// TestNoFrameThatWasTouchedIsTaken flips each bit of a frame.
func TestNoFrameThatWasTouchedIsTaken(t *testing.T) {
	k := keys(t)
	m := message(t, wire.TypeResult, 0, wire.Result{TaskID: "t", Attempt: 1, Outcome: wire.Succeeded})
	m.Attach("note", "text/plain", []byte("attached"))
	frame, err := wire.Seal(taskUp, k, m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range frame {
		for bit := range 8 {
			bad := bytes.Clone(frame)
			bad[i] ^= 1 << bit
			if m, err := wire.Open(taskUp, only(k), bad); err == nil {
				t.Errorf("bit %d of byte %d turned: taken as %+v", bit, i, m)
			}
		}
	}
	for n := range frame {
		if _, err := wire.Open(taskUp, only(k), frame[:n]); err == nil {
			t.Errorf("cut after %d bytes: taken", n)
		}
	}
}

func TestAFrameIsForOneTopicAndOneDirection(t *testing.T) {
	k := keys(t)
	frame, err := wire.Seal(taskUp, k, message(t, wire.TypeError, time.Minute, wire.Refuse(wire.Internal, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []wire.Topic{
		taskDn,
		{Tenant: "acme", Rack: "rack-2", Direction: wire.Up, Kind: wire.KindTask},
		{Tenant: "acm", Rack: "erack-1", Direction: wire.Up, Kind: wire.KindTask},
		{Tenant: "acme", Rack: "rack-1", Direction: wire.Up, Kind: wire.KindSkill},
	} {
		if _, err := wire.Open(other, only(k), frame); !errors.Is(err, wire.ErrMAC) {
			t.Errorf("on %s: %v", other, err)
		}
	}
	otherKeys, err := wire.DeriveKeys("k1", bytes.Repeat([]byte{8}, wire.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Open(taskUp, only(otherKeys), frame); !errors.Is(err, wire.ErrMAC) {
		t.Errorf("another secret: %v", err)
	}
	if _, err := wire.Open(taskUp, func(string) (wire.Keys, bool) { return wire.Keys{}, false }, frame); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("no keys: %v", err)
	}
	if _, err := wire.Open(taskUp, func(string) (wire.Keys, bool) { return wire.Keys{}, true }, frame); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("empty keys: %v", err)
	}
}

// TestWhatAProperSenderMustNotSend: the MAC is right, the content is not.
func TestWhatAProperSenderMustNotSend(t *testing.T) {
	const good = `{"v":1,"id":"01K5V9AZ00000000000000000X","type":"task.renew","ts":1790000000000,"exp":1790000030000,"body":{}}`
	k := keys(t)
	if _, err := wire.SealJSON(taskUp, k, []byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"version":               {`"v":1`, `"v":2`, "version 2"},
		"no version":            {`"v":1,`, ``, "version 0"},
		"key in another case":   {`"v":1`, `"V":1`, `"V" is written "v"`},
		"key twice":             {`"v":1`, `"v":1,"v":1`, "twice"},
		"body's key twice":      {`{}`, `{"a":{"b":1,"b":2}}`, "twice"},
		"no ULID":               {`01K5V9AZ00000000000000000X`, `01K5V9AZ0000000000000000`, "ULID"},
		"correlation":           {`"v":1`, `"v":1,"corr":"x"`, "ULID"},
		"type":                  {`task.renew`, `Task Renew`, "no type"},
		"type of another kind":  {`task.renew`, `plan.request`, "does not belong"},
		"direction":             {`task.renew`, `task.sync`, "does not belong"},
		"fraction":              {`"v":1`, `"v":1.0`, "number"},
		"exponent":              {`1790000030000`, `1.79e12`, "number"},
		"no time":               {`1790000000000`, `0`, "time of sending"},
		"never expires":         {`"exp":1790000030000`, `"exp":0`, "expires within"},
		"expires too late":      {`1790000030000`, `1790000300001`, "expires within"},
		"expired from birth":    {`1790000030000`, `1790000000000`, "expires within"},
		"deep":                  {`{}`, strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40), "deeper"},
		"second value":          {`"body":{}}`, `"body":{}} {}`, "follows"},
		"cut":                   {`"body":{}}`, `"body":{}`, "too early"},
		"half a surrogate":      {`{}`, `{"a":"\ud800"}`, "surrogate"},
		"halves in wrong order": {`{}`, `{"a":"\udc00\ud800"}`, "surrogate"},
		"not UTF-8":             {`{}`, "{\"a\":\"\xff\"}", "UTF-8"},
		"announced attachment":  {`{}`, `{},"attachments":[{"name":"a","type":"x","size":0,"sha256":""}]`, "not both"},
		"negative size":         {`{}`, `{},"attachments":[{"name":"a","type":"x","size":-1,"sha256":""}]`, "attachment 0"},
		"five attachments":      {`{}`, `{},"attachments":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"}]`, "5 attachments"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.SealJSON(taskUp, k, []byte(strings.Replace(good, c.old, c.new, 1)))
			if !errors.Is(err, wire.ErrContent) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v, want content with %q", err, c.want)
			}
		})
	}
	for _, fine := range []string{`{"a":"\ud83d\ude00"}`, `{"a":"\\ud800"}`, `{"unknown_key":1,"timeout_ms":5}`} {
		if _, err := wire.SealJSON(taskUp, k, []byte(strings.Replace(good, `{}`, fine, 1))); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	k := keys(t)
	m := message(t, wire.TypePlanRequest, time.Minute, wire.PlanRequest{})
	m.Attach("screen", "image/jpeg", make([]byte, wire.MaxFrame-2048))
	frame, err := wire.Seal(planUp, k, m)
	if err != nil || len(frame) > wire.MaxFrame {
		t.Errorf("%d bytes, %v", len(frame), err)
	}
	m.Attachments = nil
	m.Attach("screen", "image/jpeg", make([]byte, wire.MaxFrame))
	if _, err := wire.Seal(planUp, k, m); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("attachment: %v", err)
	}
	if _, err := wire.Open(planUp, only(k), make([]byte, wire.MaxFrame+1)); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("open: %v", err)
	}
	m = message(t, wire.TypePlanRequest, time.Minute, wire.PlanRequest{UserPrompt: strings.Repeat("x", wire.MaxJSON)})
	if _, err := wire.Seal(planUp, k, m); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("JSON: %v", err)
	}
}

func TestTopics(t *testing.T) {
	for _, s := range []string{planUp.String(), taskDn.String(), "pr/v1/a/b/up/state", "pr/v1/a/b/dn/desired"} {
		topic, err := wire.ParseTopic(s)
		if err != nil || topic.String() != s {
			t.Errorf("%s: %v, %v", s, topic, err)
		}
	}
	for _, s := range []string{
		"", "pr/v1/a/b/up", "pr/v1/a/b/up/plan/x", "pr/v2/a/b/up/plan", "/pr/v1/a/b/up/plan", "pr/v1/+/b/up/plan", "pr/v1/a/#/up/plan",
		"pr/v1/a/B/up/plan", "pr/v1/a/b.c/up/plan", "pr/v1/a/>/up/plan", "pr/v1/a/*/up/plan", "pr/v1/a//up/plan", "pr/v1/a/b/down/plan", "pr/v1/a/b/dn/state",
		"pr/v1/a/b/dn/event", "pr/v1/a/" + strings.Repeat("b", 64) + "/up/plan", "pr/v1/a/b/up/plan\n", "$share/g/pr/v1/a/b/up/plan",
	} {
		if topic, err := wire.ParseTopic(s); err == nil {
			t.Errorf("%q is taken as %+v", s, topic)
		}
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	k := keys(t)
	for _, s := range []string{fmt.Sprint(k), fmt.Sprintf("%v", k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), "keys " + k.LogValue().String()} {
		if s != "keys k1" {
			t.Errorf("printed %q", s)
		}
	}
	hidden := struct{ k wire.Keys }{k}
	for _, s := range []string{fmt.Sprintf("%v", hidden), fmt.Sprintf("%+v", hidden)} {
		if len(s) > 40 { // kid and an address
			t.Errorf("within another printed %q", s)
		}
	}
}

// vectors is what another implementation can be held to.
type vectors struct {
	Secret string `json:"secret_hex"`
	KID    string `json:"kid"`
	Up     string `json:"up_key_hex"`
	Down   string `json:"down_key_hex"`
	Frames []struct {
		Name        string   `json:"name"`
		Topic       string   `json:"topic"`
		JSON        string   `json:"json"`
		Attachments []string `json:"attachments_base64,omitempty"`
		Frame       string   `json:"frame_base64"`
	} `json:"frames"`
	Refused []struct {
		Name  string `json:"name"`
		Topic string `json:"topic"`
		Frame string `json:"frame_base64"`
		Why   string `json:"why"`
	} `json:"refused"`
}

const vectorFile = "testdata/vectors.json"

func readVectors(t testing.TB) vectors {
	t.Helper()
	raw, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVectors holds the package to bytes that other implementations are held to.
// With -update the frames are computed from the JSON beside them.
func TestVectors(t *testing.T) {
	v := readVectors(t)
	raw, err := hex.DecodeString(v.Secret)
	if err != nil {
		t.Fatal(err)
	}
	k, err := wire.DeriveKeys(v.KID, raw)
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]error{"malformed": wire.ErrMalformed, "mac": wire.ErrMAC, "unknown key": wire.ErrUnknown, "content": wire.ErrContent}
	for i, f := range v.Frames {
		t.Run(f.Name, func(t *testing.T) {
			topic, err := wire.ParseTopic(f.Topic)
			if err != nil {
				t.Fatal(err)
			}
			var attachments [][]byte
			for _, a := range f.Attachments {
				attachments = append(attachments, decode64(t, a))
			}
			frame, err := wire.SealJSON(topic, k, []byte(f.JSON), attachments...)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				v.Frames[i].Frame = base64.StdEncoding.EncodeToString(frame)
				return
			}
			if !bytes.Equal(frame, decode64(t, f.Frame)) {
				t.Errorf("the frame is\n%s", base64.StdEncoding.EncodeToString(frame))
			}
		})
	}
	for _, f := range v.Refused {
		t.Run(f.Name, func(t *testing.T) {
			topic, err := wire.ParseTopic(f.Topic)
			if err != nil {
				t.Fatal(err)
			}
			if why[f.Why] == nil {
				t.Fatalf("unknown reason %q", f.Why)
			}
			if _, err := wire.Open(topic, only(k), decode64(t, f.Frame)); !errors.Is(err, why[f.Why]) {
				t.Errorf("got %v, want %s", err, f.Why)
			}
		})
	}
	if !*update {
		return
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func decode64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOpenSSLAgrees: keys and MAC of the vectors as another implementation has them.
func TestOpenSSLAgrees(t *testing.T) {
	v := readVectors(t)
	for info, want := range map[string]string{"phonerack pr1 up": v.Up, "phonerack pr1 dn": v.Down} {
		out := openssl(t, nil, "kdf", "-keylen", "32", "-kdfopt", "digest:SHA256", "-kdfopt", "hexkey:"+v.Secret, "-kdfopt", "info:"+info, "HKDF")
		if got := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(out), ":", "")); got != want {
			t.Errorf("%s: %s, want %s", info, got, want)
		}
	}
	for _, f := range v.Frames {
		header, _, _ := bytes.Cut(decode64(t, f.Frame), []byte{'\n'})
		words := strings.Fields(string(header))
		var signed bytes.Buffer
		for _, s := range []string{f.Topic, words[1], words[2]} {
			signed.Write([]byte{0, 0, 0, byte(len(s))})
			signed.WriteString(s)
		}
		signed.WriteString(f.JSON)
		key := v.Up
		if strings.Contains(f.Topic, "/dn/") {
			key = v.Down
		}
		out := openssl(t, signed.Bytes(), "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:"+key)
		if got := out[strings.LastIndex(strings.TrimSpace(out), " ")+1:]; strings.TrimSpace(got) != words[3] {
			t.Errorf("%s: %s, want %s", f.Name, got, words[3])
		}
	}
}

func openssl(t *testing.T, in []byte, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// FuzzOpen: whatever comes from a broker, nothing but a proper frame is taken, and
// a frame that is taken is made of the same bytes again.
func FuzzOpen(f *testing.F) {
	k := keys(f)
	m := message(f, wire.TypeResult, 0, wire.Result{TaskID: "t"})
	m.Attach("note", "text/plain", []byte("x"))
	frame, err := wire.Seal(taskUp, k, m)
	if err != nil {
		f.Fatal(err)
	}
	header, rest, _ := bytes.Cut(frame, []byte{'\n'})
	f.Add(header, rest)
	f.Fuzz(func(t *testing.T, header, rest []byte) {
		_, _ = wire.Open(taskUp, only(k), append(append(bytes.Clone(header), '\n'), rest...))
		raw, data, _ := bytes.Cut(rest, []byte{0}) // signed by a sender who is at fault
		signed, err := wire.SealJSON(taskUp, k, raw, data)
		if err != nil {
			return
		}
		m, err := wire.Open(taskUp, only(k), signed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := wire.Seal(taskUp, k, m)
		if err != nil {
			t.Fatalf("taken, but cannot be made: %v", err)
		}
		if _, err := wire.Open(taskUp, only(k), again); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzUnmarshal: what is taken is what encoding/json reads, and it was exact.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"task_id":"t","attempt":1}`, `{"Task_id":"t"}`, `{"a":[{"a":1,"a":2}]}`, `"\ud800"`, `1 2`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var strict, loose wire.Result
		if wire.Unmarshal(raw, &strict) != nil {
			return
		}
		if err := json.Unmarshal(raw, &loose); err != nil {
			t.Fatalf("taken: %v", err)
		}
		if diff := cmp.Diff(loose.TaskID, strict.TaskID); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkSealOpen100KB(b *testing.B) {
	k := keys(b)
	picture := make([]byte, 100<<10)
	for b.Loop() {
		m := message(b, wire.TypePlanRequest, time.Minute, wire.PlanRequest{UserPrompt: strings.Repeat("[0] button \"OK\"\n", 100)})
		m.Attach("screen", "image/jpeg", picture)
		frame, err := wire.Seal(planUp, k, m)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := wire.Open(planUp, only(k), frame); err != nil {
			b.Fatal(err)
		}
	}
}
