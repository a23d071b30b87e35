package rig

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// gpioLines names the eight lines of the board's GPIO controller (a PL061); line 3 is the machine's own power key.
var gpioLines = []string{"", "HUB1_PWR", "HUB2_PWR", "", "OVERCURRENT", "", "HUB3_PWR", "BUTTON"}

// led is a light on a line of the GPIO controller.
type led struct {
	node, label string
	line        int
}

var leds = []led{{"status", "rack:green:status", 0}, {"fault", "rack:red:fault", 5}}

// phandle finds the number by which other nodes refer to the GPIO controller.
var phandle = regexp.MustCompile(`pl061@9030000 \{[^}]*?phandle = <(0x[0-9a-f]+)>`)

// patchTree adds line names and lights to the source of QEMU's own device tree.
func patchTree(source []byte, lines []string, lights []led) ([]byte, error) {
	found := phandle.FindSubmatch(source)
	if found == nil {
		return nil, errors.New("device tree: no pl061@9030000 with a phandle")
	}
	end := bytes.LastIndex(source, []byte("};"))
	quoted := make([]string, len(lines))
	for i, l := range lines {
		quoted[i] = fmt.Sprintf("%q", l)
	}
	names := fmt.Sprintf("pl061@9030000 {\n\t\tgpio-line-names = %s;", strings.Join(quoted, ", "))
	var nodes strings.Builder
	nodes.WriteString("\tleds {\n\t\tcompatible = \"gpio-leds\";\n")
	for _, l := range lights {
		fmt.Fprintf(&nodes, "\t\t%s { label = %q; gpios = <%s %d 0>; default-state = \"off\"; };\n", l.node, l.label, found[1], l.line)
	}
	nodes.WriteString("\t};\n")
	out := append([]byte(nil), source[:end]...)
	out = append(out, nodes.String()...)
	out = append(out, source[end:]...)
	return bytes.Replace(out, []byte("pl061@9030000 {"), []byte(names), 1), nil
}

// machine gives the arguments that decide what is in the device tree; the same must be used to dump it and to boot.
func machine(cpus, memory int) []string {
	return []string{"-cpu", "cortex-a72", "-smp", fmt.Sprint(cpus), "-m", fmt.Sprint(memory)}
}

// tree returns the path of the device tree for a board of so many processors and MiB of memory. It is made once for
// each QEMU and kept in the cache.
func (k *Kit) tree(ctx context.Context, cpus, memory int) (string, error) {
	key := sha256.New()
	fmt.Fprintln(key, k.qemuIdentity, machine(cpus, memory), gpioLines, leds)
	path := filepath.Join(k.cache, "boards", fmt.Sprintf("virt-%x.dtb", key.Sum(nil)[:8]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".partial-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	args := append(machine(cpus, memory), "-M", "virt,dumpdtb=plain.dtb", "-display", "none", "-net", "none")
	if err := runTool(ctx, tmp, nil, nil, k.qemu, args...); err != nil {
		return "", err
	}
	var source bytes.Buffer
	if err := runTool(ctx, tmp, nil, &source, k.dtc, "-q", "-I", "dtb", "-O", "dts", "plain.dtb"); err != nil {
		return "", err
	}
	patched, err := patchTree(source.Bytes(), gpioLines, leds)
	if err != nil {
		return "", err
	}
	if err := runTool(ctx, tmp, patched, nil, k.dtc, "-q", "-I", "dts", "-O", "dtb", "-o", "board.dtb", "-"); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(tmp, "board.dtb"), path)
}

// runTool runs a short-lived tool in dir; its error output becomes part of the error.
func runTool(ctx context.Context, dir string, stdin []byte, stdout *bytes.Buffer, name string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr, cmd.Stdin = dir, &stderr, bytes.NewReader(stdin)
	if stdout != nil {
		cmd.Stdout = stdout
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
