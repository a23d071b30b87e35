package rig

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortsMapToQEMU(t *testing.T) {
	c := BoardConfig{
		Hubs:  []Hub{{"1-1.8", 4}, {"1-1", 8}, {"1-2", 7}},
		Ports: []string{"1-1.1", "1-1.8.4", "1-2.7", "1-15"},
	}
	got, err := c.topology()
	if err != nil {
		t.Fatal(err)
	}
	var hubs, phones []string
	for _, p := range got.hubs {
		hubs = append(hubs, p.qemu())
	}
	for _, p := range got.phones {
		phones = append(phones, p.qemu()+" is "+p.String())
	}
	if diff := cmp.Diff([]string{"1", "2", "1.8"}, hubs); diff != "" {
		t.Errorf("a hub must come before those in it: %s", diff)
	}
	if diff := cmp.Diff([]int{8, 7, 4}, got.sizes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1.1 is 1-1.1", "1.8.4 is 1-1.8.4", "2.7 is 1-2.7", "15 is 1-15"}, phones); diff != "" {
		t.Error(diff)
	}
}

func TestWrongConfigurationsAreNamed(t *testing.T) {
	hub := []Hub{{"1-1", 4}}
	for name, test := range map[string]struct {
		config BoardConfig
		says   string
	}{
		"other bus":         {BoardConfig{Ports: []string{"2-1"}}, `"2-1": must begin with 1-`},
		"no number":         {BoardConfig{Ports: []string{"1-"}}, `"1-": "" is no port number`},
		"zero":              {BoardConfig{Ports: []string{"1-1.0"}}, `"0" is no port number`},
		"leading zero":      {BoardConfig{Ports: []string{"1-01"}}, `"01" is no port number`},
		"too high":          {BoardConfig{Ports: []string{"1-16"}}, "the controller has 15 ports"},
		"no hub":            {BoardConfig{Ports: []string{"1-1.2"}}, "there is no hub at 1-1"},
		"no such port":      {BoardConfig{Hubs: hub, Ports: []string{"1-1.5"}}, "the hub at 1-1 has 4 ports"},
		"phone on hub":      {BoardConfig{Hubs: hub, Ports: []string{"1-1"}}, "port 1-1 is both a hub and a phone's"},
		"twice":             {BoardConfig{Hubs: hub, Ports: []string{"1-1.2", "1-1.2"}}, "both a phone's and a phone's"},
		"hub of nine":       {BoardConfig{Hubs: []Hub{{"1-1", 9}}}, "9 ports, must be 1 to 8"},
		"hub in the air":    {BoardConfig{Hubs: []Hub{{"1-1.1", 4}}}, "there is no hub at 1-1"},
		"hubs in a chain":   {BoardConfig{Hubs: []Hub{{"1-1", 4}, {"1-1.1", 4}, {"1-1.1.1", 4}, {"1-1.1.1.1", 4}, {"1-1.1.1.1.1", 4}, {"1-1.1.1.1.1.1", 4}}}, "more than 5 hubs"},
		"relative path":     {BoardConfig{Files: map[string]string{"etc/x": "/x"}}, `"etc/x" is no plain absolute guest path`},
		"quote in a folder": {BoardConfig{Writable: []string{"/a'b"}}, "no plain absolute guest path"},
		"file twice":        {BoardConfig{Files: map[string]string{"/x": "/x"}, Contents: map[string]string{"/x": ""}}, "/x is in both"},
		"comma in a drive":  {BoardConfig{Drives: []Drive{{Path: "/a,b"}}}, "must not hold any of"},
		"drive of nothing":  {BoardConfig{Drives: []Drive{{}}}, "needs either a path or a socket"},
		"drive of both":     {BoardConfig{Drives: []Drive{{Path: "/a", Socket: "/b"}}}, "needs either a path or a socket"},
		"cached snapshot":   {BoardConfig{Drives: []Drive{{Path: "/a", Snapshot: true, Cache: "none"}}}, "exclude each other"},
		"cached socket":     {BoardConfig{Drives: []Drive{{Socket: "/a", Cache: "none"}}}, "exclude each other"},
		"unknown cache":     {BoardConfig{Drives: []Drive{{Path: "/a", Cache: "unsafe"}}}, `no cache is called "unsafe"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Kit{}).Boot(t.Context(), test.config)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q in it", err, test.says)
			}
		})
	}
}

func TestAKitThatIsNotSetUpNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := Prepare(t.Context(), dir)
	if !errors.Is(err, ErrNotSetUp) || !strings.Contains(err.Error(), filepath.Join(dir, "kernel")) {
		t.Error(err)
	}
}

func TestPathsComeFromTheEnvironmentOrTheRepository(t *testing.T) {
	t.Setenv("PHONERACK_ADB", "")
	t.Setenv("PHONERACK_CACHE", "")
	dir, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "..", "go.mod")); err != nil || !strings.HasSuffix(dir, "/.cache/rig") {
		t.Errorf("%s is not at the root of the repository", dir)
	}
	cache := t.TempDir()
	t.Setenv("PHONERACK_CACHE", cache)
	if _, err := AdbPath(); !errors.Is(err, ErrNotSetUp) {
		t.Errorf("adb of an empty cache: %v", err)
	}
	adb := filepath.Join(cache, "my-adb")
	if err := os.WriteFile(adb, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PHONERACK_ADB", adb)
	if got, err := AdbPath(); got != adb || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("PHONERACK_CACHE", "")
	if _, err := CacheDir(); err == nil {
		t.Error("a cache outside of the repository")
	}
}

func TestAProgramForAnotherMachineIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if names, err := importedLibraries(self); err == nil || !strings.Contains(err.Error(), "the board is EM_AARCH64") {
		t.Errorf("%v, %v", names, err)
	}
	for _, content := range []string{"", "#!/bin/sh\n", strings.Repeat("text\n", 100)} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if names, err := importedLibraries(file); names != nil || err != nil {
			t.Errorf("%q: %v, %v", content, names, err)
		}
	}
}

func TestUnpackingStaysInItsFolder(t *testing.T) {
	for name, test := range map[string]struct {
		headers []tar.Header
		ok      bool
	}{
		"plain":   {[]tar.Header{{Name: "a/", Typeflag: tar.TypeDir}, {Name: "a/b", Typeflag: tar.TypeReg, Mode: 0o600, Size: 4}}, true},
		"outside": {[]tar.Header{{Name: "../b", Typeflag: tar.TypeReg, Size: 4}}, false},
		"root":    {[]tar.Header{{Name: "/b", Typeflag: tar.TypeReg, Size: 4}}, false},
		"link":    {[]tar.Header{{Name: "b", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range test.headers {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Size > 0 {
					w.Write([]byte("text"))
				}
			}
			w.Close()
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			err = unpack(root, &archive)
			if (err == nil) != test.ok {
				t.Error(err)
			}
			if content, _ := os.ReadFile(filepath.Join(dir, "a", "b")); test.ok && string(content) != "text" {
				t.Errorf("a/b holds %q", content)
			}
		})
	}
}

func TestWordsAreQuoted(t *testing.T) {
	var out bytes.Buffer
	const word = `it's "$HOME" \`
	if err := runTool(context.Background(), "", nil, &out, "/bin/sh", "-c", "printf %s "+quote(word)); err != nil {
		t.Fatal(err)
	}
	if out.String() != word {
		t.Errorf("%q", out.String())
	}
}
