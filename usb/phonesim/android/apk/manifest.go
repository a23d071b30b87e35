package apk

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// ErrNotAPK is returned for a file that is no zip archive with a manifest.
var ErrNotAPK = errors.New("apk: not an Android package")

// Manifest is what an Android package says of itself.
type Manifest struct {
	Package       string
	VersionCode   int64
	VersionName   string
	MinSDK        int
	TargetSDK     int
	Label         string // empty if it is a resource
	TestOnly      bool
	Debuggable    bool
	Permissions   []string // requested
	Activities    []Component
	Services      []Component
	Receivers     []Component
	Instrumenting []Instrumentation
}

// Component is an activity, a service or a receiver. Name is a whole class name.
type Component struct {
	Name       string
	Permission string
	Actions    []string // of its intent filters
	Categories []string
}

// Instrumentation is a runner of tests.
type Instrumentation struct {
	Name   string // whole class name
	Target string // package
}

// Launcher returns the class of the activity that a home screen starts, or nothing.
func (m *Manifest) Launcher() string {
	for _, a := range m.Activities {
		if a.has(a.Actions, "android.intent.action.MAIN") && a.has(a.Categories, "android.intent.category.LAUNCHER") {
			return a.Name
		}
	}
	return ""
}

// InputMethods returns the classes of the services that are keyboards.
func (m *Manifest) InputMethods() (names []string) {
	for _, s := range m.Services {
		if s.Permission == "android.permission.BIND_INPUT_METHOD" && s.has(s.Actions, "android.view.InputMethod") {
			names = append(names, s.Name)
		}
	}
	return names
}

func (Component) has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// maxManifest bounds the manifest, in bytes, and maxList each of its lists.
const (
	maxManifest = 4 << 20
	maxList     = 4096
)

// Read reads the manifest of a package of size bytes. An archive that cannot be read gives ErrNotAPK; any other error
// is a manifest that is not as it must be.
func Read(r io.ReaderAt, size int64) (*Manifest, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAPK, err)
	}
	f, err := archive.Open("AndroidManifest.xml")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAPK, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAPK, err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("apk: a manifest of more than %d bytes", maxManifest)
	}
	return Parse(data)
}

// Resource numbers of the attributes (android.R.attr).
const (
	attrLabel         = 0x01010001
	attrName          = 0x01010003
	attrPermission    = 0x01010006
	attrDebuggable    = 0x0101000f
	attrTargetPackage = 0x01010021
	attrMinSDK        = 0x0101020c
	attrVersionCode   = 0x0101021b
	attrVersionName   = 0x0101021c
	attrTargetSDK     = 0x01010270
	attrTestOnly      = 0x01010272
)

// packageName is what a package may be called.
var packageName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)

// Parse reads a binary manifest.
func Parse(data []byte) (*Manifest, error) {
	p := &parser{m: &Manifest{MinSDK: 1}}
	if err := walk(data, p.start, p.end); err != nil {
		return nil, fmt.Errorf("apk: %w", err)
	}
	m := p.m
	if !packageName.MatchString(m.Package) || len(m.Package) > 223 {
		return nil, fmt.Errorf("apk: %q is no name of a package", m.Package)
	}
	if m.TargetSDK == 0 {
		m.TargetSDK = m.MinSDK
	}
	return m, nil
}

// parser collects what it meets on the way through a manifest.
type parser struct {
	m         *Manifest
	path      []string
	component *Component // that is open
}

func (p *parser) start(depth int, name string, attrs []attribute) {
	p.path = append(p.path[:depth], name)
	m := p.m
	get := func(resource uint32) string {
		for _, a := range attrs {
			if a.resource == resource {
				return a.String()
			}
		}
		return ""
	}
	number := func(resource uint32) int64 {
		n, _ := strconv.ParseInt(get(resource), 0, 64)
		return max(n, 0)
	}
	truth := func(resource uint32) bool { return get(resource) == "true" }
	switch strings.Join(p.path, "/") {
	case "manifest":
		for _, a := range attrs {
			if a.name == "package" && a.resource == 0 {
				m.Package = a.text
			}
		}
		m.VersionCode, m.VersionName = number(attrVersionCode), get(attrVersionName)
	case "manifest/uses-sdk":
		m.MinSDK, m.TargetSDK = max(int(number(attrMinSDK)), 1), int(number(attrTargetSDK))
	case "manifest/uses-permission", "manifest/uses-permission-sdk-23":
		m.Permissions = limited(m.Permissions, get(attrName))
	case "manifest/application":
		m.Label, m.TestOnly, m.Debuggable = get(attrLabel), truth(attrTestOnly), truth(attrDebuggable)
	case "manifest/instrumentation":
		m.Instrumenting = limited(m.Instrumenting, Instrumentation{Name: p.class(get(attrName)), Target: get(attrTargetPackage)})
	case "manifest/application/activity", "manifest/application/activity-alias", "manifest/application/service", "manifest/application/receiver":
		p.component = &Component{Name: p.class(get(attrName)), Permission: get(attrPermission)}
	default:
		c := p.component
		if c == nil || depth < 4 || p.path[3] != "intent-filter" {
			return
		}
		switch name {
		case "action":
			c.Actions = limited(c.Actions, get(attrName))
		case "category":
			c.Categories = limited(c.Categories, get(attrName))
		}
	}
}

func (p *parser) end(depth int) {
	if depth != 2 || p.component == nil {
		return
	}
	switch p.path[2] {
	case "service":
		p.m.Services = limited(p.m.Services, *p.component)
	case "receiver":
		p.m.Receivers = limited(p.m.Receivers, *p.component)
	default:
		p.m.Activities = limited(p.m.Activities, *p.component)
	}
	p.component = nil
}

// class completes a class name that begins with a dot or has none.
func (p *parser) class(name string) string {
	switch {
	case strings.HasPrefix(name, "."):
		return p.m.Package + name
	case name != "" && !strings.Contains(name, "."):
		return p.m.Package + "." + name
	}
	return name
}

// String is the value as the manifest's author wrote it; of a resource, nothing.
func (a attribute) String() string {
	switch a.kind {
	case valueString:
		return a.text
	case valueDecimal:
		return strconv.Itoa(int(int32(a.number)))
	case valueHex:
		return "0x" + strconv.FormatUint(uint64(a.number), 16)
	case valueBoolean:
		return strconv.FormatBool(a.number != 0)
	case valueReference:
		return ""
	}
	return a.text
}

func limited[T any](list []T, v T) []T {
	if len(list) >= maxList {
		return list
	}
	return append(list, v)
}
