package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "phonerack/"

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
	CgoFiles   []string
}

// within tells whether path is folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// rule says what the packages of a room may import of this repository.
type rule struct {
	room string
	may  []string
	why  string
}

// The first rule whose room holds a package decides. Each room may import itself.
var rules = []rule{
	{"usb", nil, "usb imports nothing of the rest"},
	{"hal", nil, "hal imports nothing of the rest"},
	{"agent/phone", []string{"agent", "usb/adb", "sync/wire"}, "agent imports usb/adb in agent/phone only"},
	{"agent/planner/script", []string{"agent/planner", "sync/wire"}, "script is imported by the cloud: it stands on the planner's interface alone"},
	{"agent/planner/provider", []string{"agent/planner", "sync/wire"}, "provider is imported by the cloud: it stands on the planner's interface alone"},
	{"agent", []string{"sync/wire"}, "agent imports, of sync, only sync/wire"},
	{"sync", []string{"agent/skill/model"}, "sync imports, of agent, only agent/skill/model"},
	{"provisioning", []string{"sync/wire"}, "provisioning knows the wire and nothing else"},
	{"cloud", []string{"sync/wire", "agent/skill/model", "agent/planner/script", "agent/planner/provider"}, "cloud imports exactly four packages"},
	{"firmware", []string{"usb", "hal", "agent", "sync", "provisioning"}, "firmware joins the rack's parts, never the cloud's"},
	{"cmd", []string{"usb", "hal", "agent", "sync", "provisioning", "firmware", "cloud"}, "cmd wires"},
}

// owners are modules that one folder alone may import.
var owners = map[string]string{
	"github.com/google/gousb":           "usb/adb/usblink",
	"github.com/gen2brain/go-fitz":      "agent/document/render",
	"github.com/ebitengine/purego":      "agent/document/render",
	"github.com/warthog618/go-gpiocdev": "hal/gpio",
}

// inside are rules within a room.
var inside = []struct{ room, never, why string }{
	{"usb/adb", "usb/phonesim", "host and simulator judge each other and share nothing"},
	{"usb/phonesim", "usb/adb", "host and simulator judge each other and share nothing"},
	{"usb/bus", "usb/adb", "the bus is below the protocol"},
	{"agent/perception", "agent/runner", "perception is below the loop"},
	{"agent/phone", "agent/perception", "the phone is below perception"},
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			if owner := owners[ownedModule(imported)]; owner != "" && !within(path, owner) {
				t.Errorf("%s imports %s: only %s may", path, imported, owner)
			}
			if other, ok := strings.CutPrefix(imported, module); ok {
				checkRooms(t, path, other)
			}
		}
	}
}

func ownedModule(imported string) string {
	for m := range owners {
		if within(imported, m) {
			return m
		}
	}
	return ""
}

func checkRooms(t *testing.T, path, other string) {
	t.Helper()
	for _, r := range inside {
		if within(path, r.room) && within(other, r.never) {
			t.Errorf("%s imports %s: %s", path, other, r.why)
		}
	}
	for _, r := range rules {
		if !within(path, r.room) {
			continue
		}
		if !within(other, r.room) && !withinAny(other, r.may...) {
			t.Errorf("%s imports %s: %s", path, other, r.why)
		}
		return
	}
	t.Errorf("%s lies in no room of the house", path)
}

// TestNames refuses packages that are named for nothing.
func TestNames(t *testing.T) {
	for _, p := range list(t) {
		for part := range strings.SplitSeq(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "misc"}, part) {
				t.Errorf("%s: name the package for what it holds", p.ImportPath)
			}
		}
	}
}

// TestTopLevelFolders keeps the house's rooms.
func TestTopLevelFolders(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	rooms := []string{"firmware", "hal", "usb", "agent", "sync", "provisioning", "buildroot", "cmd", "cloud", "docs", ".ci", ".git", ".cache", "bin", "demo-out"}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(rooms, e.Name()) {
			t.Errorf("folder %s is no room of the house", e.Name())
		}
	}
}

// TestCgoStaysWhereItIsNeeded: rackctl, rackcloud and phonesim are built without C.
func TestCgoStaysWhereItIsNeeded(t *testing.T) {
	for _, p := range list(t) {
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s has C of its own: only libraries may", p.ImportPath)
		}
	}
	for _, program := range []string{"cmd/rackctl", "cmd/rackcloud", "cmd/phonesim"} {
		if _, err := os.Stat(filepath.Join(root(t), program)); errors.Is(err, os.ErrNotExist) {
			continue // not built yet
		}
		out := goCommand(t, "list", "-deps", "./"+program)
		for dep := range strings.FieldsSeq(out) {
			if m := ownedModule(dep); m != "" {
				t.Errorf("%s needs %s, which needs C", program, m)
			}
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	decoder := json.NewDecoder(strings.NewReader(goCommand(t, "list", "-json=ImportPath,Imports,GoFiles,CgoFiles", "./...")))
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("found %d packages only: is this the repository?", len(all))
	}
	return all
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = root(t)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
