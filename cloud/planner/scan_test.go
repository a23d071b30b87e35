package planner_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// testScreenIsNowhere sends screens through each way that a request can take, and looks for their bytes in all that was
// written meanwhile: the database, its log, the temporary folder, the process's own log, the answers.
func testScreenIsNowhere(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for _, kind := range []string{store.Anthropic, store.OpenAI, store.OpenAIResponses, store.Scripted} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			key := pt.Key
			if kind == store.Scripted {
				key = ""
			}
			p := b.profile(kind)
			p.Timeout = 2 * time.Second
			b.activate(p, key)
			ref := b.lease()
			screen := screenshot(t)
			echo := base64.StdEncoding.EncodeToString(screen)
			replies := append(failures(), good,
				pt.Status(400, "messages.0.content.0.image.source: invalid: "+echo), pt.Text(echo), pt.Call(echo, "{}"), pt.Call("tap", `{"element":"`+echo+`"}`),
				pt.Raw(http.StatusInternalServerError, "application/json", `{"error":{"type":"`+echo+`","message":"`+string(screen)+`"}}`), pt.Refusal(echo),
				pt.Disguised(400, echo), pt.CutBody(pt.Text(echo)))
			b.fake.Script(replies...)
			var told []byte
			for i := range replies {
				at := ref
				if i%5 == 4 {
					at = store.Ref{} // outside of a task
				}
				req := ask(store.NewID(), at)
				for range 2 { // and once more, answered from its row
					d, err := b.Decide(t.Context(), rack1, req, screen, nil)
					told = append(append(told, d.Arguments...), d.ToolName...)
					if err != nil {
						raw, _ := wire.From(err).MarshalJSON()
						told = append(append(told, raw...), err.Error()...)
					}
				}
			}
			for _, c := range []func(*wire.PlanRequest){
				func(r *wire.PlanRequest) { r.HostID = "r2" },
				func(r *wire.PlanRequest) { r.Attempt = 9 },
				func(r *wire.PlanRequest) { r.Tools = nil },
			} {
				req := ask(store.NewID(), ref)
				c(&req)
				if _, err := b.Decide(t.Context(), rack1, req, screen, nil); err == nil {
					t.Error("a wrong request was answered")
				}
			}
			needles := needles(screen)
			look := func(name string, raw []byte) {
				for what, n := range needles {
					if bytes.Contains(raw, n) {
						t.Errorf("%s holds the screen as %s", name, what)
					}
				}
			}
			look("the log", []byte(b.logs.String()))
			look("an answer", told)
			files := 0
			for _, root := range []string{b.dir, tmp} {
				ok(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return err
					}
					raw, err := os.ReadFile(path)
					files++
					look(path, raw)
					return err
				}))
			}
			if files < 2 {
				t.Fatalf("only %d files were looked at", files)
			}
			if kind == store.Scripted {
				return
			}
			// The look finds a screen where there is one: it went out on the wire.
			found := false
			for _, s := range b.fake.Seen() {
				for _, n := range needles {
					found = found || bytes.Contains(s.Body, n)
				}
			}
			if !found {
				t.Error("no needle is in the provider's request: the look is blind")
			}
		})
	}
}

// needles are pieces from the middle of the screen as they might be written: raw, as text that a log escapes, as numbers,
// and as base64 of each alignment, of which a screen's has one.
func needles(screen []byte) map[string][]byte {
	piece := screen[len(screen)/2 : len(screen)/2+48]
	list := strings.Trim(fmt.Sprint(piece[:16]), "[]")
	asJSON, _ := json.Marshal(string(piece[:16]))
	m := map[string][]byte{
		"raw bytes": piece[:16], "hex": []byte(hex.EncodeToString(piece[:16])), "a list of numbers": []byte(list),
		"a JSON list": []byte(strings.ReplaceAll(list, " ", ",")), "quoted text": []byte(strings.Trim(strconv.Quote(string(piece[:16])), `"`)),
		"JSON text": bytes.Trim(asJSON, `"`),
	}
	for i := range 3 {
		std := base64.StdEncoding.EncodeToString(piece[i : i+24])
		m["base64 "+string(rune('0'+i))] = []byte(std)
		m["base64url "+string(rune('0'+i))] = []byte(base64.URLEncoding.EncodeToString(piece[i : i+24]))
	}
	return m
}
