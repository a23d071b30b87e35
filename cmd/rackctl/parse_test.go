package main

import (
	"maps"
	"strings"
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

func TestWhatIsDrawnOnAPictureIsOneThingAndNeedsAFile(t *testing.T) {
	for _, c := range []struct{ flags, fault string }{
		{"", ""},
		{"--image=x.jpg", ""},
		{"--image=x.jpg --marks", ""},
		{"--image=x.jpg --grid", ""},
		{"--marks", "--marks are drawn on the picture: name its file with --image"},
		{"--grid", "--grid is drawn on the picture: name its file with --image"},
		{"--image=x.jpg --marks --grid", "--marks and --grid cannot be drawn on one picture: choose one"},
	} {
		var parsed commands
		_, err := kong.Must(&parsed, words).Parse(append([]string{"observe", "1"}, strings.Fields(c.flags)...))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("observe %s: %v, want %q", c.flags, err, c.fault)
		}
	}
}
