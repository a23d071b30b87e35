package firmware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/mcp"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
)

const mcpToken = "desk-0123456789abcdef0123456789abcdef"

// serveMCP has the bench's rack serve MCP over HTTP.
func (b *bench) serveMCP() (url string) {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		b.t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	tokens, err := mcp.ParseTokens([]byte("desk " + mcpToken))
	if err != nil {
		b.t.Fatal(err)
	}
	b.config.MCP.Listen, b.config.MCPTokens = address, tokens
	return "http://" + address + mcp.Path
}

type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+mcpToken)
	return http.DefaultTransport.RoundTrip(r)
}

func (b *bench) mcpClient(transport sdk.Transport) *sdk.ClientSession {
	b.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	var session *sdk.ClientSession
	var err error
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { // the address is opened after the control socket
		if session, err = client.Connect(b.t.Context(), transport, nil); err == nil {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatal(err)
		}
	}
	b.t.Cleanup(func() {
		session.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return session
}

// use calls a tool and returns its object, or the code of the refusal.
func use(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (object map[string]any, code string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	last := r.Content[len(r.Content)-1]
	if r.IsError {
		var refusal struct{ Error struct{ Code string } }
		if err := json.Unmarshal([]byte(last.(*sdk.TextContent).Text), &refusal); err != nil {
			t.Fatal(err)
		}
		return nil, refusal.Error.Code
	}
	object, _ = r.StructuredContent.(map[string]any)
	if picture, ok := last.(*sdk.ImageContent); ok {
		object["picture"] = picture.Data
	}
	return object, ""
}

func TestMCPActsOnPhonesUnderLeases(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	url := b.serveMCP()
	var log lockedText
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	desk := b.mcpClient(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{}}, DisableStandaloneSSE: true})
	one := func(more ...any) map[string]any {
		args := map[string]any{"slot": 1}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}

	t.Run("look and touch", func(t *testing.T) {
		phones, code := use(t, desk, "list_phones", nil)
		if code != "" || !strings.Contains(fmt.Sprint(phones), "serial:SIM0001 slot:1 state:ready") || !strings.Contains(fmt.Sprint(phones), "slot:2 state:empty") {
			t.Errorf("%s %v", code, phones)
		}
		seen, code := use(t, desk, "observe", one())
		if code != "" {
			t.Fatal(code)
		}
		screen := seen["screen"].(map[string]any)
		if screen["elements"] == "" || screen["width"].(float64) == 0 {
			t.Errorf("%v", screen)
		}
		// A person who looks takes no elements away from the client.
		if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1)}, nil); err != nil {
			t.Fatal(err)
		}
		if _, code := use(t, desk, "long_press", one("element", 0, "generation", screen["generation"])); code != "" {
			t.Errorf("an element of the last look: %s", code)
		}
		shot, code := use(t, desk, "take_screenshot", one())
		if picture, _ := shot["picture"].([]byte); code != "" || !bytes.HasPrefix(picture, []byte{0xff, 0xd8, 0xff}) {
			t.Errorf("%s, %d bytes", code, len(picture))
		}
		if _, code := use(t, desk, "tap", one("element", 0, "generation", screen["generation"])); code != "stale_element" {
			t.Errorf("an element of the look before: %q", code)
		}
		if _, code := use(t, desk, "observe", map[string]any{"slot": 2}); code != "slot_empty" {
			t.Errorf("an empty slot: %q", code)
		}
		if _, code := use(t, desk, "observe", map[string]any{"slot": 7}); code != "slot_unknown" {
			t.Errorf("no slot: %q", code)
		}
		if apps, code := use(t, desk, "list_apps", one()); code != "" || !strings.Contains(fmt.Sprint(apps["result"]), "com.") {
			t.Errorf("%s %v", code, apps)
		}
	})
	t.Run("a client's hold keeps people away", func(t *testing.T) {
		if _, code := use(t, desk, "hold_slot", one("seconds", 60)); code != "" {
			t.Fatal(code)
		}
		err := b.Call(t.Context(), "press_key", action.KeyArgs{SlotArgs: slotArgs(1), Key: "home"}, nil)
		if err == nil || !strings.Contains(err.Error(), "held by mcp desk until") {
			t.Errorf("a person's act: %v", err)
		}
		if _, code := use(t, desk, "press_key", one("key", "home")); code != "" {
			t.Errorf("the client's own: %s", code)
		}
		if _, code := use(t, desk, "release_slot", one()); code != "" {
			t.Errorf("release: %s", code)
		}
		if err := b.Call(t.Context(), "press_key", action.KeyArgs{SlotArgs: slotArgs(1), Key: "home"}, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if _, code := use(t, desk, "hold_slot", one("seconds", 86400)); code != "bad_request" {
			t.Errorf("a day: %q", code)
		}
	})
	t.Run("a client honours the leases of others", func(t *testing.T) {
		held, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Task, Who: "kim", TaskID: "t1", Attempt: 1}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		for tool, args := range map[string]map[string]any{
			"press_key": one("key", "home"), "swipe": one("direction", "up"), "launch_app": one("package", "com.phonerack.shop"),
			"input_text": one("text", "x"), "hold_slot": one(), "release_slot": one(), "scroll_to": one("text", "x", "direction", "down"),
		} {
			if _, code := use(t, desk, tool, args); code != "slot_busy" {
				t.Errorf("%s: %q", tool, code)
			}
		}
		if _, code := use(t, desk, "observe", one()); code != "" {
			t.Errorf("looking needs none: %s", code)
		}
	})
	t.Run("acts are in the audit log", func(t *testing.T) {
		if !strings.Contains(log.String(), `msg="action done" boot=`) || !strings.Contains(log.String(), `action=tool_press_key actor="mcp desk" via=mcp-http`) {
			t.Errorf("%s", log.String())
		}
		if strings.Contains(log.String(), mcpToken) {
			t.Error("the token is in the log")
		}
	})
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// pipes are a byte stream through the control socket, as rackctl mcp makes it.
func (b *bench) talk(ctx context.Context) (*sdk.ClientSession, <-chan error) {
	b.t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := b.Stream(ctx, "mcp", struct{}{}, action.Pipes{In: inRead, Out: outWrite}, nil)
		outWrite.CloseWithError(err)
		inRead.Close()
		ended <- err
	}()
	return b.mcpClient(&sdk.IOTransport{Reader: outRead, Writer: inWrite}), ended
}

func TestMCPOverTheControlSocket(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.MCP.Permissions = []string{"stop", "clipboard"}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	session, ended := b.talk(t.Context())
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "stop_app") || slices.Contains(names, "read_document") || !slices.Contains(names, "list_skills") {
		t.Errorf("tools: %v", names)
	}
	if _, code := use(t, session, "press_key", map[string]any{"slot": 1, "key": "home"}); code != "" {
		t.Errorf("press_key: %s", code)
	}
	// Whoever holds a slot with rackctl holds it for the client that runs under the same login.
	if err := b.Call(t.Context(), "hold", action.HoldArgs{SlotArgs: slotArgs(1)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, code := use(t, session, "press_key", map[string]any{"slot": 1, "key": "home"}); code != "" {
		t.Errorf("under the person's own hold: %s", code)
	}
	session.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the conversation does not end")
	}

	t.Run("too many at once", func(t *testing.T) {
		for range 16 {
			b.talk(t.Context())
		}
		err := b.Stream(t.Context(), "mcp", struct{}{}, action.Pipes{In: strings.NewReader("")}, nil)
		if err == nil || !strings.Contains(err.Error(), "16 of MCP clients at once") {
			t.Errorf("%v", err)
		}
	})
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestMCPSwitchedOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	url := b.serveMCP()
	b.config.MCP.Enabled = false
	b.start()
	err := b.Stream(t.Context(), "mcp", struct{}{}, action.Pipes{In: strings.NewReader("")}, nil)
	if err == nil || !strings.Contains(err.Error(), "mcp.enabled") {
		t.Errorf("%v", err)
	}
	if answer, err := http.Post(url, "application/json", strings.NewReader("{}")); err == nil {
		answer.Body.Close()
		t.Errorf("somebody listens: %s", answer.Status)
	}
}
