package model

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MarshalJSON implements json.Marshaler: the one field's object, "type" first.
func (it Item) MarshalJSON() ([]byte, error) {
	var body any
	switch it.Type() {
	case ToolRefItem:
		body = it.ToolRef
	case IncludeItem:
		body = it.Include
	case InlineToolItem:
		body = it.InlineTool
	case MCPSourceItem:
		body = it.MCPSource
	case AgentSourceItem:
		body = it.AgentSource
	default:
		return nil, fmt.Errorf("an item is empty")
	}
	raw, err := compact(body)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, `{"type":%q`, it.Type())
	if len(raw) > 2 {
		out = append(out, ',')
	}
	return append(out, raw[1:]...), nil
}

// UnmarshalJSON implements json.Unmarshaler for what MarshalJSON wrote. It is
// lenient: [ParseRegistrySkill] is for what comes from outside.
func (it *Item) UnmarshalJSON(raw []byte) error {
	var head struct {
		Type ItemType `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	*it = Item{}
	var body any
	switch head.Type {
	case ToolRefItem:
		it.ToolRef = &ToolRef{}
		body = it.ToolRef
	case IncludeItem:
		it.Include = &Include{}
		body = it.Include
	case InlineToolItem:
		it.InlineTool = &InlineTool{}
		body = it.InlineTool
	case MCPSourceItem:
		it.MCPSource = &MCPSource{}
		body = it.MCPSource
	case AgentSourceItem:
		it.AgentSource = &AgentSource{}
		body = it.AgentSource
	default:
		return fmt.Errorf("%.40q is no type of an item", string(head.Type))
	}
	return json.Unmarshal(raw, body)
}

// compact is JSON without blanks and without the escapes that are for HTML.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
