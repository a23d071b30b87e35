package status_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/sync/wire"
)

// budget is what a page may weigh, its style and script included, pictures of phones not.
const budget = 60_000 // bytes

// everyPage are the addresses that show a page to who is signed in.
var everyPage = []string{
	"/", "/slot/1", "/slot/5", "/slot/7", "/slot/9", "/slot/12", "/slot/3?done=identify", "/slot/3/screen", "/controller", "/map", "/map?page=3", "/tasks", "/tasks/01J0TASK1", "/tasks/01J0TASK1?page=2",
	"/log", "/support", "/signin", "/nowhere",
}

func TestPagesAreWellMade(t *testing.T) {
	for _, lang := range wire.Languages() {
		for _, in := range []bool{true, false} {
			b := signedIn(t)
			if !in {
				b.cookie = ""
			}
			for range 200 {
				b.Say("ERROR", strings.Repeat(`<script>alert("x")</script>长 `, 40))
			}
			assets := 0
			for _, target := range everyPage {
				w := b.ask("GET", target, "", "Accept-Language: "+lang)
				c := checker{t: t, where: fmt.Sprintf("%s in %s, signed in %v", target, lang, in)}
				c.page(w.Body.String(), lang)
				if assets == 0 {
					assets = c.assets(b)
				}
				size := w.Body.Len() + assets
				t.Logf("%s: %d bytes", c.where, size)
				if size > budget {
					t.Errorf("%s: %d bytes with style and script, at most %d are allowed", c.where, size, budget)
				}
			}
		}
	}
}

// TestTheWorstRackFitsItsBudget: every slot is ill, every text as long as it may be and all of it to be escaped.
func TestTheWorstRackFitsItsBudget(t *testing.T) {
	b := signedIn(t)
	long := strings.Repeat(`"`, 160)
	b.Change(func(s *status.Snapshot) {
		for i := range s.Slots {
			one := &s.Slots[i]
			one.State, one.Label = health.NeedsHands, strings.Repeat("&", 32)
			one.Main = health.Finding{Code: "held", Args: map[string]any{"slot": i + 1, "holder": long}}
			one.Others = []health.Finding{{Code: "dead", Args: map[string]any{"slot": i + 1, "phone": long}}}
		}
		s.Rack.Maintenance = true
	})
	for _, target := range []string{"/", "/slot/3", "/map", "/controller"} {
		w := b.ask("GET", target, "")
		c := checker{t: t, where: target}
		c.page(w.Body.String(), "en")
		if size := w.Body.Len() + c.assets(b); size > budget {
			t.Errorf("%s: %d bytes", target, size)
		}
	}
	if w := b.ask("GET", "/", ""); !strings.Contains(w.Body.String(), "And 40 more") {
		t.Error("what is left out is not said")
	}
}

// checker looks at the structure of one page.
type checker struct {
	t     *testing.T
	where string
	all   []*html.Node
}

func (c *checker) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s", c.where, fmt.Sprintf(format, args...))
}

func (c *checker) page(body, lang string) {
	c.t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		c.fail("%v", err)
		return
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			c.all = append(c.all, n)
		}
	}
	for name, want := range map[string]int{"html": 1, "title": 1, "h1": 1, "main": 1, "header": 1, "footer": 1, "nav": 1} {
		if got := len(c.named(name)); got != want {
			c.fail("%d of <%s>, want %d", got, name, want)
		}
	}
	if attr(c.named("html")[0], "lang") != lang {
		c.fail("not in %s", lang)
	}
	c.nothingInline()
	c.ids()
	c.names()
	c.headings()
}

func (c *checker) named(names ...string) (all []*html.Node) {
	for _, n := range c.all {
		if slices.Contains(names, n.Data) {
			all = append(all, n)
		}
	}
	return all
}

// nothingInline: the policy forbids it, so it would not work.
func (c *checker) nothingInline() {
	for _, n := range c.all {
		if n.Data == "style" || n.Data == "script" && (attr(n, "src") == "" || words(n) != "") || n.Data == "iframe" || n.Data == "object" || n.Data == "base" {
			c.fail("<%s> in the page", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				c.fail("<%s %s> in the page", n.Data, a.Key)
			}
			if slices.Contains([]string{"src", "href", "action", "formaction", "poster"}, a.Key) && !own(a.Val) {
				c.fail("<%s %s=%q> leads elsewhere", n.Data, a.Key, a.Val)
			}
		}
	}
}

func own(address string) bool {
	return strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") || strings.HasPrefix(address, "#") || strings.HasPrefix(address, "?")
}

// ids: each once, and each that is named is there.
func (c *checker) ids() {
	seen := map[string]*html.Node{}
	for _, n := range c.all {
		if id := attr(n, "id"); id != "" {
			if seen[id] != nil {
				c.fail("id %q twice", id)
			}
			seen[id] = n
		}
	}
	for _, n := range c.all {
		for _, key := range []string{"aria-labelledby", "aria-describedby", "for"} {
			if id := attr(n, key); id != "" && (seen[id] == nil || key != "for" && words(seen[id]) == "") {
				c.fail("<%s %s=%q> names nothing", n.Data, key, id)
			}
		}
		if href := attr(n, "href"); strings.HasPrefix(href, "#") && seen[href[1:]] == nil {
			c.fail("%q leads nowhere", href)
		}
		if _, part := attribute(n, "data-part"); part && attr(n, "id") == "" {
			c.fail("a part without id cannot be freshened")
		}
	}
}

// names: whatever can be seen or used has one.
func (c *checker) names() {
	labels := map[string]string{}
	for _, n := range c.named("label") {
		labels[attr(n, "for")] = words(n)
	}
	for _, n := range c.all {
		name := attr(n, "aria-label") + attr(n, "aria-labelledby")
		switch n.Data {
		case "form", "section", "nav":
			if name == "" && len(within(n, "h2")) == 0 {
				c.fail("<%s> without a name", n.Data)
			}
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && labels[attr(n, "id")] == "" {
				c.fail("<%s name=%q> without a label", n.Data, attr(n, "name"))
			}
		case "button", "a", "title", "h1", "h2", "h3":
			if strings.TrimSpace(words(n)) == "" && name == "" && len(within(n, "img")) == 0 {
				c.fail("<%s> says nothing", n.Data)
			}
			if strings.Contains(words(n), ".title") {
				c.fail("<%s> shows a key: %s", n.Data, words(n))
			}
		case "img":
			if attr(n, "alt") == "" {
				c.fail("<img src=%q> without alt", attr(n, "src"))
			}
		case "svg":
			if attr(n, "aria-hidden") != "true" && (attr(n, "role") != "img" || name == "") {
				c.fail("an <svg> that is neither hidden nor named")
			}
		}
	}
}

// headings: no step down of more than one.
func (c *checker) headings() {
	last := 0
	for _, n := range c.named("h1", "h2", "h3", "h4") {
		if level := int(n.Data[1] - '0'); level > last+1 {
			c.fail("<%s>%s</%s> comes after <h%d>", n.Data, words(n), n.Data, last)
		} else {
			last = level
		}
	}
}

// assets are what the page needs besides, in bytes.
func (c *checker) assets(b *bench) (size int) {
	for _, n := range c.named("link", "script") {
		w := b.ask("GET", attr(n, "href")+attr(n, "src"), "")
		if w.Code != http.StatusOK {
			c.fail("%s%s: %d", attr(n, "href"), attr(n, "src"), w.Code)
		}
		size += w.Body.Len()
	}
	return size
}

func within(n *html.Node, name string) (all []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			all = append(all, d)
		}
	}
	return all
}

func attr(n *html.Node, key string) string { v, _ := attribute(n, key); return v }

func attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestEachStateIsAWordAnIconAndAColour, and the icons and colours are there.
func TestEachStateIsAWordAnIconAndAColour(t *testing.T) {
	b := newBench()
	body := b.ask("GET", "/", "").Body.String()
	_, rest, _ := strings.Cut(body, `href="/static/page-`)
	name, _, _ := strings.Cut(rest, `"`)
	style := b.ask("GET", "/static/page-"+name, "").Body.String()
	for n, s := range b.Snapshot().Slots[:10] {
		if !strings.Contains(body, fmt.Sprintf(`<span class="state s-%s"><svg class="icon" aria-hidden="true"><use href="#i-%s"/></svg> `, s.State, s.State)) {
			t.Errorf("slot %d: no word and icon for %s", n+1, s.State)
		}
		if !strings.Contains(body, `<symbol id="i-`+string(s.State)+`"`) || !strings.Contains(style, ".state.s-"+string(s.State)) {
			t.Errorf("%s has no icon or no colour", s.State)
		}
	}
}

// TestWithoutJavaScript: the page is read anew by the browser, never where somebody types.
func TestWithoutJavaScript(t *testing.T) {
	b := signedIn(t)
	for target, want := range map[string]bool{"/": true, "/slot/3": true, "/controller": true, "/log": true, "/signin": false, "/support": false, "/map": false, "/tasks": false} {
		w := b.ask("GET", target, "")
		if got := strings.Contains(w.Body.String(), `<noscript><meta http-equiv="refresh" content="30"></noscript>`); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}
