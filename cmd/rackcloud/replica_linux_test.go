package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/store/pgtest"
)

// TestAReplicaStartsWithTheKeysOfTheOthersOnly: with a key of its own it would seal what they cannot read.
func TestAReplicaStartsWithTheKeysOfTheOthersOnly(t *testing.T) {
	dsn := pgtest.Start(t).Database(t)
	first, second := t.TempDir(), t.TempDir()
	p := serve(t, first, "--dsn", dsn)
	p.enrol("bench")

	var said bytes.Buffer
	state := filepath.Join(second, "state")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that starts would serve
	defer cancel()
	code := run(ctx, []string{
		"serve", "--state", state, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--name", "localhost", "--dsn", dsn,
	}, strings.NewReader(""), &said, &said)
	if code != exitRefused || !strings.Contains(said.String(), "copy kek, ca.pem and ca.key") {
		t.Fatalf("%d: %s", code, said.String())
	}
	for _, name := range []string{"kek", "ca.pem", "ca.key"} {
		if _, err := os.Stat(filepath.Join(state, name)); err == nil {
			t.Errorf("%s was left behind", name)
		}
		key, err := os.ReadFile(filepath.Join(first, "state", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(state, name), key, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if list := serve(t, second, "--dsn", dsn).do("host", "list"); !strings.Contains(list, "bench") {
		t.Errorf("the second replica knows %s", list)
	}
}
