package screen

import (
	"errors"
	"slices"
	"testing"
)

func TestAppIsInstalledAndTakenAway(t *testing.T) {
	d := drive(t, Config{})
	names := func() (out []string) {
		for _, p := range d.Packages() {
			out = append(out, p.Name)
		}
		return out
	}
	if err := d.Install(Package{Name: "com.example.new", Label: "New {app}", Activity: ".Main", Version: "2"}); err != nil {
		t.Fatal(err)
	}
	d.tap("New {app}")
	if pkg, activity := d.Focus(); pkg != "com.example.new" || activity != ".Main" {
		t.Errorf("focus %s %s", pkg, activity)
	}
	if n := d.Tree(); n.Package != "com.example.new" || len(nodes(n)) != 5 {
		t.Errorf("the screen has %d nodes", len(nodes(n)))
	}
	if err := d.Uninstall("com.example.new", false); err != nil {
		t.Fatal(err)
	}
	d.settle()
	if pkg, _ := d.Focus(); pkg != "com.android.launcher3" || d.has("New {app}") || slices.Contains(names(), "com.example.new") {
		t.Errorf("focus %s, packages %q", pkg, names())
	}
	if err := d.Launch("com.example.new"); !errors.Is(err, ErrUnknownPackage) {
		t.Errorf("launch: %v", err)
	}
	for _, pkg := range []string{"com.example.new", "android", "com.android.launcher3", "com.android.systemui"} {
		if err := d.Uninstall(pkg, false); !errors.Is(err, ErrUnknownPackage) {
			t.Errorf("uninstall %s: %v", pkg, err)
		}
		if pkg != "com.example.new" {
			if err := d.Install(Package{Name: pkg, Version: "1"}); err == nil {
				t.Errorf("installed %s", pkg)
			}
		}
	}
}

func TestAppWithScreensKeepsThem(t *testing.T) {
	d := drive(t, Config{})
	other := drive(t, Config{})
	d.open("com.phonerack.messenger")
	if err := d.Install(Package{Name: "com.phonerack.messenger", Version: "6.0"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	if slices.Contains(d.Running(), "com.phonerack.messenger") {
		t.Error("the replaced app still runs")
	}
	i := slices.IndexFunc(d.Packages(), func(p Package) bool { return p.Name == "com.phonerack.messenger" })
	if p := d.Packages()[i]; p.Version != "6.0" || p.Activity != ".ConversationListActivity" {
		t.Errorf("package %+v", p)
	}
	for _, keep := range []bool{true, false} {
		d.open("com.phonerack.messenger")
		if !d.has("Ana") {
			t.Error("no screens")
		}
		if err := d.Uninstall("com.phonerack.messenger", keep); err != nil {
			t.Fatal(err)
		}
		if err := d.Install(Package{Name: "com.phonerack.messenger", Version: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(other.Packages()) != len(d.Packages()) {
		t.Error("another phone lost an app")
	}
}

func TestServiceWithoutAnActivity(t *testing.T) {
	d := drive(t, Config{})
	if err := d.Install(Package{Name: "com.example.service", Version: "1"}); err != nil {
		t.Fatal(err)
	}
	d.settle()
	if err := d.Launch("com.example.service"); !errors.Is(err, ErrUnknownPackage) || d.has("com.example.service") {
		t.Errorf("launch: %v", err)
	}
}
