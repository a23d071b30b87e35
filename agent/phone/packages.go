package phone

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Package is an installed package.
type Package struct {
	Name    string
	Version int64 // its version code, 0 if the phone does not tell
	System  bool  // came with the phone
}

// App is an app that a person can start.
type App struct {
	Package string
	Label   string // its name for people, "" if it is not known
	System  bool
}

// maxPackages bounds lists of apps; a phone has 200 to 600 packages.
const maxPackages = 5000

// versionSDK is the first Android that lists version codes: Android 8.
const versionSDK = 26

var (
	packageRow = regexp.MustCompile(`(?m)^package:([a-zA-Z]\w*(?:\.\w+)*)(?: versionCode:(\d{1,18}))?\s*$`)
	launchRow  = regexp.MustCompile(`(?m)^\s*([a-zA-Z]\w*(?:\.\w+)*)/[\w.$]+\s*$`)

	allPackages = source{"packages", "pm list packages"}
	ownPackages = source{"own", "pm list packages -3"}
	launchers   = source{"launchers", "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER"}
)

// Packages returns the names of the installed packages, as the phone orders
// them.
func (p *Phone) Packages(ctx context.Context) ([]string, error) {
	out, err := p.one(ctx, allPackages)
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	rows, err := parsePackages(out)
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	return names, nil
}

// Installed returns the installed packages, as the phone orders them; thirdParty
// leaves out those that came with the phone.
func (p *Phone) Installed(ctx context.Context, thirdParty bool) ([]Package, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, own := allPackages, ownPackages
	if p.info.SDK >= versionSDK {
		all.cmd += " --show-versioncode"
		own.cmd += " --show-versioncode"
	}
	wanted := []source{own, all}
	if thirdParty {
		wanted = wanted[:1]
	}
	a := newAnswers()
	err := p.ask(ctx, a, wanted)
	if err == nil {
		err = a.err(wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	theirs, err := parsePackages(a.text(own))
	if thirdParty {
		if err != nil && strings.TrimSpace(a.text(own)) != "" {
			return nil, fmt.Errorf("list apps: %w", err)
		}
		return theirs, nil // a new phone has none
	}
	rows, err := parsePackages(a.text(all))
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	for i := range rows {
		rows[i].System = !slices.ContainsFunc(theirs, func(t Package) bool { return t.Name == rows[i].Name })
	}
	return rows, nil
}

// parsePackages reads lines of package names.
func parsePackages(out string) ([]Package, error) {
	found := packageRow.FindAllStringSubmatch(out, maxPackages)
	if len(found) == 0 {
		return nil, fmt.Errorf("no package: %w", ErrMalformed)
	}
	rows := make([]Package, len(found))
	for i, m := range found {
		rows[i].Name = m[1]
		rows[i].Version, _ = strconv.ParseInt(m[2], 10, 64)
	}
	return rows, nil
}

// Apps returns the apps that have an icon, by name. Their labels are not known:
// the phone tells them to apps only.
func (p *Phone) Apps(ctx context.Context) ([]App, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	wanted := []source{launchers, ownPackages}
	a := newAnswers()
	err := p.ask(ctx, a, wanted)
	if err == nil {
		err = a.err(wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	names, err := parseLaunchers(a.text(launchers))
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	own, _ := parsePackages(a.text(ownPackages)) // a new phone has none
	apps := make([]App, len(names))
	for i, name := range names {
		system := !slices.ContainsFunc(own, func(o Package) bool { return o.Name == name })
		apps[i] = App{Package: name, System: system}
	}
	return apps, nil
}

// parseLaunchers reads the packages of activities, each once, by name.
func parseLaunchers(out string) ([]string, error) {
	var names []string
	for _, m := range launchRow.FindAllStringSubmatch(out, maxPackages) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no app has an icon: %w", ErrMalformed)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
