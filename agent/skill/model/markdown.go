package model

import (
	"bytes"
	"strings"
)

// parseMarkdown reads knowledge as people write it: a front matter in YAML
// between two lines of three dashes, then the content. The fences are whole
// lines; three dashes within the front matter are its own.
func parseMarkdown(raw []byte) (*node, error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	text := strings.ReplaceAll(string(raw), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return nil, &Error{Line: 1, Reason: "it must begin with a line of three dashes, and the front matter below it"}
	}
	front, content, ok := strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		return nil, &Error{Line: 1, Reason: "the front matter is not closed by a line of three dashes"}
	}
	// The front matter keeps its lines: the first one was the fence.
	n, err := parseYAML([]byte("\n" + strings.TrimPrefix(front, "\n") + "\n"))
	if err != nil {
		return nil, err
	}
	if n.shape != objectShape {
		return nil, &Error{Line: n.line, Reason: "the front matter must be an object, and is " + n.shape.String()}
	}
	for _, key := range []string{"content", "kind"} {
		if v := n.field(key); v != nil {
			return nil, &Error{Line: v.line, Path: key, Reason: "is not for a front matter: the text below it is the content, of kind knowledge"}
		}
	}
	after := strings.Count(front, "\n") + 2
	n.keys = append(n.keys, "kind", "content")
	n.items = append(n.items, &node{shape: textShape, line: 1, text: string(Knowledge)},
		&node{shape: textShape, line: after, text: strings.TrimLeft(content, "\n")})
	return n, nil
}
