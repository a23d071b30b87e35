package planner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"phonerack/sync/wire"
)

// Bounds of a request, which hold on every transport. Over MQTT all of it but the screen is in one [wire.MaxJSON].
const (
	maxIDBytes     = 63 // of request and task ids
	maxTextBytes   = wire.MaxJSON
	maxScreenBytes = wire.MaxFrame
	maxTools       = 256
	maxToolName    = 200
)

var jpegMagic = []byte{0xFF, 0xD8, 0xFF}

// check refuses what is not a request of this caller. Nothing of it was stored then.
func check(c Caller, req *wire.PlanRequest, screen []byte) *wire.Refusal {
	if req.HostID != c.Host {
		return wire.Refuse(wire.HostMismatch, map[string]any{"host": bounded(req.HostID)})
	}
	if !idOK(req.RequestID) {
		return bad("request_id must have 1 to %d visible ASCII characters", maxIDBytes)
	}
	if (req.TaskID == "") != (req.Attempt == 0) || req.Attempt < 0 {
		return bad("task_id and attempt must be both there or both absent, and attempts count from 1")
	}
	if req.TaskID != "" && !idOK(req.TaskID) {
		return bad("task_id must have 1 to %d visible ASCII characters", maxIDBytes)
	}
	if strings.TrimSpace(req.UserPrompt) == "" {
		return bad("user_prompt is empty")
	}
	if !utf8.ValidString(req.SystemPrompt) || !utf8.ValidString(req.UserPrompt) {
		return bad("the prompts must be UTF-8")
	}
	if len(screen) > 0 && !bytes.HasPrefix(screen, jpegMagic) {
		return bad("the screen is no JPEG")
	}
	if len(screen) > maxScreenBytes {
		return tooLarge("screen", len(screen), maxScreenBytes)
	}
	return checkTools(req)
}

func checkTools(req *wire.PlanRequest) *wire.Refusal {
	if n := len(req.Tools); n == 0 || n > maxTools {
		return bad("%d tools are offered where 1 to %d are allowed", n, maxTools)
	}
	size := len(req.SystemPrompt) + len(req.UserPrompt)
	seen := make(map[string]bool, len(req.Tools))
	for i := range req.Tools {
		t := &req.Tools[i]
		switch {
		case t.Name == "" || len(t.Name) > maxToolName || !graphic(t.Name):
			return bad("the name of tool %d must have 1 to %d visible characters", i, maxToolName)
		case seen[t.Name]:
			return bad("two tools are called %q", t.Name)
		case wire.Unmarshal(t.InputSchema, new(json.RawMessage)) != nil || bytes.TrimSpace(t.InputSchema)[0] != '{':
			return bad("the input_schema of tool %q is no JSON object", t.Name)
		case !utf8.ValidString(t.Description):
			return bad("the description of tool %q must be UTF-8", t.Name)
		}
		seen[t.Name] = true
		size += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	if size > maxTextBytes {
		return tooLarge("planner request", size, maxTextBytes)
	}
	return nil
}

func bad(format string, args ...any) *wire.Refusal {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(format, args...)})
}

func tooLarge(what string, size, limit int) *wire.Refusal {
	return wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": what, "size": size, "limit": limit})
}

func idOK(id string) bool {
	if id == "" || len(id) > maxIDBytes {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

func graphic(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// bounded shortens what a stranger wrote, for answers and logs.
func bounded(s string) string {
	if len(s) > maxIDBytes {
		s = s[:maxIDBytes]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// hashOf is the SHA-256 of what a request asks, however its JSON was written: each part with its length, the screen by its
// own hash.
func hashOf(req *wire.PlanRequest, screen []byte) (sum [32]byte) {
	size := 200 + len(req.SystemPrompt) + len(req.UserPrompt)
	for i := range req.Tools {
		t := &req.Tools[i]
		size += 20 + len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	b := make([]byte, 0, size)
	add := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, s := range []string{req.RequestID, req.HostID, req.TaskID, req.SystemPrompt, req.UserPrompt} {
		add(s)
	}
	b = binary.AppendUvarint(b, uint64(req.Attempt))
	for i := range req.Tools {
		t := &req.Tools[i]
		add(t.Name)
		add(t.Description)
		add(string(compact(t.InputSchema)))
	}
	if len(screen) > 0 {
		sum = sha256.Sum256(screen)
	}
	return sha256.Sum256(append(b, sum[:]...))
}

// compact leaves out the white space of JSON that is valid.
func compact(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i, quoted, escaped := 0, false, false; i < len(raw); i++ {
		c := raw[i]
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		out = append(out, c)
	}
	return out
}
