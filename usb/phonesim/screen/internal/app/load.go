package app

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Error says where in an app's files a fault is. Screen and Node are empty where they don't apply.
type Error struct {
	File   string // "com.phonerack.shop/app.yaml"
	Screen string // "screen results", "dialog coupon", "part row"
	Node   string // "root/2/0 (id search)"
	Err    error
}

func (e *Error) Error() string {
	parts := []string{e.File}
	for _, s := range []string{e.Screen, e.Node} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(append(parts, e.Err.Error()), ": ")
}

func (e *Error) Unwrap() error { return e.Err }

// Bundle is a checked set of apps: the system's, the launcher, and those that a user can open.
type Bundle struct {
	Apps map[string]*App
}

// Names returns the packages in order.
func (b *Bundle) Names() []string { return slices.Sorted(maps.Keys(b.Apps)) }

// maxFile bounds one file of an app, in bytes.
const maxFile = 1 << 20

// Load reads the apps of fsys: one folder a package, all of its .yaml files. The system's packages and
// the launcher come from fallback where fsys has none. Every fault is an *Error; Load stops at the first.
func Load(fsys, fallback fs.FS) (*Bundle, error) {
	b := &Bundle{Apps: make(map[string]*App)}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read the apps: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if b.Apps[e.Name()], err = read(fsys, e.Name()); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{System, Launcher, SystemUI} {
		if b.Apps[name] == nil {
			if b.Apps[name], err = read(fallback, name); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range b.Apps {
		if a.Package != System {
			a.system = b.Apps[System]
		}
	}
	// The system's first: the others inherit its looks.
	names := slices.DeleteFunc(b.Names(), func(s string) bool { return s == System })
	for _, name := range append([]string{System}, names...) {
		if err := check(b.Apps[name]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func read(fsys fs.FS, dir string) (*App, error) {
	files, err := fs.Glob(fsys, dir+"/*.yaml")
	if err != nil || len(files) == 0 {
		return nil, &Error{File: dir, Err: errors.New("the folder has no .yaml file")}
	}
	out := &App{file: make(map[string]string)}
	for _, name := range files {
		if err := readFile(fsys, name, out); err != nil {
			return nil, &Error{File: name, Err: err}
		}
	}
	main := path.Join(dir, "app.yaml")
	if out.Package != dir {
		return nil, &Error{File: main, Err: fmt.Errorf("package %q must be the name of its folder, %q", out.Package, dir)}
	}
	for name, s := range out.Screens {
		s.Name = name
	}
	for name, s := range out.Dialogs {
		s.Name, s.Dialog = name, true
	}
	return out, nil
}

func readFile(fsys fs.FS, name string, out *App) error {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return fmt.Errorf("file is larger than %d bytes", maxFile)
	}
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	var in App
	if err := yaml.Load(raw, &in, yaml.WithKnownFields()); err != nil {
		return err
	}
	if path.Base(name) == "app.yaml" {
		out.Package, out.Activity, out.Version, out.Label = in.Package, in.Activity, in.Version, in.Label
		out.Icon, out.Hidden, out.User, out.Start, out.Requests = in.Icon, in.Hidden, in.User, in.Start, in.Requests
	} else if in.Package != "" || in.Start != "" || in.Activity != "" || in.Icon != "" || in.Version != "" || in.Hidden || in.User ||
		len(in.Requests) > 0 || !in.Label.Empty() {
		return errors.New("package, activity, version, label, icon, hidden, user, permissions and start belong into app.yaml")
	}
	return errors.Join(
		merge(out, name, "colour", &out.Colors, in.Colors),
		merge(out, name, "style", &out.Styles, in.Styles),
		merge(out, name, "text", &out.Texts, in.Texts),
		merge(out, name, "variable", &out.Variables, in.Variables),
		merge(out, name, "list", &out.Lists, in.Lists),
		merge(out, name, "picture", &out.Pictures, in.Pictures),
		merge(out, name, "part", &out.Parts, in.Parts),
		merge(out, name, "screen", &out.Screens, in.Screens),
		merge(out, name, "dialog", &out.Dialogs, in.Dialogs),
	)
}

// merge adds the entries of one file and remembers which file each came from.
func merge[V any](a *App, file, what string, dst *map[string]V, src map[string]V) error {
	if *dst == nil {
		*dst = make(map[string]V)
	}
	for k, v := range src {
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
			return fmt.Errorf("%s %q is empty", what, k)
		}
		at := what + " " + k
		if first, ok := a.file[at]; ok {
			return fmt.Errorf("%s %q is declared in %s already", what, k, first)
		}
		a.file[at] = file
		(*dst)[k] = v
	}
	return nil
}

// text returns a text of the app or of the system, nil if there is none.
func (a *App) text(key, lang string) *Template {
	for ; a != nil; a = a.system {
		if w, ok := a.Texts[key]; ok {
			return w[lang]
		}
	}
	return nil
}

// FindPicture returns a picture of the app or of the system, nil if there is none.
func (a *App) FindPicture(name string) *Picture {
	for ; a != nil; a = a.system {
		if p, ok := a.Pictures[name]; ok {
			return p
		}
	}
	return nil
}

// FindColor resolves the name or the value of a colour.
func (a *App) FindColor(name string) (c Color, ok bool) {
	if name == "none" {
		return Color{}, true
	}
	for s := a; s != nil; s = s.system {
		if c, ok := s.Colors[name]; ok {
			return c, true
		}
	}
	c.NRGBA, ok = ParseColor(name)
	return c, ok
}

// FindScreen returns a screen or dialog by name.
func (a *App) FindScreen(name string, dialog bool) *Screen {
	if dialog {
		return a.Dialogs[name]
	}
	return a.Screens[name]
}

// FindPart returns a part of the app, nil if there is none. Parts are not shared between apps: each app
// gives them its own colours.
func (a *App) FindPart(name string) *Widget { return a.Parts[name] }

func (a *App) style(name string) (yaml.Node, bool) {
	for ; a != nil; a = a.system {
		if n, ok := a.Styles[name]; ok {
			return n, true
		}
	}
	return yaml.Node{}, false
}
