package perception

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"phonerack/agent/phone"
)

// The tests of this file are named after the rules of docs/perception.md.

// on returns the dump of an app's window of 1000x2000 that holds nodes.
func on(nodes ...string) string {
	return `<hierarchy rotation="0">` + window("app", "[0,0][1000,2000]", nodes...) + `</hierarchy>`
}

func window(pkg, bounds string, nodes ...string) string {
	return fmt.Sprintf(`<node class="android.widget.FrameLayout" package="%s" bounds="%s">%s</node>`, pkg, bounds, strings.Join(nodes, ""))
}

// put is a node; attrs hold what matters: of class View unless they name one.
func put(bounds, attrs string, children ...string) string {
	if !strings.Contains(attrs, "class=") {
		attrs += ` class="android.view.View"`
	}
	return fmt.Sprintf(`<node %s package="app" bounds="%s">%s</node>`, attrs, bounds, strings.Join(children, ""))
}

// shown names the elements of a scene: role and label of each.
func shown(s *Scene) string {
	var all []string
	for _, e := range s.Elements {
		label := e.Text
		if label == "" {
			label = e.Description + e.Hint
		}
		all = append(all, e.Role+" "+label)
	}
	return strings.Join(all, "; ")
}

func expect(t *testing.T, dump, want string, around ...func(*phone.State)) *Scene {
	t.Helper()
	s := sceneIn(t, []byte(dump), func(state *phone.State) {
		state.Focus.Package, state.Display = "app", phone.Display{Width: 1000, Height: 2000}
		for _, change := range around {
			change(state)
		}
	})
	if got := shown(s); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	return s
}

func TestRuleOffScreen(t *testing.T) {
	s := expect(t, on(
		put("[0,2000][500,2100]", `text="below"`), put("[-300,0][0,90]", `text="left"`), put("[900,100][1200,200]", `text="half"`),
	), "text half")
	if got := s.Elements[0].Bounds; got != image.Rect(900, 100, 1000, 200) {
		t.Errorf("its bounds are %v", got)
	}
}

func TestRuleTiny(t *testing.T) {
	expect(t, on(
		put("[0,0][5,90]", `text="narrow"`), put("[0,0][90,5]", `text="flat"`), put("[0,0][6,6]", `text="small"`),
		put("[0,1995][90,2100]", `text="a sliver of it"`),
	), "text small")
}

func TestRuleInvisible(t *testing.T) {
	for _, state := range []string{`visible-to-user="false"`, `displayed="false"`} {
		expect(t, on(put("[0,0][90,90]", `text="a" `+state), put("[0,0][90,90]", `text="b"`)), "text b")
	}
}

// The nodes of a web page are reported invisible although they can be seen.
func TestReport10_WhatAWebPageHidesStays(t *testing.T) {
	expect(t, on(put("[0,100][1000,1900]", `class="android.webkit.WebView"`,
		put("[0,100][900,200]", ``, put("[0,100][900,200]", `text="in sight" displayed="false"`)),
		put("[0,1900][900,1950]", `text="below the page" displayed="false"`),
	)), "web ; text in sight")
}

func TestRuleScrolledAway(t *testing.T) {
	for frame, name := range map[string]string{
		`scrollable="true"`: "scroll ; ", `class="android.widget.ListView"`: "", `class="android.widget.ScrollView"`: "", `class="android.webkit.WebView"`: "web ; ",
	} {
		s := expect(t, on(put("[0,500][1000,1000]", frame,
			put("[0,450][1000,550]", ``, put("[0,450][1000,550]", `text="half"`)),
			put("[0,1000][1000,1100]", `text="behind the edge"`),
		), put("[0,1000][1000,1100]", `text="beside"`)), name+"text half; text beside")
		if got := s.Elements[len(s.Elements)-2].Bounds.Min.Y; got != 500 {
			t.Errorf("%s: the row begins at %d", frame, got)
		}
	}
	// Only what scrolls hides what is outside of it: others draw over their edge.
	expect(t, on(put("[0,500][1000,1000]", ``, put("[0,1000][1000,1100]", `text="badge"`))), "text badge")
}

func TestRuleSystemBars(t *testing.T) {
	system := func(bounds, text string) string {
		return `<node package="com.android.systemui" bounds="` + bounds + `"><node package="com.android.systemui" text="` + text + `" clickable="true" bounds="` + bounds + `"/></node>`
	}
	dump := `<hierarchy>` + system("[0,0][1000,90]", "9:41") + system("[0,1900][1000,2000]", "Home") + system("[920,0][1000,2000]", "Back") +
		system("[100,700][900,1100]", "Volume") + window("app", "[0,0][1000,2000]", put("[0,1300][90,1390]", `text="Buy"`)) + `</hierarchy>`
	expect(t, dump, "view Volume; text Buy")
	expect(t, `<hierarchy>`+system("[0,0][1000,90]", "9:41")+`</hierarchy>`, "view 9:41", func(s *phone.State) { s.Focus.Package = systemUI })
}

// The parts of a keyboard are no elements, whichever way it is known by.
func TestRuleKeyboardWindow(t *testing.T) {
	ime := func(pkg, id string) string {
		return `<hierarchy><node package="` + pkg + `" bounds="[0,0][1000,2000]"><node package="` + pkg + `" bounds="[0,1200][1000,2000]" resource-id="` + id + `">` +
			`<node package="` + pkg + `" text="q" clickable="true" bounds="[0,1200][100,1300]"/></node></node>` +
			window("app", "[0,0][1000,2000]", put("[0,300][90,390]", `text="Buy"`), put("[0,1300][90,1390]", `text="Pay"`)) + `</hierarchy>`
	}
	shows := func(s *phone.State) { s.Keyboard.Shown = true }
	for name, c := range map[string]struct {
		dump   string
		around func(*phone.State)
	}{
		"package": {ime("com.google.android.inputmethod.latin", ""), func(*phone.State) {}},
		"window": {ime("com.vendor.keys", ""), func(s *phone.State) {
			s.Windows = []phone.Window{{Package: "com.vendor.keys", Kind: phone.KeyboardWindow}}
		}},
		"input area": {ime("com.vendor.keys", inputArea), func(*phone.State) {}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, c.dump, "text Buy; text Pay", c.around)
			s := expect(t, c.dump, map[bool]string{true: "text Buy", false: "text Buy; text Pay"}[name == "input area"], c.around, shows)
			if name == "input area" && s.KeyboardArea != image.Rect(0, 1200, 1000, 2000) {
				t.Errorf("the keyboard is at %v", s.KeyboardArea)
			}
		})
	}
	expect(t, ime("com.piano.keyboard", ""), "view q", func(s *phone.State) { s.Focus.Package = "com.piano.keyboard" })
}

func TestRuleUnderTheKeyboard(t *testing.T) {
	keyboard := func(area image.Rectangle) func(*phone.State) {
		return func(s *phone.State) { s.Keyboard = phone.Keyboard{Shown: true, Area: area} }
	}
	dump := on(
		put("[0,100][1000,300]", `text="Name" class="android.widget.EditText" focused="true"`),
		put("[0,1000][1000,1400]", `text="Remark"`), put("[0,1300][1000,1500]", `text="Send"`),
	)
	s := expect(t, dump, "edit Name; text Remark", keyboard(image.Rect(0, 1200, 1000, 2000)))
	if got := s.Elements[1].Bounds.Max.Y; got != 1200 {
		t.Errorf("what is half covered ends at %d", got)
	}
	all := "edit Name; text Remark; text Send"
	expect(t, dump, all, keyboard(image.Rectangle{}))
	expect(t, strings.Replace(dump, `focused="true"`, "", 1), all, keyboard(image.Rect(0, 0, 1000, 2000))) // its window, not its keys
	expect(t, dump, all, keyboard(image.Rect(0, 90, 1000, 1490)))                                          // people see what they type
	s = expect(t, dump, all, keyboard(image.Rect(600, 1200, 1000, 1900)))                                  // it floats
	if got := s.Elements[1].Bounds.Max.Y; got != 1400 {
		t.Errorf("a floating keyboard cuts at %d", got)
	}
	hidden := keyboard(image.Rect(0, 1200, 1000, 2000))
	expect(t, dump, all, hidden, func(s *phone.State) { s.Keyboard.Shown = false })
}

func TestRuleBehindAWindow(t *testing.T) {
	app := window("app", "[0,0][1000,2000]", put("[0,0][1000,400]", `text="Top"`), put("[200,900][800,1000]", `text="Middle" clickable="true"`), put("[0,1350][1000,1750]", `text="Half"`))
	dialog := window("app", "[100,600][900,1600]", put("[200,700][800,800]", `text="Really?"`), put("[200,1400][500,1500]", `text="Yes" clickable="true"`))
	empty := window("dimmer", "[0,0][1000,2000]")
	expect(t, `<hierarchy>`+dialog+app+`</hierarchy>`, "text Really?; view Yes; text Top")
	expect(t, `<hierarchy>`+empty+app+`</hierarchy>`, "text Top; view Middle; text Half")
	bubble := window("recorder", "[0,0][1000,2000]", put("[900,900][990,990]", `content-desc="Stop" clickable="true"`))
	expect(t, `<hierarchy>`+bubble+app+`</hierarchy>`, "view Stop; text Top; view Middle; text Half")
	page := window("app", "[0,0][1000,2000]", put("[0,0][90,90]", `text="Page 2"`))
	expect(t, `<hierarchy>`+page+app+`</hierarchy>`, "text Page 2")
}

// A tree of all windows has the popup that the phone's own dumper leaves out, and
// where the tree has not got it, the window list tells of it.
func TestReport04_APopupOfAnotherWindowIsTold(t *testing.T) {
	app := window("app", "[0,0][1000,2000]", put("[0,0][1000,400]", `text="Top"`))
	popup := window("app", "[100,600][900,900]", put("[100,600][900,700]", `text="Copy" clickable="true"`))
	expect(t, `<hierarchy>`+popup+app+`</hierarchy>`, "view Copy; text Top")
	s := expect(t, `<hierarchy>`+app+`</hierarchy>`, "text Top", func(s *phone.State) {
		s.Windows = []phone.Window{{Package: "app", Title: "PopupWindow:5f2", Kind: phone.DialogWindow}, {Package: "app", Kind: phone.AppWindow}}
	})
	if first, _, _ := strings.Cut(s.Prompt(), "\n"); !strings.HasSuffix(first, ` dialog "PopupWindow:5f2"`) {
		t.Errorf("the planner reads %q", first)
	}
}

func TestRuleCovered(t *testing.T) {
	touch := func(text, bounds, attrs string, children ...string) string {
		return put(bounds, `clickable="true" text="`+text+`" `+attrs, children...)
	}
	const small, large = "[9,9][50,50]", "[0,0][99,99]"
	for name, c := range map[string]struct{ dump, want string }{
		"later sibling":         {touch("a", small, "") + touch("b", large, ""), "view b"},
		"same place":            {touch("a", large, "") + touch("b", large, ""), "view b"},
		"later, but smaller":    {touch("a", large, "") + touch("b", small, ""), "view a; view b"},
		"drawn earlier":         {touch("a", small, `drawing-order="2"`) + touch("b", large, `drawing-order="1"`), "view a; view b"},
		"drawn earlier, inside": {touch("a", large, `drawing-order="2"`) + touch("b", small, `drawing-order="1"`), "view a"},
		"in another branch": {
			put(large, `drawing-order="5"`, touch("a", small, `drawing-order="1"`)) + put(large, `drawing-order="4"`, touch("b", large, `drawing-order="9"`)),
			"view a; view b",
		},
		"with all in it":      {touch("a", small, "", put(small, `text="c"`)) + touch("b", large, ""), "view b"},
		"words show through":  {put(small, `text="a"`) + touch("b", large, ""), "text a; view b"},
		"a list cannot move":  {put(small, `scrollable="true"`, put(small, `text="a"`)) + touch("b", large, ""), "text a; view b"},
		"a list takes none":   {touch("a", small, "") + put(large, `scrollable="true"`), "view a; scroll "},
		"what is not touched": {touch("a", small, "") + put(large, `text="b"`), "view a; text b"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, on(c.dump), c.want) })
	}
}

// A child is drawn over its parent and still takes nothing away from it.
func TestReport07_AnOwnChildCoversNothing(t *testing.T) {
	const large = "[0,0][99,99]"
	expect(t, on(put(large, `clickable="true" text="a"`, put(large, ``, put(large, `clickable="true" text="b"`)))), "view a; view b")
	expect(t, on(put(large, `clickable="true" drawing-order="1" text="a"`, put(large, `clickable="true" drawing-order="1" text="b"`))), "view a; view b")
}

func TestRuleUnderASheet(t *testing.T) {
	page := put("[0,0][1000,2000]", ``, put("[0,100][1000,200]", `text="Mail"`), put("[0,1500][1000,1600]", `text="From Tom"`), put("[0,1700][1000,1800]", `text="From Ines"`, ""))
	sheet := put("[0,1200][1000,2000]", `clickable="true" content-desc="Sheet"`, put("[0,1300][1000,1400]", `text="Reply" clickable="true"`))
	expect(t, on(page, sheet), "text Mail; view Sheet; view Reply")
	expect(t, on(put("[0,0][1000,2000]", `drawing-order="2"`, page), put("[0,0][1000,2000]", `drawing-order="1"`, sheet)),
		"text Mail; text From Tom; text From Ines; view Sheet; view Reply")
	// Glass over all of the screen, and a sheet without anything on it, hide no words.
	glass := put("[0,0][1000,2000]", `clickable="true"`, put("[0,1300][1000,1400]", `text="Pause" clickable="true"`))
	expect(t, on(page, glass), "text Mail; text From Tom; text From Ines; view Pause")
	bare := put("[0,1200][1000,2000]", `clickable="true" content-desc="Scrim"`)
	expect(t, on(page, bare), "text Mail; text From Tom; text From Ines; view Scrim")
}

func TestRuleWorth(t *testing.T) {
	expect(t, on(
		put("[0,0][500,100]", ``), put("[0,0][500,100]", `resource-id="a:id/box"`), put("[0,0][500,100]", `text=" &#10; "`), put("[0,0][500,100]", `class="android.widget.ImageView"`),
		put("[0,100][500,200]", `text="words"`), put("[0,200][500,300]", `content-desc="described"`), put("[0,300][500,400]", `clickable="true"`),
		put("[0,400][500,500]", `long-clickable="true"`), put("[0,500][500,600]", `checkable="true"`), put("[0,600][500,700]", `scrollable="true"`),
		put("[0,700][500,800]", `class="android.widget.EditText"`), put("[0,800][500,900]", `class="android.webkit.WebView"`),
		put("[0,900][500,1000]", `class="android.view.TextureView"`), put("[0,1000][500,1100]", `editable="true" hint="asked for"`),
	), "text words; view described; view ; view ; checkbox ; scroll ; edit ; web ; view ; edit asked for")
}

func TestRuleRow(t *testing.T) {
	text := func(s string) string { return put("[0,0][400,80]", `class="android.widget.TextView" text="`+s+`"`) }
	row := func(attrs string, children ...string) string {
		return put("[0,0][1000,200]", `clickable="true" `+attrs, children...)
	}
	list := func(rows ...string) string {
		return put("[0,0][1000,1000]", `scrollable="true" class="android.widget.ListView"`, rows...)
	}
	for name, c := range map[string]struct{ dump, want string }{
		"its words":              {row("", text("Kettle"), put("[0,0][400,80]", ``, text("£24"))), "view Kettle, £24"},
		"in a list":              {list(row("", text("Kettle"), text("£24"))), "list ; item Kettle, £24"},
		"twice the same":         {row("", put("[0,0][80,80]", `content-desc="Kettle" class="android.widget.ImageView"`), text(" Kettle ")), "view Kettle"},
		"words of its own":       {row(`content-desc="Kettle, 24 pounds"`, text("Kettle"), text("24"), text("in stock")), "view Kettle, 24 pounds; text in stock"},
		"a part of a word":       {row(`content-desc="13 items"`, text("3"), text("items")), "view 13 items; text 3"},
		"a button in it":         {row("", text("Kettle"), put("[500,0][600,80]", `text="Add" clickable="true"`)), "view Kettle; view Add"},
		"a list in it":           {row("", text("Kettle"), put("[0,80][600,160]", `scrollable="true"`, put("[0,80][600,160]", `text="1 2 3"`))), "view Kettle; scroll ; text 1 2 3"},
		"more than a row":        {row("", text("a"), text("b"), text("c"), text("d"), text("e"), text("f"), text("g")), "view ; text a; text b; text c; text d; text e; text f; text g"},
		"a page":                 {put("[0,0][1000,1100]", `clickable="true"`, text("a"), text("b")), "view ; text a; text b"},
		"a clock":                {row("", text("Utrecht"), put("[0,0][400,80]", `class="android.widget.TextClock" text="9:41"`)), "view Utrecht; text 9:41"},
		"not a row":              {put("[0,0][1000,200]", ``, text("Kettle"), text("£24")), "text Kettle; text £24"},
		"what cannot be seen":    {row("", text("Kettle"), put("[0,0][0,0]", `text="gone"`)), "view Kettle"},
		"a field keeps its text": {row("", text("Name"), put("[0,80][400,160]", `class="android.widget.EditText" text="Ann" editable="true"`)), "view Name; edit Ann"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, on(c.dump), c.want) })
	}
}

func TestRuleToggle(t *testing.T) {
	row := func(toggle string) string {
		return on(put("[0,0][1000,200]", `clickable="true"`, put("[0,0][400,80]", `text="Wi-Fi" class="android.widget.TextView"`),
			put("[800,0][1000,80]", `checkable="true" class="android.widget.Switch" text="ON" `+toggle)))
	}
	s := expect(t, row(`checked="true"`), "switch Wi-Fi")
	if e := s.Elements[0]; !e.Checkable || !e.Checked || !e.Clickable || e.Bounds.Dx() != 1000 {
		t.Errorf("got %+v", e)
	}
	if e := expect(t, row(``), "switch Wi-Fi").Elements[0]; e.Checked {
		t.Error("it is checked")
	}
	expect(t, row(`clickable="true"`), "view Wi-Fi; switch ON")
}

func TestRuleRepeats(t *testing.T) {
	const at = "[0,0][400,80]"
	image := put(at, `class="android.widget.ImageView" content-desc="Kettle"`)
	text := put(at, `class="android.widget.TextView" text="Kettle"`)
	expect(t, on(put(at, `content-desc="Kettle"`, text)), "view Kettle")
	expect(t, on(put(at, ``, image, text)), "text Kettle")
	expect(t, on(put(at, ``, text, image)), "text Kettle")
	expect(t, on(put(at, ``, text, text)), "text Kettle; text Kettle") // two cells of a table
	expect(t, on(put(at, ``, image), put(at, ``, text)), "image Kettle; text Kettle")
	expect(t, on(put(at, ``, image, image)), "image Kettle; image Kettle") // two stars of five
	expect(t, on(put(at, ``, put(at, `class="android.widget.ImageView" content-desc="Kettle" clickable="true"`), text)), "image Kettle; text Kettle")
	if e := expect(t, on(put(at, `text="Kettle" content-desc="Kettle"`)), "text Kettle").Elements[0]; e.Description != "" {
		t.Errorf("said twice: %+v", e)
	}
}

func TestRulePage(t *testing.T) {
	const all = "[0,0][1000,2000]"
	text := put("[0,0][400,80]", `text="a"`)
	expect(t, on(put(all, `clickable="true"`, put(all, `clickable="true"`, text))), "text a")
	expect(t, on(put(all, `clickable="true" content-desc="Page"`, text)), "view Page; text a")
	expect(t, on(put(all, `clickable="true"`), text), "view ; text a")
	expect(t, on(put("[0,0][1000,1700]", `clickable="true"`, text)), "view ; text a")
}

func TestRuleHint(t *testing.T) {
	for name, c := range map[string]struct{ attrs, text, hint string }{
		"new Android, empty":        {`text="Search" hint="Search"`, "", "Search"},
		"new Android, filled":       {`text="kettle" hint="Search"`, "kettle", "Search"},
		"old Android cannot tell":   {`text="Search"`, "Search", ""},
		"Appium, empty":             {`text="Search" hint="Search" showing-hint="true"`, "", "Search"},
		"Appium, empty, no hint":    {`text="Search" showing-hint="true"`, "", "Search"},
		"Appium, the hint typed in": {`text="Search" hint="Search" showing-hint="false"`, "Search", "Search"},
		"no text at all":            {`hint="Search"`, "", "Search"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(t, []byte(on(put("[0,0][400,80]", `class="android.widget.EditText" `+c.attrs))))
			if e := s.Elements[0]; e.Text != c.text || e.Hint != c.hint {
				t.Errorf("text %q, hint %q", e.Text, e.Hint)
			}
		})
	}
}

func TestRulePassword(t *testing.T) {
	field := func(text string) Element {
		return sceneOf(t, []byte(on(put("[0,0][400,80]", `class="android.widget.EditText" password="true" hint="PIN" text="`+text+`"`)))).Elements[0]
	}
	if e := field("s3crét"); e.Text != "••••••" || e.Hint != "PIN" {
		t.Errorf("got %+v", e)
	}
	if e := field("PIN"); e.Text != "" {
		t.Errorf("an empty field reads %q", e.Text)
	}
	if a, b := field("1234"), field("987654"); a.Key != b.Key {
		t.Error("the key tells passwords apart")
	}
}

func TestRuleRemoteControl(t *testing.T) {
	card := func(bounds, text, state string) string {
		return put(bounds, `focusable="true" `+state, put(bounds, `text="`+text+`"`), put(bounds, `text="new"`))
	}
	s := expect(t, on(card("[0,0][300,200]", "Wind", ""), card("[300,0][600,200]", "Peat", `focused="true"`)), "view Wind, new; view Peat, new")
	if s.Elements[0].Clickable || s.Elements[0].Focused || !s.Elements[1].Focused {
		t.Errorf("got %+v", s.Elements)
	}
	expect(t, on(card("[0,0][300,200]", "Wind", ""), card("[300,0][600,200]", "Peat", ""), put("[0,300][90,390]", `clickable="true" text="touch"`)),
		"text Wind; text new; text Peat; text new; view touch")
}

func TestRuleOrder(t *testing.T) {
	expect(t, on(put("[0,900][90,990]", `text="ب"`), put("[500,0][900,90]", `text="ג"`), put("[0,0][90,90]", `text="a"`)), "text ب; text ג; text a")
}

func TestRuleLimit(t *testing.T) {
	var rows []string
	for i := range maxElements + 1 {
		rows = append(rows, put("[0,0][90,90]", fmt.Sprintf(`text="%d"`, i)))
	}
	s := sceneOf(t, []byte(on(rows...)))
	if len(s.Elements) != maxElements || fmt.Sprint(s.Missing) != "[more]" || s.Elements[maxElements-1].Text != "499" {
		t.Errorf("%d elements, missing %v", len(s.Elements), s.Missing)
	}
}

func TestRuleComposeButton(t *testing.T) {
	button := func(child string) string {
		return on(put("[0,0][400,80]", `clickable="true"`, put("[0,0][100,80]", `text="Pay"`), child))
	}
	expect(t, button(put("[0,0][400,80]", `class="android.widget.Button"`)), "button Pay")
	expect(t, button(put("[0,0][300,80]", `class="android.widget.Button"`)), "view Pay")
	expect(t, button(put("[0,0][400,80]", `class="android.widget.Button" text="Tip"`)), "view Pay, Tip")
}

func TestRuleDrawn(t *testing.T) {
	const all, half, less = "[0,0][1000,2000]", "[0,0][1000,1000]", "[0,0][1000,990]"
	surface := func(bounds string) string { return put(bounds, `class="android.view.SurfaceView"`) }
	named := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `<node text="%d" clickable="true" bounds="[%d,1900][%d,1990]"/>`, i, 100*i, 100*i+90)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		dump string
		want string
	}{
		"a surface":                 {on(surface(all)), NoTreeDrawn},
		"half of the screen":        {on(surface(half)), NoTreeDrawn},
		"less than half":            {on(surface(less), named(1)), ""},
		"a banner over it":          {on(surface(all), named(3)), NoTreeDrawn},
		"a camera's buttons":        {on(surface(all), named(4)), ""},
		"frames only":               {on(put(all, ``, put(all, ``))), NoTreeDrawn},
		"one view with a name":      {on(put(all, `content-desc="Game view"`)), NoTreeDrawn},
		"a web page without nodes":  {on(put(all, `class="android.webkit.WebView"`)), NoTreeDrawn},
		"a page of text":            {on(put(all, `class="android.widget.TextView" text="long"`)), ""},
		"an empty list":             {on(put(all, `class="android.widget.ListView"`, ""), named(1)), ""},
		"a scrim":                   {on(put(all, `clickable="true" content-desc="Close"`), named(2)), ""},
		"a small window":            {`<hierarchy>` + window("app", "[100,900][900,1300]", put("[100,900][900,1300]", ``)) + `</hierarchy>`, ""},
		"a page with a few buttons": {on(named(2)), ""},
		"a web page":                {on(put(all, `class="android.webkit.WebView"`, named(1))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneIn(t, []byte(c.dump), func(s *phone.State) { s.Display = phone.Display{Width: 1000, Height: 2000} })
			if s.NoTree != c.want {
				t.Errorf("no-tree %q: %s", s.NoTree, shown(s))
			}
		})
	}
}

func TestRuleClock(t *testing.T) {
	screen := func(clock, text string, y int) *Scene {
		return sceneOf(t, fmt.Appendf(nil, `<hierarchy rotation="0"><node bounds="[0,0][1080,2400]">`+
			`<node text="%s" resource-id="com.android.systemui:id/clock" package="com.android.systemui" bounds="[0,0][200,180]"/>`+
			`<node text="%s" class="android.widget.TextClock" bounds="[0,900][200,980]"/>`+
			`<node content-desc="battery %s" package="com.android.systemui" bounds="[0,0][200,120]"/>`+
			`<node text="%s" bounds="[0,%d][500,%d]"/></node></hierarchy>`, clock, clock, clock, text, y, y+100))
	}
	base := screen("9:41", "hello", 200)
	if later := screen("9:42", "hello", 200); later.Hash != base.Hash || !Compare(base, later).empty() {
		t.Error("the clock counts")
	}
	for what, other := range map[string]*Scene{
		"text": screen("9:41", "hallo", 200), "place": screen("9:41", "hello", 210),
	} {
		if other.Hash == base.Hash || Compare(base, other).empty() {
			t.Errorf("another %s does not count", what)
		}
	}
}
