package main

import (
	"maps"
	"testing"

	"github.com/alecthomas/kong"
)

func TestValuesOfParametersAreTakenAsTheyAre(t *testing.T) {
	want := map[string]string{"note": `a;b=c,d\;e\\`, "empty": "", "sum": "1+1=2"}
	for _, command := range [][]string{{"task", "run", "--slot=1", "--goal=x"}, {"task", "replay", "folder"}} {
		var c commands
		args := command
		for name, value := range want {
			args = append(args, "--param", name+"="+value)
		}
		if _, err := kong.Must(&c, words).Parse(args); err != nil {
			t.Fatal(err)
		}
		got := c.Task.Run.Param
		if command[1] == "replay" {
			got = c.Task.Replay.Param
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", command[1], got, want)
		}
	}
}
