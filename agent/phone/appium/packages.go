package appium

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"phonerack/sync/wire"
)

// Package is a release of an npm package that holds apps for phones.
type Package struct {
	Name, Version string
	Integrity     string   // of the tarball, as npm writes it
	Papers        []string // licence and notices that go with the apps
	Apps          []App
}

// App is one Android app as it was released.
type App struct {
	ID      string // Android package
	File    string // name below apks/ of the npm package
	Size    int64  // bytes
	SHA256  string
	Version string // versionName; empty if the app has none
	Code    int    // versionCode
}

// The apps' Android packages.
const (
	serverID   = "io.appium.uiautomator2.server"
	testID     = serverID + ".test"
	settingsID = "io.appium.settings"
)

// Both apps' manifests have minSdkVersion 26.
const (
	minSDK     = 26
	minAndroid = "8.0"
)

// Packages returns the pinned releases. It is the only place that knows them.
func Packages() []Package {
	return []Package{
		{
			Name: "appium-uiautomator2-server", Version: "10.6.6",
			Integrity: "sha512-Ae7mB19OcLkEBi/U/r9eKnCmCJHV5iNf2/HYYHstuP7iWGCTXj1WXfIC++7fBfGWdSZVDoWc6nJO8miZInE1Wg==",
			Papers:    []string{"LICENSE"},
			Apps: []App{
				{
					ID: serverID, File: "appium-uiautomator2-server-v10.6.6.apk", Size: 17968807,
					SHA256:  "8ff760a2a86b487f53090fbdcd5b0360e67d02bb811887d527a9557b0d59c80d",
					Version: "10.6.6", Code: 278,
				},
				{
					ID: testID, File: "appium-uiautomator2-server-debug-androidTest.apk", Size: 197183,
					SHA256: "e6f729287d72351388fd66597c35b69988b9091a7011954bf92a55d416cb1e1c",
				},
			},
		},
		{
			Name: "io.appium.settings", Version: "8.0.10",
			Integrity: "sha512-hvCl6u2QMrggrOohOy9pDTFo0bIWn78Nxdvj57UoPoCSFrkP0a8y73a1GaV31x3IzPw6QIECakpznft1/2/3bA==",
			Papers:    []string{"LICENSE", "NOTICE.txt"},
			Apps: []App{{
				ID: settingsID, File: "settings_apk-debug.apk", Size: 3076294,
				SHA256:  "4c5d60ab5ae56502857dc625e1dde2996fa6d9e64c479bbce59214774e2129dd",
				Version: "8.0.10", Code: 192,
			}},
		},
	}
}

// Folder is where the package's files lie, below the folder of all of them.
func (p Package) Folder() string { return p.Name + "-" + p.Version }

// Read returns an app's file if it is the pinned one. What is installed are
// these bytes, so that nobody can exchange the file in between. It fails with a
// *wire.Refusal of code wire.HelperFile that wraps ErrBadFile.
func (p Package) Read(files fs.FS, a App) ([]byte, error) {
	refuse := func(reason string, err error) error {
		cause := ErrBadFile
		if err != nil {
			cause = fmt.Errorf("%w: %w", ErrBadFile, err)
		}
		return wire.Refuse(wire.HelperFile, map[string]any{"file": a.File, "reason": reason}).Because(cause)
	}
	f, err := files.Open(path.Join(p.Folder(), a.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("it is missing", err)
	case err != nil:
		return nil, refuse("it cannot be read", err)
	}
	defer f.Close()
	apk := make([]byte, a.Size)
	if _, err := io.ReadFull(f, apk); err != nil {
		return nil, refuse("it is cut short or cannot be read", err)
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, refuse("it is longer than the pinned one", nil)
	}
	if sum := sha256.Sum256(apk); hex.EncodeToString(sum[:]) != a.SHA256 {
		return nil, refuse("its SHA-256 is not the pinned one", nil)
	}
	return apk, nil
}
