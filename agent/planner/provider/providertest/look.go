package providertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Protocol is what a request speaks.
type Protocol string

// Protocols, by their paths.
const (
	Messages        Protocol = "/v1/messages"
	ChatCompletions Protocol = "/v1/chat/completions"
	Responses       Protocol = "/v1/responses"
)

// Seen is a request as the server understood it.
type Seen struct {
	Protocol     Protocol // "" if the path is none of theirs
	Header       http.Header
	Body         []byte
	Model        string
	MaxTokens    int
	System, User string
	Screen       []byte // the picture, decoded from base64
	Tools        []Tool
	Choice       string // how a call is forced: required, auto, the name of a tool, or "" for nothing
	Single       bool   // several calls are forbidden
	Problem      string // why the server refuses it, or ""

	status   int      // of that refusal
	json     []byte   // Body, where numbers stand for pictures
	pictures [][]byte // in base64
}

// Tool is a tool as it was offered.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
	Strict            *bool // nil: left out
}

// problem is a request that is refused with a status.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func bad(format string, args ...any) error {
	return &problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// look reads a request strictly.
func (s *Server) look(r *http.Request, body []byte) *Seen {
	seen := &Seen{Header: r.Header.Clone(), Body: body}
	err := s.check(seen, r)
	if p, ok := errors.AsType[*problem](err); ok {
		seen.Problem, seen.status = p.text, p.status
	} else if err != nil {
		seen.Problem, seen.status = err.Error(), http.StatusBadRequest
	}
	return seen
}

func (s *Server) check(seen *Seen, r *http.Request) error {
	switch p := Protocol(r.URL.Path); p {
	case Messages, ChatCompletions, Responses:
		seen.Protocol = p
	default:
		return &problem{http.StatusNotFound, "no such path: " + r.URL.Path}
	}
	if err := s.checkHead(seen, r); err != nil {
		return err
	}
	if len(seen.Body) > maxBody {
		return &problem{http.StatusRequestEntityTooLarge, "request exceeds the maximum size"}
	}
	if s.cfg.Unchecked {
		return nil
	}
	if err := seen.cutPictures(); err != nil {
		return err
	}
	read := map[Protocol]func(*Server, *Seen) error{
		Messages: (*Server).readMessages, ChatCompletions: (*Server).readChat, Responses: (*Server).readResponses,
	}[seen.Protocol]
	if err := read(s, seen); err != nil {
		return err
	}
	return checkTools(seen)
}

// checkHead checks the method, the headers and the key.
func (s *Server) checkHead(seen *Seen, r *http.Request) error {
	if r.Method != http.MethodPost {
		return &problem{http.StatusMethodNotAllowed, "method " + r.Method}
	}
	if r.URL.RawQuery != "" {
		return bad("a query: %s", r.URL.RawQuery)
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return &problem{http.StatusUnsupportedMediaType, "content type " + r.Header.Get("Content-Type")}
	}
	if r.ContentLength != int64(len(seen.Body)) {
		return bad("content length %d of %d bytes", r.ContentLength, len(seen.Body))
	}
	if n := r.Header.Get("X-Stainless-Retry-Count"); n != "0" {
		return bad("the SDK repeats by itself: retry count %q", n)
	}
	for _, name := range []string{"Cookie", "Proxy-Authorization", "Traceparent", "Openai-Organization", "Openai-Project"} {
		if r.Header.Get(name) != "" {
			return bad("unexpected header %s", name)
		}
	}
	if seen.Protocol == Messages && r.Header.Get("Anthropic-Version") != "2023-06-01" {
		return bad("anthropic-version: header is required")
	}
	var keys []string
	for _, name := range []string{"X-Api-Key", "Api-Key", "Authorization"} {
		for _, v := range r.Header.Values(name) {
			if name == "Authorization" {
				var bearer bool
				if v, bearer = strings.CutPrefix(v, "Bearer "); !bearer {
					return &problem{http.StatusUnauthorized, "authorization is no bearer"}
				}
			}
			keys = append(keys, v)
		}
	}
	switch {
	case len(keys) == 0:
		return &problem{http.StatusUnauthorized, "no key"}
	case len(keys) > 1:
		return bad("%d keys", len(keys))
	case keys[0] != s.cfg.Key:
		return &problem{http.StatusUnauthorized, "invalid x-api-key"}
	}
	return nil
}

// strictly decodes JSON whose every member is known and there once.
func strictly(raw []byte, into any) error {
	if err := unique(json.NewDecoder(bytes.NewReader(raw))); err != nil {
		return bad("body: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return bad("body: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("body: something follows it")
	}
	return nil
}

// unique refuses a member that is there twice.
func unique(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	d, nested := t.(json.Delim)
	if !nested {
		return nil
	}
	known := map[string]bool{}
	for dec.More() {
		if d == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if name := key.(string); known[name] {
				return fmt.Errorf("%q is there twice", name)
			} else {
				known[name] = true
			}
		}
		if err := unique(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkTools checks what all protocols ask of tools.
func checkTools(seen *Seen) error {
	if seen.Model == "" {
		return bad("model: field required")
	}
	if seen.User == "" {
		return bad("messages: text content blocks must be non-empty")
	}
	if len(seen.Tools) == 0 {
		return bad("tools: none")
	}
	var known []string
	for i, t := range seen.Tools {
		if !toolName.MatchString(t.Name) {
			return bad("tools.%d.name: string should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		}
		if slices.Contains(known, t.Name) {
			return bad("tools: tool names must be unique")
		}
		known = append(known, t.Name)
		var schema struct {
			Type       string          `json:"type"`
			Additional json.RawMessage `json:"additionalProperties"`
		}
		if err := json.Unmarshal(t.Schema, &schema); err != nil || schema.Type != "object" {
			return bad("tools.%d: schema is no object", i)
		}
		if t.Strict != nil && *t.Strict && string(schema.Additional) != "false" {
			return bad("tools.%d: for a strict tool 'additionalProperties' must be explicitly set to false", i)
		}
	}
	if seen.Choice != "required" && seen.Choice != "auto" && seen.Choice != "" && !slices.Contains(known, seen.Choice) {
		return bad("tool_choice: tool %q not found in provided tools", seen.Choice)
	}
	return nil
}

// cutPictures takes long base64 out of the body before that is read as JSON,
// which would cost more than all else. It leaves the number of the picture.
func (seen *Seen) cutPictures() error {
	rest, rebuilt := seen.Body, []byte(nil)
	for {
		at, size := -1, 0
		for _, mark := range []string{`"data":"`, `"data:image/jpeg;base64,`} {
			if i := bytes.Index(rest, []byte(mark)); i > 0 && rest[i-1] != '\\' && (at < 0 || i < at) { // escaped, it is text
				at, size = i, len(mark)
			}
		}
		if at < 0 {
			break
		}
		start := at + size
		end := bytes.IndexByte(rest[start:], '"')
		if end < 0 {
			return bad("body: unexpected end")
		}
		rebuilt = append(rebuilt, rest[:start]...)
		rebuilt = strconv.AppendInt(rebuilt, int64(len(seen.pictures)), 10)
		seen.pictures = append(seen.pictures, rest[start:start+end])
		rest = rest[start+end:]
	}
	seen.json = append(rebuilt, rest...)
	return nil
}

// picture decodes the base64 that was cut out and wants a JPEG.
func (seen *Seen) picture(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(seen.pictures) || seen.Screen != nil {
		return bad("image: not one picture")
	}
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, seen.pictures[n])
	if err != nil {
		return bad("image: invalid base64 data")
	}
	if _, err := jpeg.DecodeConfig(bytes.NewReader(raw)); err != nil {
		return bad("image: could not process image: %v", err)
	}
	seen.Screen = raw
	return nil
}

// dataURL is a picture as OpenAI takes it.
func (seen *Seen) dataURL(url string) error {
	number, ok := strings.CutPrefix(url, "data:image/jpeg;base64,")
	if !ok {
		return bad("image_url: not a data URL of a JPEG")
	}
	return seen.picture(number)
}
