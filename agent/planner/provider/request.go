package provider

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"

	"phonerack/agent/planner"
)

// asked is a request that can be sent, and what its answer is held to.
type asked struct {
	body  []byte
	names names
	req   *planner.Request
	key   string
	texts []string // see sources
}

// protocol is what the three ways of asking differ in.
type protocol interface {
	// encode makes the body of a request. Where the screen's base64 belongs, it
	// writes place.
	encode(c *Client, req *planner.Request, place string) ([]byte, error)
	// send posts body by way of the SDK and x. Its error matters only if nothing was sent.
	send(ctx context.Context, c *Client, body []byte, x *exchange) error
	// read takes an answer apart. Its error says that the body is none.
	read(body []byte) (answer, error)
}

var protocols = map[Kind]protocol{Anthropic: messages{}, OpenAIChat: chat{}, OpenAIResponses: responsesAPI{}}

// place stands for the screen while the SDK encodes a request. Encoding 130 KB
// of base64 by way of the SDKs copies and scans it at each level of the
// request: 1.5 to 2.2 ms, where a splice takes 0.05. It is random, so that no text
// from a phone can hold it.
var place = "screen:" + rand.Text()

var jpegMagic = []byte{0xFF, 0xD8, 0xFF}

// ask makes the request, or returns a BadRequest.
func (c *Client) ask(req *planner.Request) (*asked, error) {
	switch {
	case len(req.Tools) == 0:
		return nil, badRequest("no tool is offered")
	case req.UserPrompt == "":
		return nil, badRequest("there is no user prompt")
	case len(req.Screen) > 0 && !bytes.HasPrefix(req.Screen, jpegMagic):
		return nil, badRequest("the screen is no JPEG")
	}
	n, err := namesOf(req.Tools)
	if err != nil {
		return nil, err
	}
	for i := range req.Tools {
		if err := usable.check(req.Tools[i].InputSchema); err != nil {
			return nil, badRequest("a tool's schema cannot be checked").Because(err)
		}
	}
	body, err := protocols[c.cfg.Provider].encode(c, req, place)
	if err != nil {
		return nil, badRequest("it cannot be encoded").Because(err)
	}
	if len(req.Screen) > 0 {
		if body, err = splice(body, req.Screen); err != nil {
			return nil, err
		}
	}
	return &asked{body: body, names: n, req: req, key: c.cfg.Key.value()}, nil
}

// usable remembers schemas that can be checked: racks offer the same tools in each turn, and to read twenty schemas
// takes longer than the rest of a request together.
var usable schemas

// maxSchemas bounds the bytes that are remembered; at the bound it starts anew.
const maxSchemas = 4 << 20

type schemas struct {
	mu    sync.Mutex // guards what follows
	known map[string]struct{}
	bytes int
}

// check tells why a schema cannot be used.
func (s *schemas) check(raw json.RawMessage) error {
	s.mu.Lock()
	_, ok := s.known[string(raw)]
	s.mu.Unlock()
	if ok {
		return nil
	}
	if _, err := planner.ParseSchema(raw); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || s.bytes+len(raw) > maxSchemas {
		s.known, s.bytes = map[string]struct{}{}, 0
	}
	s.known[string(raw)] = struct{}{}
	s.bytes += len(raw)
	return nil
}

// splice puts the screen's base64 in its place.
func splice(body, screen []byte) ([]byte, error) {
	before, after, ok := bytes.Cut(body, []byte(place))
	if !ok {
		return nil, errors.New("provider: the request has no place for the screen")
	}
	out := make([]byte, 0, len(before)+base64.StdEncoding.EncodedLen(len(screen))+len(after))
	out = append(out, before...)
	out = base64.StdEncoding.AppendEncode(out, screen)
	return append(out, after...), nil
}

// extra returns the options' fields as the SDKs take them.
func (o *Options) extra() map[string]any {
	m := make(map[string]any, len(o.Extra))
	for name, value := range o.Extra {
		m[name] = json.RawMessage(value)
	}
	return m
}

// toolChoice is what the options ask for, given how many tools are offered.
func (o *Options) toolChoice(tools int) string {
	switch {
	case o.ToolChoice == "", o.ToolChoice == "named" && tools != 1:
		return "required"
	}
	return o.ToolChoice
}
