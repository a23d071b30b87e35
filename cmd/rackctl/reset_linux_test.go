package main

import (
	"strings"
	"testing"
)

func TestAFactoryResetWantsAYes(t *testing.T) {
	b := start(t)
	if _, errOut, code := b.rackctl("", "factory-reset"); code != 1 || !strings.Contains(errOut, "confirm it with --yes") {
		t.Errorf("%d %q", code, errOut)
	}
	// The double of a rack cannot be reset: what it says shows that it was asked.
	if _, errOut, code := b.rackctl("", "factory-reset", "--yes", "--adb-key"); code != 1 || !strings.Contains(errOut, "the board itself") {
		t.Errorf("%d %q", code, errOut)
	}
}
