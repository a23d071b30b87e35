package model

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a document, and where. Fields are zero where
// they say nothing.
type Error struct {
	Source string // the file
	Line   int    // from 1
	Path   string // such as steps[2].args_template
	Reason string // without subject: "must be a string, and is a number"
}

// Error implements error: "greet.yaml line 7, steps[2].tool: must be a string, and is a number".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "line %d", e.Line)
	}
	if e.Path != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.Path)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

func tooLarge(what string, size, limit int) *Error {
	return &Error{Reason: fmt.Sprintf("the %s has %d bytes, at most %d are accepted", what, size, limit)}
}
