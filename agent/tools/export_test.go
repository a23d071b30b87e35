package tools

import "phonerack/agent/perception"

// Verdict is for tests.
func (t Typed) Verdict(scene *perception.Scene) string { return t.verdict(scene) }
