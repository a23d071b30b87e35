package pdffont

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Bounds of a file. The first two are less in tests.
const (
	maxObjects  = 400_000
	maxUnpacked = 64 << 20 // bytes of all object streams together
	maxNodes    = 200_000  // of the page tree
	maxForms    = 1000     // form objects looked into for one page
	maxTrailers = 64       // tried, from the end
)

// Errors of Scan.
var (
	ErrNoPages   = errors.New("no page tree is found")
	ErrTooLarge  = errors.New("the file has too many objects")
	ErrEncrypted = errors.New("the objects of the file are encrypted")
)

// file is a PDF with its objects found, not yet parsed.
type file struct {
	text     []byte
	objects  map[int]place
	room     int // objects that may still be found
	unpacked int // bytes of object streams that may still be unpacked
}

// place is where an object's value begins.
type place struct {
	text []byte // the file, or an object stream
	at   int
}

// Scan returns, for the pages first to last (counted from 1), the names of the composite fonts that are not embedded.
// Pages without such fonts are left out.
func Scan(text []byte, first, last int) (map[int][]string, error) {
	f := &file{text: text, objects: map[int]place{}, room: maxObjects, unpacked: maxUnpacked}
	return f.scan(first, last)
}

func (f *file) scan(first, last int) (map[int][]string, error) {
	if bytes.Contains(f.text, []byte("/Encrypt")) && bytes.Contains(f.text, []byte("/ObjStm")) {
		return nil, ErrEncrypted
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	missing := map[int][]string{}
	err = f.walk(root, last, func(number int, resources dict) {
		if number < first {
			return
		}
		if names := f.fontsOf(resources); len(names) > 0 {
			missing[number] = names
		}
	})
	return missing, err
}

// index finds all objects, in the order of the file, so that a later version of one replaces an earlier.
func (f *file) index() error {
	for at := 0; ; {
		i := bytes.Index(f.text[at:], []byte("obj"))
		if i < 0 {
			return nil
		}
		at += i
		number, ok := heading(f.text[max(0, at-32):at])
		at += len("obj")
		if !ok {
			continue // as endobj
		}
		if err := f.add(number, place{f.text, at}); err != nil {
			return err
		}
		if err := f.unpack(at); err != nil {
			return err
		}
	}
}

func (f *file) add(number int, p place) error {
	if f.room--; f.room < 0 {
		return ErrTooLarge
	}
	f.objects[number] = p
	return nil
}

// heading returns the number of an object from what stands before "obj": its number, its generation, each with white
// space behind it.
func heading(before []byte) (number int, ok bool) {
	before, _, ok = lastNumber(before)
	if !ok {
		return 0, false
	}
	_, number, ok = lastNumber(before)
	return number, ok
}

// lastNumber takes white space and the number before it from the end.
func lastNumber(b []byte) (rest []byte, number int, ok bool) {
	end := len(b)
	for end > 0 && space(b[end-1]) {
		end--
	}
	start := end
	for start > 0 && b[start-1] >= '0' && b[start-1] <= '9' {
		start--
	}
	if end == len(b) || start == end || end-start > 10 {
		return nil, 0, false
	}
	number, err := strconv.Atoi(string(b[start:end]))
	return b[:start], number, err == nil
}

// unpack indexes what is in the object at a place if it is an object stream.
func (f *file) unpack(at int) error {
	if !bytes.Contains(f.text[at:min(len(f.text), at+400)], []byte("ObjStm")) {
		return nil
	}
	p := parser{text: f.text, at: at}
	d, ok := p.value(0).(dict)
	if !ok || d["Type"] != name("ObjStm") {
		return nil
	}
	count, _ := d["N"].(int)
	start, _ := d["First"].(int)
	packed, ok := p.stream()
	if !ok || start < 0 || start > maxUnpacked {
		return nil
	}
	if d["DecodeParms"] != nil {
		return errors.New("an object stream is packed in a way that is not known")
	}
	text, n, err := inflate(d["Filter"], packed, f.unpacked)
	if err != nil {
		return err
	}
	f.unpacked -= n
	head := parser{text: text[:min(start, len(text))]}
	for range min(count, maxObjects) {
		number, ok1 := head.value(0).(int)
		offset, ok2 := head.value(0).(int)
		if !ok1 || !ok2 || offset < 0 || offset > len(text)-start {
			break
		}
		if err := f.add(number, place{text, start + offset}); err != nil {
			return err
		}
	}
	return nil
}

// inflate unpacks a stream, and tells how many bytes that took. One that is cut off or damaged gives what there is.
func inflate(filter any, packed []byte, left int) (text []byte, n int, err error) {
	if list, ok := filter.([]any); ok && len(list) == 1 {
		filter = list[0]
	}
	switch filter {
	case nil:
		return packed, 0, nil
	case name("FlateDecode"), name("Fl"):
	default:
		return nil, 0, fmt.Errorf("an object stream has the filter %.40v", filter)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, 0, nil
	}
	text, _ = io.ReadAll(io.LimitReader(r, int64(left)+1))
	if len(text) > left {
		return nil, 0, ErrTooLarge
	}
	return text, len(text), nil
}

// resolve follows references to a value.
func (f *file) resolve(v any) any {
	for range 8 {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		o, ok := f.objects[int(r)]
		if !ok {
			return nil
		}
		p := parser{text: o.text, at: o.at}
		v = p.value(0)
	}
	return nil
}

func (f *file) dict(v any) dict {
	d, _ := f.resolve(v).(dict)
	return d
}

// root finds the page tree: from the last trailer, whether it stands alone or in a cross-reference stream, else from any
// catalog.
func (f *file) root() (any, error) {
	end := len(f.text)
	for range maxTrailers {
		i := bytes.LastIndex(f.text[:end], []byte("/Root"))
		if i < 0 {
			break
		}
		p := parser{text: f.text, at: i + len("/Root")}
		if pages := f.dict(p.value(0))["Pages"]; pages != nil {
			return pages, nil
		}
		end = i
	}
	for number := range f.objects {
		if d := f.dict(ref(number)); d["Type"] == name("Catalog") && d["Pages"] != nil {
			return d["Pages"], nil
		}
	}
	return nil, ErrNoPages
}

// node is a part of the page tree that is still to be walked.
type node struct {
	v         any
	resources any // inherited
}

// walk calls page for each page up to last, with its resources.
func (f *file) walk(root any, last int, page func(number int, resources dict)) error {
	seen := map[ref]bool{}
	todo := []node{{v: root}}
	number := 0
	for visited := 0; len(todo) > 0 && number < last; visited++ {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if visited > maxNodes {
			return ErrTooLarge
		}
		if r, ok := n.v.(ref); ok {
			if seen[r] {
				continue
			}
			seen[r] = true
		}
		d := f.dict(n.v)
		resources := n.resources
		if own := d["Resources"]; own != nil {
			resources = own
		}
		kids, ok := f.resolve(d["Kids"]).([]any)
		if !ok {
			number++
			page(number, f.dict(resources))
			continue
		}
		for _, kid := range slices.Backward(kids) {
			todo = append(todo, node{kid, resources})
		}
	}
	if number == 0 {
		return ErrNoPages
	}
	return nil
}

// fontsOf returns the names of fonts that resources use and that are not embedded, those of forms included, sorted.
func (f *file) fontsOf(resources dict) []string {
	var names []string
	seen := map[ref]bool{}
	todo := []dict{resources}
	for forms := 0; len(todo) > 0 && forms < maxForms; forms++ {
		d := todo[0]
		todo = todo[1:]
		for _, font := range f.dict(d["Font"]) {
			if n, missing := f.missing(f.dict(font)); missing && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		for _, object := range f.dict(d["XObject"]) {
			if r, ok := object.(ref); ok {
				if seen[r] {
					continue
				}
				seen[r] = true
			}
			if form := f.dict(object); form["Subtype"] == name("Form") {
				if own := f.dict(form["Resources"]); own != nil {
					todo = append(todo, own)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// missing tells whether a font is composite and without a font file, and its name without the tag of a subset.
func (f *file) missing(font dict) (string, bool) {
	if font["Subtype"] != name("Type0") {
		return "", false
	}
	list, _ := f.resolve(font["DescendantFonts"]).([]any)
	if len(list) == 0 {
		return "", false
	}
	descendant := f.dict(list[0])
	descriptor := f.dict(descendant["FontDescriptor"])
	for _, key := range []name{"FontFile", "FontFile2", "FontFile3"} {
		if descriptor[key] != nil {
			return "", false
		}
	}
	n, ok := descendant["BaseFont"].(name)
	if !ok {
		if n, ok = font["BaseFont"].(name); !ok {
			n = "a font without a name"
		}
	}
	if len(n) > 7 && n[6] == '+' {
		n = n[7:]
	}
	return string(n), true
}
