package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// declaredCodes reads the constants of codes.go, so that none can be forgotten.
func declaredCodes(t *testing.T) []Code {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []Code
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Code" {
			return true
		}
		s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, Code(s))
		return true
	})
	if len(codes) < 40 {
		t.Fatalf("found only %d codes", len(codes))
	}
	return codes
}

// TestNotFoundFitsBothSides: the cloud says it of a record of another tenant, a rack, where nobody knows of tenants, of a skill that it
// has not or shows to others alone. Both say the same of what is hidden as of what is not there.
func TestNotFoundFitsBothSides(t *testing.T) {
	for lang, ofTheCloud := range map[string]string{"en": "tenant", "zh": "租户"} {
		r := Refuse(NotFound, map[string]any{"what": "skill", "id": "local/x"})
		if said := r.Sentence(lang); strings.Contains(said, ofTheCloud) || !strings.Contains(said, "local/x") {
			t.Errorf("%s: %s", lang, said)
		}
	}
}

func TestEachCodeHasASentenceInEachLanguage(t *testing.T) {
	b, err := os.ReadFile("catalogue/args.toml")
	if err != nil {
		t.Fatal(err)
	}
	var documented map[string]map[string]string
	if err := toml.Unmarshal(b, &documented); err != nil {
		t.Fatal(err)
	}
	codes := declaredCodes(t)
	placeholder := regexp.MustCompile(`\{([^{}]*)\}`)
	for _, lang := range Languages() {
		c := catalogues()[lang]
		if len(c.Sentence) != len(codes) {
			t.Errorf("%s: %d sentences for %d codes", lang, len(c.Sentence), len(codes))
		}
		for _, code := range codes {
			s := c.Sentence[string(code)]
			if s == "" {
				t.Errorf("%s: no sentence for %s", lang, code)
				continue
			}
			args, ok := documented[string(code)]
			if !ok {
				t.Errorf("args.toml does not list %s", code)
			}
			for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
				if args[m[1]] == "" {
					t.Errorf("%s: %s uses {%s}, which args.toml does not document", lang, code, m[1])
				}
			}
			if !validCode(code) {
				t.Errorf("%q is not a valid code", code)
			}
			// What and why, then what to do: two halves in every sentence.
			if !strings.ContainsAny(s, ";\uff1b") {
				t.Errorf("%s: the sentence of %s does not say what to do", lang, code)
			}
			filled := Refusal{Code: code}.Sentence(lang)
			if strings.ContainsAny(filled, "{}\n") {
				t.Errorf("%s: %s reads %q", lang, code, filled)
			}
		}
	}
	en, zh := catalogues()["en"], catalogues()["zh"]
	for code, s := range en.Sentence {
		for _, m := range placeholder.FindAllString(s, -1) {
			if !strings.Contains(zh.Sentence[code], m) {
				t.Errorf("zh: %s lacks %s", code, m)
			}
		}
	}
}

func TestRefusalJSON(t *testing.T) {
	r := Refuse(SlotBusy, map[string]any{"slot": 7, "holder": "hold of anna", "until": "2026-03-01T10:00:00Z"}).
		After(1500 * time.Millisecond).Because(errors.New("secret cause"))
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"code":"slot_busy","args":{"holder":"hold of anna","slot":7,"until":"2026-03-01T10:00:00Z"},"retryable":true,"retry_after_ms":1500}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var back Refusal
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.Args["slot"] != int64(7) || back.RetryAfter() != 1500*time.Millisecond || back.Unwrap() != nil {
		t.Errorf("came back as %+v", back)
	}
	if got := mustJSON(t, &Refusal{Code: Internal}); got != `{"code":"internal","args":{},"retryable":false,"retry_after_ms":0}` {
		t.Errorf("without arguments: %s", got)
	}
	for _, bad := range []string{`{}`, `{"code":"Slot Busy"}`, `{"code":"` + strings.Repeat("a", 65) + `"}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRefusalIsFoundUnderWrapping(t *testing.T) {
	cause := errors.New("pipe closed")
	inner := Refuse(PhoneLost, map[string]any{"slot": 3}).Because(cause)
	err := fmt.Errorf("step 4: %w", errors.Join(errors.New("other"), inner))
	if !Is(err, PhoneLost) || Is(err, SlotBusy) || Is(nil, PhoneLost) {
		t.Error("Is does not match the code")
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not unwrapped")
	}
	if r, ok := errors.AsType[*Refusal](err); !ok || r != inner {
		t.Error("errors.As does not find the refusal")
	}
	if From(err) != inner || From(nil) != nil {
		t.Error("From does not find the refusal")
	}
	if r := From(cause); r.Code != Internal || !errors.Is(r, cause) {
		t.Errorf("From(plain) = %+v", r)
	}
}

func TestSentence(t *testing.T) {
	r := Refuse(SlotBusy, map[string]any{"slot": 7.0, "holder": "a\n{until}\u202e" + strings.Repeat("x", 500)})
	got := r.Sentence("fr")
	if !strings.HasPrefix(got, `Slot 7 is busy because it is held by a\u000a{until}\u202exxx`) || !strings.Contains(got, "x… until unknown;") {
		t.Errorf("en: %s", got)
	}
	if got := r.Sentence("zh-Hans-CN"); !strings.HasPrefix(got, "插槽 7 正忙") {
		t.Errorf("zh: %s", got)
	}
	if got := (Refusal{Code: "from_the_future"}).Sentence("en"); !strings.Contains(got, "from_the_future") {
		t.Errorf("unknown code: %s", got)
	}
	tools := Refuse(UnknownTool, map[string]any{"tool": "fly", "known": []string{"tap", "swipe"}})
	if got := tools.Error(); !strings.Contains(got, "no tool fly; use one of: tap, swipe.") {
		t.Errorf("list: %s", got)
	}
}

func FuzzRefusalJSON(f *testing.F) {
	f.Add([]byte(`{"code":"slot_busy","args":{"slot":7,"holder":["a",{"b":1e400}]},"retryable":true,"retry_after_ms":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Refusal
		if json.Unmarshal(b, &r) != nil {
			return
		}
		if s := r.Sentence("zh"); strings.ContainsRune(s, '\n') {
			t.Errorf("sentence breaks the line: %q", s)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("read but not written: %v", err)
		}
	})
}
