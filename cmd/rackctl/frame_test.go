package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/sync/wire"
)

const eventTopic = "pr/v1/acme/rack-1/up/event"

// frames runs rackctl frame with a secret file of its own and returns what it prints.
func frames(t *testing.T, stdin []byte, args ...string) (code int, stdout []byte, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"frame"}, args...), bytes.NewReader(stdin), &out, &errOut)
	return code, out.Bytes(), errOut.String()
}

func secretFile(t *testing.T, content []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

var testSecret = []byte("0123456789abcdef0123456789abcdef")

func TestFrameIsSignedAndOpened(t *testing.T) {
	secret := secretFile(t, []byte(base64.StdEncoding.EncodeToString(testSecret)+"\n"), 0o600)
	picture := secretFile(t, []byte("a\x00picture"), 0o644)
	code, frame, errOut := frames(t, []byte(`{"type":"event","body":{"kind":"door","at":1}}`),
		"sign", eventTopic, "--secret", secret, "--kid", "k1", "--attach", "screen=image/jpeg="+picture)
	if code != 0 {
		t.Fatal(errOut)
	}
	if !bytes.HasPrefix(frame, []byte("pr1 h1 k1 ")) || !bytes.HasSuffix(frame, []byte("\x00a\x00picture")) {
		t.Errorf("the frame is %q", frame)
	}
	folder := t.TempDir()
	code, out, errOut := frames(t, frame, "open", eventTopic, "--secret", secret, "--attachments", folder)
	if code != 0 {
		t.Fatal(errOut)
	}
	var m wire.Message
	if err := json.Unmarshal(out, &m); err != nil || m.Type != wire.TypeEvent || m.V != 1 || m.Exp-m.TS != 60000 || m.ID == "" {
		t.Errorf("opened %s, %v", out, err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "screen")); err != nil || string(got) != "a\x00picture" {
		t.Errorf("the attachment is %q, %v", got, err)
	}
	if code, _, errOut := frames(t, frame, "open", eventTopic, "--secret", secret, "--attachments", folder); code == 0 || !strings.Contains(errOut, "exists") {
		t.Errorf("a file was overwritten: %s", errOut)
	}
}

func TestFrameIsRefused(t *testing.T) {
	secret := secretFile(t, testSecret, 0o600)
	_, frame, errOut := frames(t, []byte(`{"type":"event","body":{"kind":"door","at":1}}`), "sign", eventTopic, "--secret", secret, "--kid", "k1", "--life", "0")
	if len(frame) == 0 {
		t.Fatal(errOut)
	}
	altered := bytes.Replace(frame, []byte("door"), []byte("doom"), 1)
	for _, c := range []struct {
		name  string
		stdin []byte
		args  []string
		want  string
	}{
		{"altered", altered, []string{"open", eventTopic, "--secret", secret}, "wrong MAC"},
		{"other topic", frame, []string{"open", "pr/v1/acme/rack-2/up/event", "--secret", secret}, "wrong MAC"},
		{"other kid", frame, []string{"open", eventTopic, "--secret", secret, "--kid", "k2"}, "unknown key"},
		{"other secret", frame, []string{"open", eventTopic, "--secret", secretFile(t, []byte(strings.Repeat("0f", 32)), 0o600)}, "wrong MAC"},
		{"secret that others may read", frame, []string{"open", eventTopic, "--secret", secretFile(t, testSecret, 0o644)}, "others may read it"},
		{"secret that is none", frame, []string{"open", eventTopic, "--secret", secretFile(t, []byte("short"), 0o600)}, "32 bytes"},
		{"no kid", []byte(`{}`), []string{"sign", eventTopic, "--secret", secret}, "--kid"},
		{"type of another topic", []byte(`{"type":"task.claim","body":{}}`), []string{"sign", eventTopic, "--secret", secret, "--kid", "k1"}, "does not belong"},
		{"topic that is none", []byte(`{}`), []string{"sign", "pr/v1/acme/rack-1/up/#", "--secret", secret, "--kid", "k1"}, "up/#"},
		{"no JSON", []byte(`{"type":"event","type":"event"}`), []string{"sign", eventTopic, "--secret", secret, "--kid", "k1"}, "twice"},
		{"attachment without a type", []byte(`{"type":"event"}`), []string{"sign", eventTopic, "--secret", secret, "--kid", "k1", "--attach", "a=b"}, "media/type"},
	} {
		if code, out, errOut := frames(t, c.stdin, c.args...); code == 0 || len(out) > 0 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d, %q, want %q", c.name, code, errOut, c.want)
		}
	}
}

// TestFrameGivesTheGoldenVectors: --raw signs exactly the bytes that it is given.
func TestFrameGivesTheGoldenVectors(t *testing.T) {
	raw, err := os.ReadFile("../../sync/wire/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		SecretHex string `json:"secret_hex"`
		KID       string `json:"kid"`
		Frames    []struct {
			Name, Topic, JSON string
			Attachments       []string `json:"attachments_base64"`
			Frame             string   `json:"frame_base64"`
		}
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	secret, done := secretFile(t, []byte(v.SecretHex), 0o600), 0
	for _, f := range v.Frames {
		want, err := base64.StdEncoding.DecodeString(f.Frame)
		if err != nil || bytes.Contains(want, []byte{0}) {
			continue // those with attachments: TestFrameIsSignedAndOpened has one
		}
		code, got, errOut := frames(t, []byte(f.JSON), "sign", f.Topic, "--raw", "--secret", secret, "--kid", v.KID)
		if code != 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %s", f.Name, got, errOut)
		}
		done++
	}
	if done < 2 {
		t.Errorf("%d vectors", done)
	}
}

func TestFrameTakesTheSecretOfABundle(t *testing.T) {
	b := wire.Bundle{V: 1, Rack: "rack-1", Tenant: "acme", Bearer: "b", KID: "k5", MACSecret: base64.StdEncoding.EncodeToString(testSecret)}
	file, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	bundle := secretFile(t, file, 0o600)
	_, frame, errOut := frames(t, []byte(`{"type":"event"}`), "sign", eventTopic, "--bundle", bundle)
	if !bytes.HasPrefix(frame, []byte("pr1 h1 k5 ")) {
		t.Fatal(errOut)
	}
	if code, _, errOut := frames(t, frame, "open", eventTopic, "--bundle", bundle); code != 0 {
		t.Error(errOut)
	}
}
