package screen

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"phonerack/usb/phonesim/screen/internal/app"
)

// small is an app with one of everything that a step or widget can do.
const small = `
package: com.example.small
activity: .Main
version: "1"
label: "@title"
icon: gear
start: main
texts:
  title: {en: Small, ar: صغير, zh: 小}
  hello: {en: "Hello {name}", ar: "مرحبا {name}", zh: "你好{name}"}
colors: {hot: "#ff0000"}
styles: {big: {size: 30, color: hot}}
variables: {name: Ana, on: false, n: 1}
lists:
  things:
    shuffle: true
    items:
      - {id: a, name: {en: A, ar: أ, zh: 甲}, price: 2, picture: star, color: hot}
      - {id: b, name: {en: B, ar: ب, zh: 乙}, price: 3, picture: heart, color: "#00ff00"}
pictures:
  dot: {shapes: [{fill: tint, circle: [12, 12, 5]}, {stroke: hot, path: "M1 1 l2 2 h3 v4 q1 1 2 2 c1 1 2 2 3 3 z"}]}
parts:
  line: {widget: text, text: "{word}"}
screens:
  main:
    variables: {draft: ""}
    enter: [{set: {n: n + 1}}, {delay: 20ms, quiet: true}, {set: {n: n + 1}}]
    root:
      widget: column
      children:
        - {widget: toolbar, up: true, text: "@title"}
        - {widget: text, text: "@hello", style: big}
        - {widget: edit, id: draft, value: draft, hint: "@title", change: [{set: {n: n + 1}}], submit: [{set: {name: draft}}, {hide_keyboard: true}]}
        - {widget: switch, id: on, value: on, text: "@title", change: [{if: on, then: [{journal: "on {n}"}], else: [{journal: "off"}]}]}
        - {widget: part, part: line, with: {word: "'x' + (n * 2 - 1 % 3)"}}
        - {widget: spinner, when: n > 1000}
        - widget: list
          list: things
          where: item.price >= 2 and not (item.id == 'z' or false)
          item: {widget: button, id: thing, text: "{item.name}", tap: [{go: second, with: {thing: item}}], long_press: [{crash: true}]}
  second:
    args: [thing]
    root: {widget: button, id: drop, text: "{en(thing.name)}", tap: [{remove: {from: things, where: item == thing}}, {open: sure}]}
dialogs:
  sure:
    root: {widget: button, id: ok, text: "@title", tap: [{dismiss: true}, {back: true}, {journal: "left {join(things, item.id)}"}]}
`

func smallFS(yaml string) fstest.MapFS {
	return fstest.MapFS{"com.example.small/app.yaml": &fstest.MapFile{Data: []byte(yaml)}}
}

func TestAppFromItsOwnFiles(t *testing.T) {
	d := drive(t, Config{Apps: smallFS(small)})
	d.open("com.example.small")
	d.find("Hello Ana")
	d.find("x5")
	d.tap("draft")
	d.typeText("Ben\n")
	d.find("Hello Ben")
	d.tap("on")
	d.tap("on")
	d.tap("B")
	d.tap("drop")
	d.tap("ok")
	d.wantJournal("on 4", "off", "left a")
	d.LongPress(centre(d.find("A")))
	d.settle()
	d.find("Small keeps stopping")
}

func TestLoaderSaysWhereAFaultIs(t *testing.T) {
	for _, c := range []struct{ name, old, with, want string }{
		{"syntax", "start: main", "start: [", "com.example.small/app.yaml: "},
		{"unknown field", "hint:", "hnt:", "hnt"},
		{"unknown widget", "widget: switch", "widget: swich", "screen main: root/3 (id on): unknown widget \"swich\""},
		{"unknown screen", "go: second", "go: third", "root/6/item (id thing): tap: step 0: go: unknown screen \"third\""},
		{"unknown dialog", "open: sure", "open: shure", "screen second: root (id drop): tap: step 1: open: unknown dialog"},
		{"missing argument", "with: {thing: item}", "with: {}", "second needs the argument \"thing\""},
		{"extra argument", "with: {thing: item}", "with: {thing: item, x: item}", "second has no argument \"x\""},
		{"unknown name", "n > 1000", "m > 1000", "root/5: when: unknown name \"m\""},
		{"unknown text", "text: \"@hello\"", "text: \"@hallo\"", "unknown text \"hallo\""},
		{"name in a text", "Hello {name}", "Hello {nam}", "text \"hello\": unknown name \"nam\""},
		{"missing language", ", zh: 小}", "}", "text title: text is missing in language \"zh\""},
		{"item without language", ", zh: 甲}", "}", "missing in language"},
		{"unknown picture", "icon: gear", "icon: gaer", "icon: unknown picture \"gaer\""},
		{"item's picture", "picture: heart", "picture: hart", "list things: item 1: picture: unknown picture \"hart\""},
		{"unknown colour", "color: hot}}", "color: hut}}", "unknown colour \"hut\""},
		{"bad colour", "#ff0000", "#ff00", "is not #rrggbb"},
		{"unknown style", "style: big", "style: bigger", "unknown style \"bigger\""},
		{"bad expression", "n > 1000", "n > ", "expression \"n >\": ends too early"},
		{"bad function", "en(thing.name)", "fr(thing.name)", "unknown function \"fr\""},
		{"arguments of a function", "en(thing.name)", "en()", "en takes 1 to 1 arguments, not 0"},
		{"unclosed brace", "on {n}", "on {n", "missing }"},
		{"two verbs", "{back: true}", "{back: true, dismiss: true}", "a step does exactly one thing, this one 2"},
		{"assign to a number", "set: {n: n + 1}}, {delay", "set: {1: n + 1}}, {delay", "\"1\" is not a variable or field"},
		{"edit without value", "value: draft, hint", "hint", "an edit needs value"},
		{"list without item", "widget: list", "widget: column", "belong to a list"},
		{"children of a text", "widget: text, text: \"@hello\"", "widget: text, children: [{widget: spacer}]", "a text has no children"},
		{"bad length", "size: 30", "size: big", "big"},
		{"huge length", "size: 30", "size: 100000", "out of range"},
		{"bad delay", "20ms", "20 days", "is not a duration"},
		{"bad path", "M1 1", "X1 1", "unknown command X"},
		{"wrong package", "package: com.example.small", "package: com.example.large", "must be the name of its folder"},
		{"part in itself", "line: {widget: text, text: \"{word}\"}", "line: {widget: part, part: line, with: {word: word}}", "nested too deeply"},
		{"no start", "start: main", "start: begin", "start: unknown screen \"begin\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(small, c.old) {
				t.Fatalf("the small app has no %q", c.old)
			}
			_, err := New(Config{Apps: smallFS(strings.Replace(small, c.old, c.with, 1))})
			if located := new(app.Error); !errors.As(err, &located) || located.File == "" {
				t.Fatalf("error %v says no file", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestLoaderRejectsTwoDeclarations(t *testing.T) {
	files := smallFS(small)
	files["com.example.small/more.yaml"] = &fstest.MapFile{Data: []byte("texts: {title: {en: a, ar: a, zh: a}}")}
	if _, err := New(Config{Apps: files}); err == nil || !strings.Contains(err.Error(), "declared in com.example.small/app.yaml already") {
		t.Errorf("two declarations give %v", err)
	}
}

func TestEngineRejectsBadConfig(t *testing.T) {
	for _, c := range []Config{{Width: 1, Height: 1}, {Density: 9}, {Language: "fr"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// FuzzApp loads any file as an app; what loads must also run.
func FuzzApp(f *testing.F) {
	f.Add(small)
	f.Add(strings.Replace(small, "start: main", "start: second", 1))
	f.Add("package: com.example.small\nscreens: {a: {root: {widget: frame}}}")
	f.Fuzz(func(t *testing.T, yaml string) {
		if strings.Contains(yaml, "&") {
			return // aliases are the decoder's business
		}
		c := newClock()
		e, err := New(Config{Apps: smallFS(yaml), Width: 200, Height: 320, Density: 100, Clock: c.Now})
		if err != nil {
			return
		}
		_ = e.Launch("com.example.small")
		c.advance(transition * 3)
		e.Tree()
		for y := 5; y < 320; y += 40 {
			e.Tap(100, y)
			_ = e.Type("ab\n")
			e.LongPress(50, y)
			e.Swipe(100, 300, 100, 10, 0)
		}
		e.Key(KeyBack)
		e.Render()
		e.Journal()
	})
}

// TestGuideExample runs the app that APPS.md shows to authors.
func TestGuideExample(t *testing.T) {
	guide, err := os.ReadFile("APPS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "    package: com.example.notes")
	example, _, _ := strings.Cut("    package: com.example.notes"+rest, "\n`app.yaml` alone")
	yaml := strings.ReplaceAll("\n"+example, "\n    ", "\n")
	d := drive(t, Config{Apps: fstest.MapFS{"com.example.notes/app.yaml": &fstest.MapFile{Data: []byte(yaml)}}})
	d.tap("Notes")
	d.find("Hello Ana")
	d.tap("Milk")
	d.tap("draft")
	d.typeText("Bread")
	d.Key(KeyBack)
	d.tap("Add")
	d.find("Bread")
	d.wantJournal("note: Bread")
}
