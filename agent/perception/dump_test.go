package perception

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseDumpSaysWhatIsWrongAndWhere(t *testing.T) {
	const head = `<?xml version='1.0' ?><hierarchy rotation="0">`
	for name, c := range map[string]struct {
		dump   string
		err    error
		offset int
	}{
		"nothing":              {"", ErrNoHierarchy, 0},
		"not idle":             {"ERROR: could not get idle state.\n", ErrNoHierarchy, 0},
		"no root":              {"ERROR: null root node returned by UiTestAutomationBridge.\n", ErrNoHierarchy, 0},
		"another root":         {"<?xml version='1.0' ?>\n<html><hierarchy></hierarchy></html>", ErrWrongRoot, 23},
		"a longer name":        {"<hierarchyX></hierarchyX>", ErrWrongRoot, 0},
		"only a declaration":   {"<?xml version='1.0' ?>", ErrDumpTruncated, 22},
		"cut declaration":      {"<?xml vers", ErrDumpTruncated, 10},
		"cut in the root":      {"<hierarchy rot", ErrDumpTruncated, 14},
		"cut between nodes":    {head + `<node text="a" />`, ErrDumpTruncated, 63},
		"cut in a node":        {head + `<node text="a`, ErrDumpTruncated, 59},
		"cut before a value":   {head + `<node text=`, ErrDumpTruncated, 57},
		"cut in a closing tag": {head + `</hierarchy`, ErrDumpTruncated, 57},
		"cut in a comment":     {head + `<!-- x </hierarchy>`, ErrDumpTruncated, 65},
		"no quotes":            {head + `<node text=a /></hierarchy>`, ErrDumpSyntax, 57},
		"no value":             {head + `<node text /></hierarchy>`, ErrDumpSyntax, 52},
		"no name":              {head + `< ></hierarchy>`, ErrDumpSyntax, 46},
		"root closed early":    {head + `<node></hierarchy>`, ErrDumpSyntax, 52},
		"a node too few":       {head + `</node></hierarchy>`, ErrDumpSyntax, 46},
		"slash in a tag":       {head + `<node / a="b"></hierarchy>`, ErrDumpSyntax, 53},
		"too large":            {strings.Repeat(" ", maxDump+1), ErrDumpTooLarge, maxDump},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDump([]byte(c.dump))
			var at *DumpError
			if !errors.Is(err, c.err) || !errors.As(err, &at) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if at.Offset != c.offset {
				t.Errorf("offset %d, want %d: %v", at.Offset, c.offset, err)
			}
		})
	}
}

func TestParseDumpTakesWhatPhonesWrite(t *testing.T) {
	for name, dump := range map[string]string{
		"double quotes":       `<hierarchy rotation="1"><node bounds="[0,0][9,9]" text="a"/></hierarchy>`,
		"single quotes":       `<hierarchy rotation='1'><node text='a' bounds='[0,0][9,9]'/></hierarchy>`,
		"open and close":      "<hierarchy rotation=\"1\">\r\n <node text=\"a\"\r\n bounds=\"[0,0][9,9]\"\r\n></node >\r\n</hierarchy >",
		"text around":         "x <y> z\n<hierarchy rotation=\"1\">q<node text=\"a\" bounds=\"[0,0][9,9]\"/>w</hierarchy>UI hierchary dumped to: /dev/tty",
		"comment":             `<hierarchy rotation="1"><!-- <node/> --><node text="a" bounds="[0,0][9,9]"/></hierarchy>`,
		"NULs":                "<hierarchy\x00 rotation=\"1\"><node\x00 text=\"\x00a\x00\" bounds=\"[0,0][9,9]\"/></hierarchy>",
		"unknown attributes":  `<hierarchy rotation="1" x="y"><node NAF="true" new="1" text="a" bounds="[0,0][9,9]" z=""/></hierarchy>`,
		"a name in the quote": `<hierarchy rotation="1"><node text="a" bounds="[0,0][9,9]" odd="</hierarchy><node>"/></hierarchy>`,
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := parseDump([]byte(dump))
			if err != nil {
				t.Fatal(err)
			}
			if tree.rotation != 1 || len(tree.nodes) != 1 || string(tree.bytes(tree.nodes[0].text)) != "a" || tree.nodes[0].bounds.w() != 9 || tree.nodes[0].end != 1 {
				t.Errorf("got %+v", tree)
			}
		})
	}
}

// textOf decodes an attribute.
func textOf(value string) string {
	p := parser{tree: &tree{src: []byte(value)}}
	return string(p.bytes(p.decoded(span{0, int32(len(value))})))
}

// lacking are the parts of a reading of which some are missing.
func lacking(parts ...string) []Part {
	var all []Part
	for _, name := range parts {
		all = append(all, Part{Name: name, Err: errBroken})
	}
	return all
}

func TestTextOf(t *testing.T) {
	for in, want := range map[string]string{
		`plain`:                     "plain",
		`&lt;&gt;&amp;&quot;&apos;`: `<>&"'`,
		`&#55357;&#56832;`:          "\U0001F600",
		`&#xD83D;&#xde80;x`:         "\U0001F680x",
		`&#55357;x`:                 "\uFFFDx",
		`&#55357;`:                  "\uFFFD",
		`&#56832;x`:                 "\uFFFDx",
		`&#55357;&#55357;&#56832;`:  "\uFFFD\U0001F600",
		`&#10;&#x9;`:                "\n\t",
		`& &; &x; &#; &#x; &#z;`:    "& &; &x; &#; &#x; &#z;",
		`&#1114112;&#999999999;`:    "\uFFFD\uFFFD",
		`&#99999999999999999;`:      "&#99999999999999999;",
		"a\x00b&#0;c":               "abc",
		"bad \xff\xfe":              "bad \uFFFD\uFFFD",
		`&amp;lt;`:                  "&lt;",
	} {
		if got := textOf(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	for _, long := range []string{strings.Repeat("é", maxAttr), "&lt;" + strings.Repeat("é", maxAttr)} {
		if got := textOf(long); len(got) > maxAttr || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("a long text is cut to %d bytes: ...%q", len(got), got[len(got)-4:])
		}
	}
}

func TestBoundsOf(t *testing.T) {
	for in, want := range map[string]string{
		"[0,63][1080,210]":           "(0,63)-(1080,210)",
		"[-50,-10][20,30]":           "(-50,-10)-(20,30)",
		"[0,0][0,0]":                 "(0,0)-(0,0)",
		"[9,9][1,1]":                 "(0,0)-(0,0)",
		"[0,0][1,1]x":                "(0,0)-(0,0)",
		"[0,0]":                      "(0,0)-(0,0)",
		"[0,0][1,999999999]":         "(0,0)-(0,0)",
		"[0,0][1,99999999999999999]": "(0,0)-(0,0)",
		"[a,0][1,1]":                 "(0,0)-(0,0)",
		"":                           "(0,0)-(0,0)",
	} {
		if got := boundsOf([]byte(in)).rectangle().String(); got != want {
			t.Errorf("%q gives %s, want %s", in, got, want)
		}
	}
}

// nested returns a dump of depth nodes, each inside the one before.
func nested(depth int) []byte {
	var b strings.Builder
	b.WriteString(`<hierarchy rotation="0">`)
	for i := range depth {
		fmt.Fprintf(&b, `<node text="" class="android.widget.FrameLayout" clickable="%t" bounds="[0,0][1080,2400]">`, i%2 == 0)
	}
	b.WriteString(`<node text="deep" class="android.widget.TextView" bounds="[0,0][100,100]"/>`)
	b.WriteString(strings.Repeat("</node>", depth) + "</hierarchy>")
	return []byte(b.String())
}

func TestDeepAndWideTreesAreBounded(t *testing.T) {
	tree, err := parseDump(nested(15000))
	if err != nil || tree.cut || len(tree.nodes) != 15001 || tree.nodes[15000].depth != 15001 {
		t.Fatalf("15000 levels: %d nodes, cut %t, %v", len(tree.nodes), tree.cut, err)
	}
	if s := (reading{tree: tree}).scene(); len(s.Elements) > maxElements {
		t.Errorf("%d elements", len(s.Elements))
	}
	if tree, err = parseDump(nested(maxDepth + 10)); err != nil || !tree.cut || len(tree.nodes) != maxDepth {
		t.Errorf("deeper than the bound: %v", err)
	}
	wide := `<hierarchy>` + strings.Repeat(`<node><node/></node>`, maxNodes) + `</hierarchy>`
	if tree, err = parseDump([]byte(wide)); err != nil || !tree.cut || len(tree.nodes) != maxNodes {
		t.Errorf("more nodes than the bound: %v", err)
	}
}

func FuzzParseDump(f *testing.F) {
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Add(nested(50))
	f.Add([]byte("ERROR: could not get idle state.\n"))
	f.Add([]byte(`<hierarchy><node a='&#55357;' ></hierarchy>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := parseDump(b)
		if err != nil {
			var at *DumpError
			if tree != nil || !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(b) {
				t.Fatalf("tree %v, error %v", tree, err)
			}
			return
		}
		for i := range tree.nodes {
			n := &tree.nodes[i]
			if int(n.parent) >= i || int(n.end) <= i || int(n.end) > len(tree.nodes) || n.parent >= 0 && n.end > tree.nodes[n.parent].end {
				t.Fatalf("node %d: parent %d, end %d of %d", i, n.parent, n.end, len(tree.nodes))
			}
		}
		s := (reading{tree: tree, parts: lacking(PartFocus, PartDisplay)}).scene()
		if lines := strings.Count(s.Prompt(), "\n"); lines != len(s.Elements)+1 {
			t.Fatalf("%d elements on %d lines", len(s.Elements), lines)
		}
		if len(s.Elements) > maxElements {
			t.Fatalf("%d elements", len(s.Elements))
		}
	})
}
