package app

// NewBlank makes an app of which nothing is known but what its package says: its one screen is empty. Without an
// activity it has no icon.
func (b *Bundle) NewBlank(pkg, activity, version, label string) (*App, error) {
	a := &App{
		Package: pkg, Activity: activity, Version: version, Label: Template{src: label, parsed: true, parts: []part{{literal: label}}},
		Icon: "gear", Hidden: activity == "", Start: "main", file: map[string]string{},
		Screens: map[string]*Screen{"main": {Name: "main", Root: &Widget{Kind: "frame"}}},
		system:  b.Apps[System],
		blank:   true,
	}
	if activity == "" {
		a.Activity = "." // of no use, but not empty
	}
	if version == "" {
		a.Version = "0"
	}
	if err := check(a); err != nil {
		return nil, err
	}
	return a, nil
}

// Blank tells an app that NewBlank has made.
func (a *App) Blank() bool { return a.blank }

// With returns the app in another version.
func (a *App) With(version string) *App {
	c := *a
	c.Version = version
	return &c
}
