package model

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// ParseRegistryYAML reads a registry skill that a person wrote.
func ParseRegistryYAML(file string, raw []byte) (*RegistrySkill, error) {
	n, err := parseYAML(raw)
	return takeRegistry(file, n, err)
}

// ParseRegistryJSON reads a registry skill as JSON.
func ParseRegistryJSON(raw []byte) (*RegistrySkill, error) {
	if len(raw) > MaxRegistryBytes {
		return nil, tooLarge("skill", len(raw), MaxRegistryBytes)
	}
	n, err := parseJSON(raw)
	return takeRegistry("", n, err)
}

// Encode returns the canonical JSON of a valid registry skill.
func (s *RegistrySkill) Encode() ([]byte, error) {
	raw, err := compact(s)
	if err != nil {
		return nil, err
	}
	again, err := ParseRegistryJSON(raw)
	if err != nil {
		return nil, err
	}
	return compact(again)
}

// Validate tells what is wrong with a registry skill in itself, nil if nothing
// is. Whether what it includes exists is the registry's to say.
func (s *RegistrySkill) Validate() error {
	_, err := s.Encode()
	return err
}

func takeRegistry(source string, n *node, err error) (*RegistrySkill, error) {
	s := &RegistrySkill{}
	if err := read(source, n, err, func(r *reader, n *node) { r.registrySkill(n, s) }); err != nil {
		return nil, err
	}
	return s, nil
}

// elsewhere are the keys of other writings of spec 004's skills, with what we
// write instead.
var elsewhere = map[string]string{
	"tools": "tool_ref", "tool_refs": "tool_ref", "includes": "include",
	"inline_tools": "inline_tool", "anonymous_tools": "inline_tool",
	"mcp_sources": "mcp_source", "mcp_servers": "mcp_source",
	"agent_sources": "agent_source", "agent_skills": "agent_source", "agent_skill_folders": "agent_source", "agent_skills_dirs": "agent_source",
}

func (r *reader) registrySkill(n *node, s *RegistrySkill) {
	if n.shape == objectShape {
		for i, key := range n.keys {
			if item, ok := elsewhere[key]; ok {
				r.fail(n.items[i], key, "is written as entries of type %s in the one list \"items\"", item)
			}
		}
	}
	o := r.object(n, "", "name", "description", "version", "items", "overrides")
	s.Name = r.namespaced(o, "name")
	if namespace, _, _ := strings.Cut(s.Name, "/"); Reserved(namespace) {
		r.fail(n, "name", "the namespace %q is reserved: its skills come from elsewhere and cannot be changed here", namespace)
	}
	s.Description = o.text("description", descriptionWords)
	s.Version = o.maybe("version", versionWords)
	s.Items = []Item{}
	o.need("items")
	o.list("items", 0, MaxItems, func(n *node, path string) { s.Items = append(s.Items, r.item(n, path)) })
	overrides := n.field("overrides")
	if overrides == nil {
		return
	}
	if overrides.shape != objectShape || len(overrides.keys) == 0 || len(overrides.keys) > MaxItems {
		r.fail(overrides, "overrides", "must be an object with overrides by the name of a tool, at most %d", MaxItems)
		return
	}
	s.Overrides = map[string]Overrides{}
	for i, tool := range overrides.keys {
		if !ValidTool(tool) {
			r.fail(overrides.items[i], "overrides", "%s, and is %s", toolWords.form, quoted(tool))
		}
		s.Overrides[tool] = r.overrides(overrides.items[i], join("overrides", tool))
	}
}

func (r *reader) namespaced(o object, key string) string {
	name := o.text(key, words{})
	if _, _, err := SplitName(name); err != nil && o.n.field(key) != nil {
		r.fail(o.n.field(key), o.at(key), "%s", err.Error())
	}
	return name
}

func (r *reader) item(n *node, path string) Item {
	types := []string{string(ToolRefItem), string(IncludeItem), string(InlineToolItem), string(MCPSourceItem), string(AgentSourceItem)}
	if n.shape != objectShape {
		r.fail(n, path, "must be an object with a type, and is %s", n.shape)
		return Item{}
	}
	var it Item
	switch ItemType((object{r, n, path}).oneOf("type", types...)) {
	case ToolRefItem:
		o := r.object(n, path, "type", "name", "overrides")
		it.ToolRef = &ToolRef{Name: o.text("name", toolWords), Overrides: o.overrides()}
	case IncludeItem:
		o := r.object(n, path, "type", "name", "overrides")
		it.Include = &Include{Name: r.namespaced(o, "name"), Overrides: o.overrides()}
		if id, ok := strings.CutPrefix(it.Include.Name, CatalogNamespace+"/"); ok && !ValidID(id) {
			r.fail(n, o.at("name"), "names a catalog skill, whose id must have 1 to 63 of a-z, 0-9 and '-'")
		}
	case InlineToolItem:
		it.InlineTool = r.inlineTool(n, path)
	case MCPSourceItem:
		it.MCPSource = r.mcpSource(n, path)
	case AgentSourceItem:
		o := r.object(n, path, "type", "path")
		it.AgentSource = &AgentSource{Path: o.text("path", words{max: MaxItemName})}
	}
	if r.err == nil {
		if raw := n.canonical(); len(raw) > MaxItemConfig {
			r.fail(n, path, "has %d bytes, at most %d are accepted", len(raw), MaxItemConfig)
		}
	}
	return it
}

func (r *reader) inlineTool(n *node, path string) *InlineTool {
	o := r.object(n, path, "type", "description", "source", "input_schema", "output_schema", "read_only", "writes", "checkpointable", "side_effects")
	t := &InlineTool{
		Description:    o.text("description", descriptionWords),
		Source:         SourceCustom,
		InputSchema:    o.anObject("input_schema", MaxItemConfig),
		OutputSchema:   o.anObject("output_schema", MaxItemConfig),
		ReadOnly:       o.flag("read_only"),
		Writes:         o.flag("writes"),
		Checkpointable: o.flag("checkpointable"),
		SideEffects:    o.flag("side_effects"),
	}
	if s := n.field("source"); s != nil && (s.shape != textShape || s.text != SourceCustom) {
		r.fail(s, o.at("source"), "Invalid inline tool source '%.40s'. Inline tools must have source: custom.", s.text)
	}
	return t
}

func (r *reader) mcpSource(n *node, path string) *MCPSource {
	o := r.object(n, path, "type", "name", "transport", "command", "args", "env", "url", "headers", "tool_filter")
	m := &MCPSource{
		Name:      o.text("name", words{max: MaxShortName, chosen: nameChars, form: "must have letters, digits, '_' and '-' only"}),
		Transport: Transport(o.oneOf("transport", string(Stdio), string(SSE), string(StreamableHTTP))),
	}
	if m.Transport == Stdio {
		o.refuse("is not for a server over stdio", "url", "headers")
		m.Command = o.text("command", words{max: 4096})
		o.list("args", 0, 256, func(n *node, path string) { m.Args = append(m.Args, r.anyText(n, path)) })
		m.Env = o.strings("env")
	} else {
		o.refuse("is for a server over stdio only", "command", "args", "env")
		m.URL = o.text("url", words{max: 2048, chosen: webAddress, form: "must begin with http:// or https:// and name a host"})
		m.Headers = o.strings("headers")
	}
	if f := n.field("tool_filter"); f != nil {
		fo := r.object(f, o.at("tool_filter"), "include", "exclude")
		name := words{max: 128}
		m.ToolFilter = &ToolFilter{Include: fo.texts("include", MaxItems, name), Exclude: fo.texts("exclude", MaxItems, name)}
	}
	return m
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.Contains(s, " ")
}

// anyText is one line that may be empty.
func (r *reader) anyText(n *node, path string) string {
	if n.shape == textShape && n.text == "" {
		return ""
	}
	return r.text(n, path, words{max: 4096})
}

// strings reads an object of texts; nil without it.
func (o object) strings(key string) map[string]string {
	n := o.n.field(key)
	if n == nil {
		return nil
	}
	if n.shape != objectShape || len(n.keys) == 0 || len(n.keys) > 64 {
		o.r.fail(n, o.at(key), "must be an object of 1 to 64 texts")
		return nil
	}
	m := make(map[string]string, len(n.keys))
	for i, k := range n.keys {
		if bad, ok := control(k, false); ok || strings.TrimSpace(k) == "" || len(k) > 256 {
			o.r.fail(n.items[i], o.at(key), "the name %s is empty, too long or has the control character %U", quoted(k), bad)
		}
		m[k] = o.r.anyText(n.items[i], join(o.at(key), k))
	}
	return m
}

// Fields of a tool that overrides give another value; others are free.
var (
	overrideFlags = []string{"read_only", "writes", "checkpointable", "side_effects"}
	overrideTexts = []string{"description"}
)

const maxOverrides = 32

func (o object) overrides() Overrides {
	n := o.n.field("overrides")
	if n == nil {
		return nil
	}
	return o.r.overrides(n, o.at("overrides"))
}

func (r *reader) overrides(n *node, path string) Overrides {
	if n.shape != objectShape || len(n.keys) == 0 || len(n.keys) > maxOverrides {
		r.fail(n, path, "must be an object with 1 to %d fields", maxOverrides)
		return nil
	}
	all := Overrides{}
	for i, key := range n.keys {
		v, at := n.items[i], join(path, key)
		switch {
		case !ValidParameter(key):
			r.fail(v, at, "must be named by letters, digits and '_'")
		case slices.Contains(overrideFlags, key) && v.shape != boolShape:
			r.fail(v, at, "must be true or false, and is %s", v.shape)
		case slices.Contains(overrideTexts, key):
			r.text(v, at, descriptionWords)
		}
		all[key] = json.RawMessage(r.value(v, at, MaxItemConfig))
	}
	return all
}
