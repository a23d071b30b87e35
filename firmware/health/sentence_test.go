package health

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"phonerack/firmware/store"
	"phonerack/sync/wire"
)

// spoken lists the codes that the package can say: each diagnosis, and each text handed to finding, note, add or pick.
func spoken(t *testing.T) map[string]bool {
	t.Helper()
	codes := map[string]bool{}
	for _, d := range Diagnoses() {
		codes[string(d)] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncDecl); ok && fn.Name.Name == "doubt" {
				ast.Inspect(fn, func(n ast.Node) bool { literal(n, codes); return true })
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok {
				switch {
				case id.Name == "finding":
					literal(call.Args[0], codes)
				case id.Name == "pick", id.Name == "add" && len(call.Args) == 3:
					literal(call.Args[1], codes)
				}
			}
			return true
		})
	}
	if len(codes) < 35 {
		t.Fatalf("found %d codes only", len(codes))
	}
	return codes
}

func literal(n ast.Node, codes map[string]bool) {
	if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil && strings.HasPrefix(s, "rea") == false && s != "" && s != "unknown" {
			codes[s] = true
		}
	}
}

func TestEachFindingIsSaidInEachLanguage(t *testing.T) {
	raw, err := os.ReadFile("catalogue/args.toml")
	if err != nil {
		t.Fatal(err)
	}
	var documented map[string]map[string]string
	if err := toml.Unmarshal(raw, &documented); err != nil {
		t.Fatal(err)
	}
	codes := spoken(t)
	placeholder := regexp.MustCompile(`\{([^{}]*)\}`)
	for _, lang := range wire.Languages() {
		c := catalogues()[lang]
		if len(c.Finding) != len(codes) || c.Title == "" || c.Missing == "" {
			t.Errorf("%s: %d findings for %d codes, %+v", lang, len(c.Finding), len(codes), c.words)
		}
		for code := range codes {
			w := c.Finding[code]
			if w.Title == "" || w.Why == "" || w.Do == "" {
				t.Errorf("%s: %s is not said: %+v", lang, code, w)
			}
			args, ok := documented[code]
			if !ok {
				t.Errorf("args.toml does not list %s", code)
			}
			for _, m := range placeholder.FindAllStringSubmatch(w.Title+w.Why+w.Do, -1) {
				if args[m[1]] == "" {
					t.Errorf("%s: %s uses {%s}, which args.toml does not document", lang, code, m[1])
				}
				if !strings.Contains(catalogues()["en"].Finding[code].Why+catalogues()["en"].Finding[code].Do, m[0]) {
					t.Errorf("en: %s lacks %s", code, m[0])
				}
			}
			title, why, do := Finding{Code: code}.Say(lang)
			if all := title + why + do; strings.ContainsAny(all, "{}\n") {
				t.Errorf("%s: %s reads %q", lang, code, all)
			}
		}
	}
}

func TestFindingsAreSaidSafely(t *testing.T) {
	_, why, _ := finding("held", map[string]any{"slot": 7, "holder": "adb\n\u202e{slot}" + strings.Repeat("x", 500)}).Say("zh-Hans")
	if strings.ContainsAny(why, "\n\u202e") || !strings.Contains(why, "slot 7") || len(why) > 500 {
		t.Errorf("%q", why)
	}
	title, why, do := Finding{Code: "next_years"}.Say("zh")
	if title == "" || !strings.Contains(why, "next_years") || do == "" {
		t.Errorf("%q %q %q", title, why, do)
	}
}

// TestCodesAreNoWords: what a sentence is told of recovery and the database is said in its language, what a person has written is not.
func TestCodesAreNoWords(t *testing.T) {
	ladder := finding("quarantined", map[string]any{"slot": 7, "by": ByLadder, "left": time.Hour, "reason": string(Hung)})
	person := finding("quarantined", map[string]any{"slot": 7, "by": "page/kim", "left": time.Hour, "reason": string(Hung)})
	for _, c := range []struct {
		f          Finding
		lang, want string
	}{
		{ladder, "en", "on behalf of recovery: hangs."},
		{ladder, "zh", "由 自动恢复 设置：" + catalogues()["zh"].Finding["hung"].Title},
		{person, "zh", "由 page/kim 设置：hung"},
		{finding("database_recovered", map[string]any{"outcome": string(store.Restored), "reason": "x"}), "en", "is restored from its copy now"},
		{finding("database_recovered", map[string]any{"outcome": string(store.Restored), "reason": "x"}), "zh", "现为 已从副本恢复"},
		{finding("database_recovered", map[string]any{"outcome": string(store.Fresh), "reason": "x"}), "zh", "现为 已重新建立"},
	} {
		if _, why, _ := c.f.Say(c.lang); !strings.Contains(why, c.want) {
			t.Errorf("%s, want %s", why, c.want)
		}
	}
	if ladder.Args["by"] != ByLadder {
		t.Error("saying it has changed it")
	}
}

// TestThePageHasEveryThreshold keeps docs/health.md complete: each key with its default, each state and diagnosis.
func TestThePageHasEveryThreshold(t *testing.T) {
	raw, err := os.ReadFile("../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			key := prefix + v.Type().Field(i).Tag.Get("toml")
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(key+".", f)
			} else if line := fmt.Sprintf("| `%s` | `%v` |", key, f.Interface()); !strings.Contains(page, line) {
				t.Errorf("no line %s", line)
			}
		}
	}
	walk("", reflect.ValueOf(Defaults()))
	for _, s := range States() {
		if !strings.Contains(page, fmt.Sprintf("| `%s` |", s)) {
			t.Errorf("no state %s", s)
		}
	}
	for _, d := range Diagnoses() {
		if !strings.Contains(page, fmt.Sprintf("| `%s` |", d)) {
			t.Errorf("no diagnosis %s", d)
		}
	}
	for code := range spoken(t) {
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("no finding %s", code)
		}
	}
}
