package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// operated runs the tool against an admin API that notes what it is asked, and answers the same each time.
func operated(t *testing.T, answer string, args ...string) (asked []string, said string, code int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body)))
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	var out bytes.Buffer
	code = run(t.Context(), append([]string{"--admin", s.URL}, args...), strings.NewReader(""), &out, &out)
	return asked, out.String(), code
}

func TestSettingsAreSentAsWhatTheyAre(t *testing.T) {
	const answer = `{"rack_id":"r1","version":7,"config":{"log.level":"debug","claims.paused":true},"changed":1,"applied":6}`
	asked, said, code := operated(t, answer, "host", "configure", "r1", "--set", "claims.paused=true", "--set", "log.level=debug", "--unset", "heartbeat.seconds")
	want := `POST /v1/admin/hosts/r1/configure application/json {"set":{"claims.paused":true,"log.level":"debug"},"unset":["heartbeat.seconds"]}`
	if code != 0 || len(asked) != 1 || asked[0] != want {
		t.Errorf("%d, asked %q", code, asked)
	}
	if !strings.Contains(said, "version 7") || !strings.Contains(said, "not applied it yet") || !strings.Contains(said, `"debug"`) {
		t.Errorf("said %s", said)
	}
	asked, said, code = operated(t, `{"rack_id":"r1","version":0,"config":{},"applied":0}`, "host", "configure", "r1")
	if code != 0 || len(asked) != 1 || asked[0] != "GET /v1/admin/hosts/r1/configure" || !strings.Contains(said, "its own file decides") {
		t.Errorf("%d, asked %q, said %s", code, asked, said)
	}
}

func TestFilesOfATaskAreUploadedBeforeIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked, said, code := operated(t, `{"task_id":"t1","sha256":"feed","size":8}`, "task", "submit", "--goal", "g", "--input", "b.txt="+file, "--input", "a.txt="+file)
	if code != 0 || len(asked) != 3 {
		t.Fatalf("%d, asked %q, said %s", code, asked, said)
	}
	for _, upload := range asked[:2] {
		if upload != "POST /v1/admin/files application/octet-stream the file" {
			t.Errorf("asked %s", upload)
		}
	}
	if want := `"inputs":[{"name":"a.txt","sha256":"feed","size":8},{"name":"b.txt","sha256":"feed","size":8}]`; !strings.Contains(asked[2], want) {
		t.Errorf("asked %s", asked[2])
	}
	if err := os.Truncate(file, 8<<20+1); err != nil {
		t.Fatal(err)
	}
	if asked, said, code := operated(t, `{}`, "task", "submit", "--goal", "g", "--input", "a.txt="+file); code != exitRefused || len(asked) > 0 || !strings.Contains(said, "8388608") {
		t.Errorf("%d, asked %q, said %s", code, asked, said)
	}
}
