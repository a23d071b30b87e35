package model

import (
	"fmt"
	"strings"

	"phonerack/agent/skill/model/placeholder"
)

// Namespaces that no registry skill may have: what the catalog and the Agent
// Skills folders bring is named in them.
const (
	CatalogNamespace     = "catalog"
	AgentSkillsNamespace = "agent_skills"
)

// Reserved reports whether a namespace is not for registry skills.
func Reserved(namespace string) bool {
	return namespace == CatalogNamespace || namespace == AgentSkillsNamespace
}

// SplitName takes a namespaced name apart, and refuses what is none:
// ^[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$, at most 100 bytes before the slash, 150 after
// it, 255 in all. A reserved namespace is no fault here.
func SplitName(name string) (namespace, short string, err error) {
	namespace, short, found := strings.Cut(name, "/")
	switch {
	case !found || !nameChars(namespace) || !nameChars(short):
		return "", "", fmt.Errorf("%.80q is no name of the form namespace/short_name with letters, digits, '_' and '-'", name)
	case len(namespace) > MaxNamespace:
		return "", "", fmt.Errorf("the namespace of %.80q is longer than %d characters", name, MaxNamespace)
	case len(short) > MaxShortName || len(name) > MaxName:
		return "", "", fmt.Errorf("the name %.80q is longer than %d characters after the slash, or %d in all", name, MaxShortName, MaxName)
	}
	return namespace, short, nil
}

// CatalogName is the name under which registry skills include a catalog skill.
func CatalogName(id string) string { return CatalogNamespace + "/" + id }

// CatalogID takes the id out of "catalog/<id>".
func CatalogID(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, CatalogNamespace+"/")
	return id, ok && ValidID(id)
}

// ValidID reports whether s is an id of a skill or of a subscription:
// [a-z0-9-]{1,63}, as all ids on the wire.
func ValidID(s string) bool {
	return s != "" && len(s) <= 63 && only(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	})
}

// ValidParameter reports whether s names a parameter: [A-Za-z_][A-Za-z0-9_]{0,63}.
func ValidParameter(s string) bool { return placeholder.ValidName(s) }

// ValidTool reports whether s may name a tool: letters, digits and "_-.:/", at
// most 500 bytes.
func ValidTool(s string) bool {
	return s != "" && len(s) <= MaxItemName && only(s, func(c byte) bool { return letterOrDigit(c) || strings.IndexByte("_-.:/", c) >= 0 })
}

func nameChars(s string) bool {
	return s != "" && only(s, func(c byte) bool { return letterOrDigit(c) || c == '_' || c == '-' })
}

func letterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func only(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
