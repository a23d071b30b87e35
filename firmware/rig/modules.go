package rig

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// moduleTree is a kernel's modules and what each needs: modules.dep and modules.builtin, as depmod writes them.
type moduleTree struct {
	needs   map[string][]string // file -> files it needs, both relative to the folder
	file    map[string]string   // module name -> file
	builtin map[string]bool     // names of modules that are part of the kernel image
}

func readModuleTree(dir string) (*moduleTree, error) {
	dep, err := os.Open(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, err
	}
	defer dep.Close()
	builtin, err := os.Open(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	defer builtin.Close()
	return parseModuleTree(dep, builtin)
}

func parseModuleTree(dep, builtin io.Reader) (*moduleTree, error) {
	t := &moduleTree{needs: map[string][]string{}, file: map[string]string{}, builtin: map[string]bool{}}
	lines := bufio.NewScanner(dep)
	for lines.Scan() {
		file, needs, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			return nil, fmt.Errorf("modules.dep: line without colon: %q", lines.Text())
		}
		t.needs[file] = strings.Fields(needs)
		t.file[moduleName(file)] = file
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	lines = bufio.NewScanner(builtin)
	for lines.Scan() {
		t.builtin[moduleName(lines.Text())] = true
	}
	return t, lines.Err()
}

// moduleName gives the name of a module's file; dashes and underscores are the same to the kernel.
func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
}

// order returns the files of the named modules and of all that they need, in the order in which they must be loaded.
func (t *moduleTree) order(names []string) ([]string, error) {
	var files []string
	done := map[string]bool{}
	var add func(file string)
	add = func(file string) {
		if done[file] {
			return
		}
		done[file] = true
		for _, need := range t.needs[file] {
			add(need)
		}
		files = append(files, file)
	}
	for _, name := range names {
		file, ok := t.file[moduleName(name)]
		switch {
		case ok:
			add(file)
		case !t.builtin[moduleName(name)]:
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
	}
	return files, nil
}
