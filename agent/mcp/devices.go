package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
)

// Devices is the rack with its phones. Errors are refusals of sync/wire.
type Devices interface {
	// Permissions are those of [Permissions] that callers have; tools that need
	// another are not offered. They do not change.
	Permissions() []string
	Phones(ctx context.Context, c Caller) ([]Phone, error)
	// Act executes a tool of package tools on the phone of a slot: under the caller's
	// hold if the tool may write and there is one, else under a lease for its own time.
	Act(ctx context.Context, c Caller, slot int, d planner.Decision) (Act, error)
	// Hold leases a slot to the caller, or for longer; 0 is as long as is usual.
	Hold(ctx context.Context, c Caller, slot int, d time.Duration) (until time.Time, err error)
	Release(ctx context.Context, c Caller, slot int) error
}

// Permissions returns those of package tools that mean something here.
func Permissions() []string {
	return []string{tools.PermitStop, tools.PermitClipboard, tools.PermitFiles}
}

// needs is the permission that a tool needs here; "" if none. Documents are files
// of the phone, because there are none of a task.
func needs(t tools.Tool) string {
	if t.Name == "read_document" {
		return tools.PermitFiles
	}
	return t.Permission
}

// Phone is a slot and the phone in it.
type Phone struct {
	Slot    int    `json:"slot"`
	Label   string `json:"label,omitempty"`
	State   string `json:"state"` // only in the state ready can it be used
	Reason  string `json:"reason,omitempty"`
	Serial  string `json:"serial,omitempty"`
	Model   string `json:"model,omitempty"`
	Android string `json:"android,omitempty"`
	HeldBy  string `json:"held_by,omitempty"`
}

// Act is what a tool came to.
type Act struct {
	Slot   int     `json:"slot"`
	Wrote  bool    `json:"wrote"`            // something was sent to the phone
	Text   string  `json:"text,omitempty"`   // the verdict on a field
	Result string  `json:"result,omitempty"` // what a reading tool brought
	Screen *Screen `json:"screen,omitempty"` // of tools that look
	Image  []byte  `json:"-"`                // JPEG; of take_screenshot
}

// Screen is what a phone shows.
type Screen struct {
	Generation uint64 `json:"generation"`
	Package    string `json:"package"`
	Activity   string `json:"activity,omitempty"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	Elements   string `json:"elements"` // a line each
}

const (
	slotSchema   = `{"type": "integer", "minimum": 1, "maximum": 999, "description": "number of the phone's slot, from list_phones"}`
	screenSchema = `{"type": "object", "properties": {"generation": {"type": "integer", "description": "to be given with each element"}, "package": {"type": "string"}, "activity": {"type": "string"}, "width": {"type": "integer"}, "height": {"type": "integer"}, "elements": {"type": "string", "description": "the elements, one a line, each with its index"}}, "required": ["generation", "package", "width", "height", "elements"], "additionalProperties": false}`
	actSchema    = `{"type": "object", "properties": {"slot": {"type": "integer"}, "wrote": {"type": "boolean", "description": "something was sent to the phone"}, "text": {"type": "string", "enum": ["verified", "unverified", "failed"], "description": "whether the field shows what was typed"}, "result": {"type": "string", "description": "what was read; it comes from the phone"}, "screen": ` + screenSchema + `}, "required": ["slot", "wrote"], "additionalProperties": false}`
	phoneSchema  = `{"type": "object", "properties": {"slot": {"type": "integer"}, "label": {"type": "string"}, "state": {"type": "string"}, "reason": {"type": "string"}, "serial": {"type": "string"}, "model": {"type": "string"}, "android": {"type": "string"}, "held_by": {"type": "string"}}, "required": ["slot", "state"], "additionalProperties": false}`
)

func (s *Server) deviceTools() []tool {
	all := []tool{
		{
			name: "list_phones", title: "List phones", hints: looking, run: s.listPhones,
			description: "List the slots of the rack with the phones in them. A phone can be used when its state is ready. Every other tool of phones names the phone by its slot.",
			input:       json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`),
			output:      json.RawMessage(`{"type": "object", "properties": {"phones": {"type": "array", "items": ` + phoneSchema + `}}, "required": ["phones"], "additionalProperties": false}`),
		},
		{
			name: "hold_slot", title: "Hold a slot", hints: tools.Annotations{Idempotent: true}, run: s.hold,
			description: "Keep a phone to yourself for several acts, or for longer: nobody else and no task can use it until you release it or the time is over. Without a hold each act takes the phone for its own time only.",
			input: json.RawMessage(`{"type": "object", "properties": {"slot": ` + slotSchema + `,
				"seconds": {"type": "integer", "minimum": 1, "maximum": 86400, "description": "15 minutes if not given; the rack bounds it"}}, "required": ["slot"], "additionalProperties": false}`),
			output: json.RawMessage(`{"type": "object", "properties": {"slot": {"type": "integer"}, "until": {"type": "string", "description": "time in UTC"}}, "required": ["slot", "until"], "additionalProperties": false}`),
		},
		{
			name: "release_slot", title: "Release a slot", hints: tools.Annotations{Idempotent: true}, run: s.release,
			description: "Give a slot back that you hold.",
			input:       json.RawMessage(`{"type": "object", "properties": {"slot": ` + slotSchema + `}, "required": ["slot"], "additionalProperties": false}`),
			output:      json.RawMessage(`{"type": "object", "properties": {"slot": {"type": "integer"}}, "required": ["slot"], "additionalProperties": false}`),
		},
	}
	permitted := s.devices.Permissions()
	for _, t := range tools.WithoutTask().Tools() {
		if p := needs(t); p != "" && !slices.Contains(permitted, p) {
			continue
		}
		all = append(all, s.deviceTool(t))
	}
	return all
}

// descriptions replace those that speak to the planner of a task.
var descriptions = map[string]string{
	"observe":         "Look at the screen: its elements, one a line, each with the index that other tools name it by. Look again after each act: the indices of one look are worth nothing after the next.",
	"take_screenshot": "Take a picture of the screen, for what the elements do not tell. It comes with the elements.",
	"wait":            "Do nothing for a while. If you know what to wait for use wait_for.",
	"read_document":   `Read the text of a document (PDF, EPUB, picture...) of the phone, by its path such as /sdcard/Download/a.pdf. pages are such as "2" or "1-3,7".`,
}

// deviceTool offers a tool of planners: the same schema, and the slot.
func (s *Server) deviceTool(t tools.Tool) tool {
	input, err := slotted(t.Schema)
	if err != nil {
		panic(fmt.Sprintf("mcp: tool %s: %v", t.Name, err)) // a test holds the schemas to this
	}
	description := t.Description
	if other, ok := descriptions[t.Name]; ok {
		description = other
	}
	return tool{
		name: t.Name, description: description, input: input, output: json.RawMessage(actSchema), hints: t.Annotations,
		run: func(ctx context.Context, c Caller, args json.RawMessage) (answer, error) {
			slot, rest, err := takeSlot(args)
			if err != nil {
				return answer{}, err
			}
			act, err := s.devices.Act(ctx, c, slot, planner.Decision{Tool: t.Name, Arguments: rest})
			if err != nil {
				return answer{}, err
			}
			act.Slot = slot
			return answer{object: act, image: act.Image}, nil
		},
	}
}

func (s *Server) listPhones(ctx context.Context, c Caller, _ json.RawMessage) (answer, error) {
	phones, err := s.devices.Phones(ctx, c)
	if err != nil {
		return answer{}, err
	}
	if phones == nil {
		phones = []Phone{}
	}
	return answer{object: map[string]any{"phones": phones}}, nil
}

type slotArgs struct {
	Slot    int `json:"slot"`
	Seconds int `json:"seconds"`
}

func (s *Server) hold(ctx context.Context, c Caller, args json.RawMessage) (answer, error) {
	in, err := decode[slotArgs](args)
	if err != nil {
		return answer{}, err
	}
	until, err := s.devices.Hold(ctx, c, in.Slot, time.Duration(in.Seconds)*time.Second)
	if err != nil {
		return answer{}, err
	}
	return answer{object: map[string]any{"slot": in.Slot, "until": until.UTC().Format(time.RFC3339)}}, nil
}

func (s *Server) release(ctx context.Context, c Caller, args json.RawMessage) (answer, error) {
	in, err := decode[slotArgs](args)
	if err != nil {
		return answer{}, err
	}
	return answer{object: map[string]any{"slot": in.Slot}}, s.devices.Release(ctx, c, in.Slot)
}

// slotted is a tool's schema with the slot, which is required.
func slotted(schema json.RawMessage) (json.RawMessage, error) {
	var object struct {
		Type                 string                     `json:"type"`
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties bool                       `json:"additionalProperties"`
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.DisallowUnknownFields() // nothing of a schema may be lost here
	if err := dec.Decode(&object); err != nil {
		return nil, err
	}
	if _, taken := object.Properties["slot"]; taken || object.AdditionalProperties {
		return nil, fmt.Errorf("its arguments are open, or have a slot already")
	}
	object.Properties["slot"] = json.RawMessage(slotSchema)
	object.Required = append([]string{"slot"}, object.Required...)
	return compact(object)
}

// takeSlot splits the slot from the arguments of a planner's tool. They have passed
// their schema.
func takeSlot(args json.RawMessage) (slot int, rest json.RawMessage, err error) {
	object, err := decode[map[string]json.RawMessage](args)
	if err != nil {
		return 0, nil, err
	}
	if slot, err = decode[int](object["slot"]); err != nil {
		return 0, nil, err
	}
	delete(object, "slot")
	rest, err = compact(object)
	return slot, rest, err
}

// withSlot puts a slot into the arguments of a tool of phones.
func withSlot(args json.RawMessage, slot int) (json.RawMessage, error) {
	object, err := decode[map[string]json.RawMessage](args)
	if err != nil {
		return nil, err
	}
	object["slot"] = json.RawMessage(strconv.Itoa(slot))
	return compact(object)
}
