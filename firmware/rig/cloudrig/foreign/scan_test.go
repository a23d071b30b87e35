package foreign_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/agent/planner/provider/providertest"
	"phonerack/firmware/rig/cloudrig/sitetest"
)

// eye is the provider of the site: it keeps each picture that it is shown, and answers as the test says.
type eye struct {
	mu       sync.Mutex // guards what follows
	pictures [][]byte
	wait     int // steps before it finishes
	answer   func(*providertest.Seen) providertest.Reply
	called   chan struct{} // a call of answer has begun
}

func (e *eye) reply(seen *providertest.Seen) providertest.Reply {
	e.mu.Lock()
	if len(seen.Screen) > 0 {
		e.pictures = append(e.pictures, bytes.Clone(seen.Screen))
	}
	answer, wait := e.answer, e.wait
	e.wait = max(0, e.wait-1)
	e.mu.Unlock()
	switch {
	case answer != nil:
		select {
		case e.called <- struct{}{}:
		default:
		}
		return answer(seen)
	case wait > 0:
		return providertest.Call("wait", `{"ms":100}`)
	}
	return providertest.Call("finish", `{"success":true,"message":"seen"}`)
}

func (e *eye) answers(wait int, by func(*providertest.Seen) providertest.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wait, e.answer = wait, by
	select {
	case <-e.called: // of before
	default:
	}
}

// repeats are providers that fail and say back what they were sent.
var repeats = map[string]func(*providertest.Seen) providertest.Reply{
	"a refusal": func(s *providertest.Seen) providertest.Reply {
		return providertest.Status(400, "image: invalid: "+base64.StdEncoding.EncodeToString(s.Screen))
	},
	"an error of the server": func(s *providertest.Seen) providertest.Reply {
		return providertest.Raw(500, "application/json", fmt.Sprintf(`{"error":{"message":%q,"body":%q}}`, s.Screen, s.Body))
	},
	"a decision of it": func(s *providertest.Seen) providertest.Reply {
		return providertest.Call("tap", `{"element":"`+base64.StdEncoding.EncodeToString(s.Screen)+`"}`)
	},
	"a text of it": func(s *providertest.Seen) providertest.Reply {
		return providertest.Text(base64.StdEncoding.EncodeToString(s.Screen))
	},
}

const withPictures = "[planner]\ntransport = \"cloud\"\npictures = \"always\"\n[log]\nlevel = \"debug\"\n[cloud]\nidentity = %q\n"

// TestNoScreenshotAndNoSecretIsWrittenDown lets a site send screens in each way there is, and then looks into every file
// that its programs have written, and into their logs at the finest level. A rack's trajectories alone have pictures.
func TestNoScreenshotAndNoSecretIsWrittenDown(t *testing.T) {
	if _, err := sitetest.Build(t.Context()); err != nil { // outside of what is looked into
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "scan") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	outside := t.TempDir()
	t.Setenv("TMPDIR", root) // of this process, which makes the site's folder there, and of its programs
	e := &eye{called: make(chan struct{}, 1)}
	provider, err := providertest.Start(providertest.Config{Default: e.reply, Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	s := sitetest.New(t, t.Context(), sitetest.Options{Phones: 2, Config: withPictures, Flags: []string{"--log-level", "debug"}})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	key := filepath.Join(outside, "provider.key")
	if err := os.WriteFile(key, []byte(providertest.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Cloud.Ask(ctx, nil, "provider", "add", "eye", "--provider", "anthropic", "--model", "fake-model-1", "--base-url", provider.URL,
		"--timeout", "8s", "--option", `{"max_attempts":1}`, "--key", key, "--activate"); err != nil {
		t.Fatal(err)
	}
	work(t, ctx, s, e)

	found, n := screens(t, ctx, s, e, outside), sitetest.Needles{}
	for i, jpeg := range found {
		if n.Picture(fmt.Sprintf("picture %d", i), jpeg) == 0 {
			t.Fatalf("picture %d of %d bytes has nothing to be known by", i, len(jpeg))
		}
	}
	bundle := newClient(t, s.Bundle).bundle
	secret, err := base64.StdEncoding.DecodeString(bundle.MACSecret)
	if err != nil {
		t.Fatal(err)
	}
	n.Forms("the MAC secret", secret)
	n.Forms("the bearer", []byte(bundle.Bearer))
	n.Forms("the provider's key", []byte(providertest.Key))
	look(t, s, n, root)
	control(t, n, found)
}

// work makes screens go their ways.
func work(t *testing.T, ctx context.Context, s *sitetest.Site, e *eye) {
	t.Helper()
	done := func(what string) {
		t.Helper()
		id, err := s.Cloud.Submit(ctx, "--goal", "look: "+what)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Cloud.Await(ctx, id); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	e.answers(4, nil)
	done("good answers")
	for what, by := range repeats {
		e.answers(0, func(seen *providertest.Seen) providertest.Reply {
			e.answers(0, nil) // the next turn is a good one
			return by(seen)
		})
		done(what)
	}
	// rackcloud and its broker are killed in the middle of a call, with the screen in its memory.
	hang := make(chan struct{})
	e.answers(0, func(seen *providertest.Seen) providertest.Reply {
		<-hang
		return providertest.Text("late")
	})
	id, err := s.Cloud.Submit(ctx, "--goal", "look: a kill")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.called:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	s.Cloud.Kill()
	close(hang)
	e.answers(0, nil)
	if err := s.Cloud.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cloud.Await(ctx, id); err != nil {
		t.Fatal(err)
	}
}

// screens gives the pictures of tasks and that of a command.
func screens(t *testing.T, ctx context.Context, s *sitetest.Site, e *eye, outside string) [][]byte {
	t.Helper()
	out := filepath.Join(outside, "screen.jpg")
	if err := s.Cloud.Ask(ctx, nil, "command", "send", "screenshot", newClient(t, s.Bundle).bundle.Rack, "--slot", "2", "--out", out); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pictures) < 8 {
		t.Fatalf("the provider has seen %d pictures", len(e.pictures))
	}
	return append(slices.Clone(e.pictures), raw)
}

// look wants nothing to be found where it must not be: while the programs run, and when they have stopped.
func look(t *testing.T, s *sitetest.Site, n sitetest.Needles, root string) {
	t.Helper()
	for name, log := range map[string]string{"rackcloud's log": s.Cloud.Log(), "rackd's log": s.Rack.Log()} {
		if what := n.In([]byte(log)); len(what) > 0 || len(log) < 1000 {
			t.Errorf("%s, of %d bytes, holds %v", name, len(log), what)
		}
	}
	trajectories, bundle := 0, 0
	for _, when := range []string{"while they run", "after their end"} {
		files, size := n.Below(t, root)
		for name, what := range files {
			switch dir := filepath.Base(filepath.Dir(filepath.Dir(name))); {
			case dir == "tasks" && filepath.Ext(name) == ".jpg":
				trajectories++
			case strings.HasSuffix(s.Bundle, name):
				bundle++
			default:
				t.Errorf("%s: %s holds %v", when, name, what)
			}
		}
		if size < 100_000 {
			t.Errorf("%s: only %d bytes were looked at", when, size)
		}
		if err := s.Cloud.Close(); err != nil {
			t.Error(err)
		}
		s.Rack.Kill()
	}
	if trajectories == 0 || bundle == 0 {
		t.Errorf("found in %d trajectories and %d bundles: the look is blind", trajectories, bundle)
	}
}

// control plants each form of a picture into a file and wants it to be found.
func control(t *testing.T, n sitetest.Needles, found [][]byte) {
	t.Helper()
	noise := bytes.Repeat([]byte{0, 1, 2, 0xff}, 5000)
	jpeg := found[len(found)-1]
	quoted, err := json.Marshal(base64.URLEncoding.EncodeToString(append([]byte("xx"), jpeg...)))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"raw": jpeg, "a piece of it": jpeg[len(jpeg)/3 : 2*len(jpeg)/3],
		"base64":                []byte(base64.StdEncoding.EncodeToString(jpeg)),
		"base64 after one byte": []byte(base64.StdEncoding.EncodeToString(append([]byte("x"), jpeg...))),
		"base64 after two":      quoted, "hexadecimal": []byte(hex.EncodeToString(jpeg)),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "blk"), slices.Concat(noise, text, noise), 0o600); err != nil {
			t.Fatal(err)
		}
		if files, _ := n.Below(t, dir); len(files) != 1 {
			t.Errorf("planted as %s and not found", name)
		}
	}
}
