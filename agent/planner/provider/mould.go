package provider

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// What each request has of its own stands in a mould as one of these words. They are random and never leave the process,
// so that no text from a phone can hold one.
var words = map[gap]string{
	screenGap: "screen:" + rand.Text(),
	systemGap: "system:" + rand.Text(),
	userGap:   "user:" + rand.Text(),
}

// gap is a place in a mould.
type gap int

const (
	screenGap gap = iota // within a string
	systemGap            // a string
	userGap              // a string
)

// mould is a request as the SDK encodes it, with gaps for prompts and screen. Racks offer the same tools in each turn: by way of
// the SDKs, which copy and scan each level of a request, a call with twenty tools took half a millisecond to encode.
type mould struct {
	names names
	parts [][]byte // what stands before each gap, and after the last one
	gaps  []gap
}

// moulds remembers moulds by all that goes into one. The profile is part of that: another model, option or address makes
// another mould.
var moulds = struct {
	mu    sync.Mutex // guards what follows
	known map[string]*mould
	bytes int
}{known: map[string]*mould{}}

const (
	maxMoulds = 8 << 20 // bytes that are remembered; at the bound it starts anew
	maxMould  = 1 << 20 // of one that is remembered
)

// mouldOf finds or makes the mould of a request, or returns a BadRequest.
func (c *Client) mouldOf(req *planner.Request) (*mould, error) {
	key, err := c.mouldKey(req)
	if err != nil {
		return nil, badRequest("it cannot be encoded").Because(err)
	}
	moulds.mu.Lock()
	m := moulds.known[string(key)]
	moulds.mu.Unlock()
	if m != nil {
		return m, nil
	}
	if m, err = c.cast(req); err != nil {
		return nil, err
	}
	size := len(key)
	for _, p := range m.parts {
		size += len(p)
	}
	if size > maxMould {
		return m, nil
	}
	moulds.mu.Lock()
	defer moulds.mu.Unlock()
	if moulds.bytes+size > maxMoulds {
		clear(moulds.known)
		moulds.bytes = 0
	}
	if moulds.known[string(key)] == nil {
		moulds.known[string(key)] = m
		moulds.bytes += size
	}
	return m, nil
}

// mouldKey writes down all that goes into a mould, each part with its length.
func (c *Client) mouldKey(req *planner.Request) ([]byte, error) {
	options, err := json.Marshal(c.cfg.Options)
	if err != nil {
		return nil, err
	}
	size := len(options) + 200
	for i := range req.Tools {
		t := &req.Tools[i]
		size += len(t.Name) + len(t.Description) + len(t.InputSchema) + 24
	}
	key := make([]byte, 0, size)
	add := func(s string) {
		key = strconv.AppendInt(key, int64(len(s)), 10)
		key = append(append(key, ':'), s...)
	}
	for _, s := range []string{string(c.cfg.Provider), c.cfg.Model, c.base.Hostname(), string(options)} {
		add(s)
	}
	add(fmt.Sprint(req.SystemPrompt != "", len(req.Screen) > 0))
	for i := range req.Tools {
		t := &req.Tools[i]
		add(t.Name)
		add(t.Description)
		add(string(t.InputSchema))
	}
	return key, nil
}

// cast makes a mould by the SDK. A tool that cannot be asked for is found here.
func (c *Client) cast(req *planner.Request) (*mould, error) {
	n, err := namesOf(req.Tools)
	if err != nil {
		return nil, err
	}
	for i := range req.Tools {
		if _, err := planner.ParseSchema(req.Tools[i].InputSchema); err != nil {
			return nil, badRequest("a tool's schema cannot be checked").Because(err)
		}
	}
	empty := *req
	empty.UserPrompt = words[userGap]
	left := map[gap]string{userGap: strconv.Quote(words[userGap])}
	if req.SystemPrompt != "" {
		empty.SystemPrompt = words[systemGap]
		left[systemGap] = strconv.Quote(words[systemGap])
	}
	if len(req.Screen) > 0 {
		left[screenGap] = words[screenGap]
	}
	body, err := protocols[c.cfg.Provider].encode(c, &empty, words[screenGap])
	if err != nil {
		return nil, badRequest("it cannot be encoded").Because(err)
	}
	m := &mould{names: n}
	for len(left) > 0 {
		at, next := len(body), gap(-1)
		for g, word := range left {
			if n := bytes.Index(body, []byte(word)); n >= 0 && n < at {
				at, next = n, g
			}
		}
		if next < 0 {
			return nil, fmt.Errorf("provider: a request of %s has no place for prompts or screen", c.cfg.Provider)
		}
		m.parts, m.gaps = append(m.parts, body[:at]), append(m.gaps, next)
		body = body[at+len(left[next]):]
		delete(left, next)
	}
	m.parts = append(m.parts, body)
	return m, nil
}

// fill makes the body of one request.
func (m *mould) fill(req *planner.Request) ([]byte, error) {
	user, err := wire.Marshal(req.UserPrompt)
	if err != nil {
		return nil, err
	}
	system, err := wire.Marshal(req.SystemPrompt)
	if err != nil {
		return nil, err
	}
	size := len(user) + len(system) + base64.StdEncoding.EncodedLen(len(req.Screen))
	for _, p := range m.parts {
		size += len(p)
	}
	body := make([]byte, 0, size)
	for i, p := range m.parts {
		body = append(body, p...)
		if i == len(m.gaps) {
			break
		}
		switch m.gaps[i] {
		case screenGap:
			body = base64.StdEncoding.AppendEncode(body, req.Screen)
		case systemGap:
			body = append(body, system...)
		case userGap:
			body = append(body, user...)
		}
	}
	return body, nil
}
