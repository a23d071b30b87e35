package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Bounds of what is taken from an answer.
const (
	maxCalls  = 64   // counted; a list that is longer is no answer
	maxItems  = 1024 // of any list
	maxSaid   = 4096 // bytes of a model's text that are kept for a failure's detail
	maxTokenN = 1 << 31
)

// end is how an answer ended. The zero value is an end that is not known, and
// so none that is trusted.
type end int

const (
	unfinished end = iota // paused, in progress, or for a reason that is not known
	ended                 // by the model itself
	cutOff                // by a limit of tokens
	declined              // the model refused
	filtered              // by the provider's content filter
)

// answer is what the three protocols have in common.
type answer struct {
	fault  *fault // the body is an error, whatever its status
	end    end
	reason string // the end in the provider's words
	said   []byte // text beside the calls
	calls  []call
	usage  Usage
	model  string
	id     string
}

// call is one call as the model made it. Arguments are nil if they are missing,
// or not of the shape that the protocol prescribes.
type call struct {
	name      string // outgoing
	arguments json.RawMessage
}

// fault is an error that a provider describes.
type fault struct {
	status        int // the status that it names itself, 0 if none
	kind, message string
}

func (a *answer) say(text string) {
	if text == "" || len(a.said) >= maxSaid {
		return
	}
	if len(a.said) > 0 {
		a.said = append(a.said, ' ')
	}
	a.said = append(a.said, text[:min(len(text), maxSaid-len(a.said))]...)
}

// judge turns an answer into a decision, in the order of the package comment.
// The limit is the number of tokens that the answer was allowed.
func (q *asked) judge(a *answer, limit int) (planner.Decision, *wire.Refusal) {
	none := planner.Decision{}
	refuse := func(code wire.Code, args map[string]any) (planner.Decision, *wire.Refusal) {
		return none, wire.Refuse(code, args)
	}
	switch a.end {
	case cutOff:
		return refuse(wire.Truncated, nil)
	case declined:
		return refuse(wire.Refused, map[string]any{"detail": q.quote(string(a.said))})
	case filtered:
		return refuse(wire.ContentFiltered, nil)
	case unfinished:
		return refuse(wire.NoToolCall, map[string]any{"detail": q.quote(fmt.Sprintf("its answer ended with %q", a.reason))})
	}
	if a.usage.Out >= limit { // some servers report a call that was cut off as a whole one
		return refuse(wire.Truncated, nil)
	}
	switch len(a.calls) {
	case 1:
	case 0:
		detail := string(a.said)
		if detail == "" {
			detail = "its answer ended with " + strconv.Quote(a.reason)
		}
		return refuse(wire.NoToolCall, map[string]any{"detail": q.quote(detail)})
	default:
		return refuse(wire.MultipleToolCalls, map[string]any{"count": len(a.calls)})
	}
	c := a.calls[0]
	tool, offered := q.names[c.name]
	if !offered {
		return refuse(wire.UnknownTool, map[string]any{"tool": q.quote(c.name), "known": toolNames(q.req.Tools)})
	}
	d := planner.Decision{Tool: tool, Arguments: bytes.Clone(c.arguments), Tokens: a.usage.In + a.usage.Out}
	if err := planner.Validate(d, q.req.Tools); err != nil {
		r := wire.From(err)
		for _, name := range []string{"path", "reason"} { // may hold names that the model made up
			if s, ok := r.Args[name].(string); ok {
				r.Args[name] = bounded(s, maxDetail)
			}
		}
		return none, r
	}
	return d, nil
}

func toolNames(tools []planner.Tool) []string {
	list := make([]string, len(tools))
	for i := range tools {
		list[i] = tools[i].Name
	}
	return list
}

// fields are the members of one JSON object, read strictly: names as they are
// written, none twice. (encoding/json into a struct would take finish_Reason for
// finish_reason, and the last of two.)
type fields map[string]json.RawMessage

var errShape = errors.New("it is not of this protocol's shape")

// object reads one level.
func object(raw []byte) (fields, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errShape
	}
	m := fields{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, errShape
		}
		name, ok := key.(string)
		if _, twice := m[name]; !ok || twice || len(m) >= maxItems {
			return nil, errShape
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errShape
		}
		m[name] = value
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('}') {
		return nil, errShape
	}
	if dec.More() {
		return nil, errShape
	}
	return m, nil
}

// list reads an array; null and nothing are not one.
func list(raw []byte) ([]json.RawMessage, error) {
	var l []json.RawMessage
	if none(raw) || json.Unmarshal(raw, &l) != nil || len(l) > maxItems {
		return nil, errShape
	}
	return l, nil
}

func none(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// text is a member that is a string; any other is "".
func (m fields) text(name string) string {
	raw := m[name]
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// count is a member that is a number of tokens; any other is 0.
func (m fields) count(name string) int {
	n, err := strconv.ParseFloat(string(m[name]), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > maxTokenN {
		return 0
	}
	return int(n)
}

// textual reads a call whose arguments are JSON in a string. An empty string is
// how some servers write {}.
func textual(m fields) call {
	c := call{name: m.text("name")}
	raw := m["arguments"]
	if len(raw) == 0 || raw[0] != '"' {
		return c
	}
	if c.arguments = json.RawMessage(m.text("arguments")); len(bytes.TrimSpace(c.arguments)) == 0 {
		c.arguments = json.RawMessage("{}")
	}
	return c
}

// faultOf finds the error in a body, in the forms {"error":{...}}, {"error":"..."},
// {"object":"error",...} and {"type":"error",...}; nil if there is none.
func faultOf(m fields) *fault {
	e := m
	if raw := m["error"]; !none(raw) {
		inner, err := object(raw)
		if err != nil {
			return &fault{message: m.text("error")}
		}
		e = inner
	} else if m.text("object") != "error" && m.text("type") != "error" {
		return nil
	}
	f := &fault{kind: e.text("type"), message: e.text("message")}
	code := e.text("code")
	if code == "" {
		code = string(e["code"])
	}
	if n, err := strconv.Atoi(code); err == nil {
		if n >= 400 && n <= 599 {
			f.status = n
		}
	} else if code != "" && code != "null" {
		f.kind = strings.TrimSpace(f.kind + " " + code)
	}
	return f
}

// describe reads the body of a failure as well as it can be read.
func describe(body []byte) *fault {
	m, err := object(body)
	if err != nil {
		return &fault{}
	}
	if f := faultOf(m); f != nil {
		return f
	}
	for _, name := range []string{"message", "detail"} {
		if s := m.text(name); s != "" {
			return &fault{message: s}
		}
	}
	return &fault{}
}

// readAnswer reads a body that came with a success.
func (c *Client) readAnswer(body []byte) (answer, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return answer{}, errors.New("it is not JSON")
	}
	a, err := protocols[c.cfg.Provider].read(body)
	if err == nil && len(a.calls) > maxCalls {
		err = errShape
	}
	return a, err
}
