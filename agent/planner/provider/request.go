package provider

import (
	"bytes"
	"context"
	"encoding/json"

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
	m, err := c.mouldOf(req)
	if err != nil {
		return nil, err
	}
	body, err := m.fill(req)
	if err != nil {
		return nil, badRequest("it cannot be encoded").Because(err)
	}
	return &asked{body: body, names: m.names, req: req, key: c.cfg.Key.value()}, nil
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
