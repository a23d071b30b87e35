package foreign_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
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

// window is how many bytes of each needle are looked for.
const window = 20

// needles are what must not be found, by their first eight bytes.
type needles map[[8]byte][]needle

type needle struct {
	what string
	text []byte
}

func (n needles) add(what string, text []byte) {
	text = text[:min(len(text), window)]
	k := [8]byte(text)
	if !slices.ContainsFunc(n[k], func(o needle) bool { return bytes.Equal(o.text, text) }) {
		n[k] = append(n[k], needle{what, bytes.Clone(text)})
	}
}

// forms adds a run of bytes as it may be written: raw, hexadecimal, and base64 of each alignment in both alphabets.
func (n needles) forms(what string, run []byte) {
	n.add(what+" as it is", run)
	n.add(what+" in hexadecimal", []byte(hex.EncodeToString(run)))
	for i := range 3 {
		n.add(fmt.Sprintf("%s in base64 (%d)", what, i), []byte(base64.RawStdEncoding.EncodeToString(run[i:])))
		n.add(fmt.Sprintf("%s in URL's base64 (%d)", what, i), []byte(base64.RawURLEncoding.EncodeToString(run[i:])))
	}
}

// picture adds windows of all of a picture but its head, which all pictures share.
func (n needles) picture(what string, jpeg []byte) (windows int) {
	const head, pieces, size = 700, 24, 2 * window
	for i := range pieces {
		at := head + i*(len(jpeg)-head-size)/pieces
		if at < head {
			break
		}
		run := jpeg[at : at+size]
		if distinct := len(slices.Compact(slices.Sorted(slices.Values(run[:window])))); distinct > 12 { // not of an even area
			n.forms(what, run)
			windows++
		}
	}
	return windows
}

// in looks for all of them.
func (n needles) in(data []byte) (found []string) {
	for i := 0; i+window <= len(data); i++ {
		for _, one := range n[[8]byte(data[i:i+8])] {
			if bytes.HasPrefix(data[i:], one.text) {
				found = append(found, one.what)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// below looks into each file below a folder, and says where what was found.
func (n needles) below(t *testing.T, root string) (found map[string][]string, bytesRead int) {
	t.Helper()
	found = map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		bytesRead += len(raw)
		if what := n.in(raw); len(what) > 0 {
			name, _ := filepath.Rel(root, path)
			found[name] = what
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, bytesRead
}

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

	found, n := screens(t, ctx, s, e, outside), needles{}
	for i, jpeg := range found {
		if n.picture(fmt.Sprintf("picture %d", i), jpeg) == 0 {
			t.Fatalf("picture %d of %d bytes has nothing to be known by", i, len(jpeg))
		}
	}
	bundle := newClient(t, s.Bundle).bundle
	secret, err := base64.StdEncoding.DecodeString(bundle.MACSecret)
	if err != nil {
		t.Fatal(err)
	}
	n.forms("the MAC secret", secret)
	n.forms("the bearer", []byte(bundle.Bearer))
	n.forms("the provider's key", []byte(providertest.Key))
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
func look(t *testing.T, s *sitetest.Site, n needles, root string) {
	t.Helper()
	for name, log := range map[string]string{"rackcloud's log": s.Cloud.Log(), "rackd's log": s.Rack.Log()} {
		if what := n.in([]byte(log)); len(what) > 0 || len(log) < 1000 {
			t.Errorf("%s, of %d bytes, holds %v", name, len(log), what)
		}
	}
	trajectories, bundle := 0, 0
	for _, when := range []string{"while they run", "after their end"} {
		files, size := n.below(t, root)
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
func control(t *testing.T, n needles, found [][]byte) {
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
		if files, _ := n.below(t, dir); len(files) != 1 {
			t.Errorf("planted as %s and not found", name)
		}
	}
}
