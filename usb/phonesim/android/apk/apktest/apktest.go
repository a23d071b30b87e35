// Package apktest makes Android packages that a simulated phone can install. They hold a manifest and nothing that
// could run.
package apktest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"unicode/utf16"

	"phonerack/usb/phonesim/android/apk"
)

// Build returns a package with a manifest.
func Build(m apk.Manifest) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range []struct {
		name string
		data []byte
	}{{"AndroidManifest.xml", Manifest(m)}, {"classes.dex", []byte("dex\n035\x00")}} {
		w, err := z.Create(f.name)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Manifest returns a binary manifest.
func Manifest(m apk.Manifest) []byte {
	w := &writer{index: map[string]uint32{}}
	for _, r := range resources { // strings of the map come first
		w.text(r.name)
	}
	w.start("manifest", text("package", m.Package), number("versionCode", m.VersionCode), text("versionName", m.VersionName))
	w.element("uses-sdk", number("minSdkVersion", int64(max(m.MinSDK, 1))), number("targetSdkVersion", int64(m.TargetSDK)))
	for _, p := range m.Permissions {
		w.element("uses-permission", text("name", p))
	}
	for _, i := range m.Instrumenting {
		w.element("instrumentation", text("name", i.Name), text("targetPackage", i.Target))
	}
	w.start("application", text("label", m.Label), truth("testOnly", m.TestOnly), truth("debuggable", m.Debuggable))
	for _, of := range []struct {
		kind string
		list []apk.Component
	}{{"activity", m.Activities}, {"service", m.Services}, {"receiver", m.Receivers}} {
		for _, c := range of.list {
			w.component(of.kind, c)
		}
	}
	w.end("application")
	w.end("manifest")
	return w.document()
}

// resources are the attributes that Android knows by number.
var resources = []struct {
	name   string
	number uint32
}{
	{"label", 0x01010001},
	{"name", 0x01010003},
	{"permission", 0x01010006},
	{"debuggable", 0x0101000f},
	{"targetPackage", 0x01010021},
	{"minSdkVersion", 0x0101020c},
	{"versionCode", 0x0101021b},
	{"versionName", 0x0101021c},
	{"targetSdkVersion", 0x01010270},
	{"testOnly", 0x01010272},
}

const none = 0xffffffff

// attribute is a name and a typed value.
type attribute struct {
	name, text string
	kind       uint8
	number     uint32
}

func text(name, v string) attribute { return attribute{name: name, text: v, kind: 3} }
func number(name string, v int64) attribute {
	return attribute{name: name, kind: 0x10, number: uint32(v)}
}

func truth(name string, v bool) attribute {
	a := attribute{name: name, kind: 0x12}
	if v {
		a.number = none
	}
	return a
}

type writer struct {
	strings []string
	index   map[string]uint32
	body    []byte
}

func (w *writer) text(s string) uint32 {
	i, ok := w.index[s]
	if !ok {
		i = uint32(len(w.strings))
		w.index[s] = i
		w.strings = append(w.strings, s)
	}
	return i
}

func (w *writer) component(kind string, c apk.Component) {
	attrs := []attribute{text("name", c.Name)}
	if c.Permission != "" {
		attrs = append(attrs, text("permission", c.Permission))
	}
	w.start(kind, attrs...)
	w.start("intent-filter")
	for _, a := range c.Actions {
		w.element("action", text("name", a))
	}
	for _, a := range c.Categories {
		w.element("category", text("name", a))
	}
	w.end("intent-filter")
	w.end(kind)
}

func (w *writer) element(name string, attrs ...attribute) {
	w.start(name, attrs...)
	w.end(name)
}

// chunk makes a chunk with a header of its own besides type and sizes.
func chunk(kind uint16, header, body []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(8+len(header)))
	b = binary.LittleEndian.AppendUint32(b, uint32(8+len(header)+len(body)))
	return append(append(b, header...), body...)
}

func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func (w *writer) start(name string, attrs ...attribute) {
	body := words(none, w.text(name))
	for _, v := range []uint16{20, 20, uint16(len(attrs)), 0, 0, 0} {
		body = binary.LittleEndian.AppendUint16(body, v)
	}
	for _, a := range attrs {
		raw := uint32(none)
		if a.kind == 3 {
			raw = w.text(a.text)
			a.number = raw
		}
		body = append(body, words(none, w.text(a.name), raw, 8|uint32(a.kind)<<24, a.number)...)
	}
	w.body = append(w.body, chunk(0x0102, words(1, none), body)...)
}

func (w *writer) end(name string) {
	w.body = append(w.body, chunk(0x0103, words(1, none), words(none, w.text(name)))...)
}

func (w *writer) document() []byte {
	var offsets, data []byte
	for _, s := range w.strings {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(data)))
		units := utf16.Encode([]rune(s))
		data = binary.LittleEndian.AppendUint16(data, uint16(len(units)))
		for _, u := range append(units, 0) {
			data = binary.LittleEndian.AppendUint16(data, u)
		}
	}
	for len(data)%4 != 0 {
		data = append(data, 0)
	}
	const poolHeader = 28
	pool := chunk(0x0001, words(uint32(len(w.strings)), 0, 0, uint32(poolHeader+len(offsets)), 0), append(offsets, data...))
	var numbers []byte
	for _, r := range resources {
		numbers = binary.LittleEndian.AppendUint32(numbers, r.number)
	}
	all := append(pool, chunk(0x0180, nil, numbers)...)
	return chunk(0x0003, nil, append(all, w.body...))
}
