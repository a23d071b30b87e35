package folder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func scan(t *testing.T, mode Mode, folders ...string) Result {
	t.Helper()
	r, err := Scan(t.Context(), Options{Paths: Paths{Folders: folders}, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verdicts are what became of each folder: "ok", the codes of findings, or
// "skipped: CODE".
func verdicts(r Result) map[string]string {
	v := map[string]string{}
	for _, s := range r.Skills {
		text := "ok"
		for i, f := range s.Findings {
			if i == 0 {
				text = ""
			}
			text = strings.TrimPrefix(text+" "+string(f.Code), " ")
		}
		v[filepath.Base(s.Origin.Path)] = text
	}
	for _, s := range r.Skipped {
		v[filepath.Base(s.Path)] = "skipped: " + string(s.Code)
	}
	return v
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// corpus says what becomes of each file in testdata/skills, leniently and strictly.
var corpus = map[string][2]string{
	"weather-report":   {"ok", "ok"},
	"lookup-query":     {"ok", "ok"},
	"bom-and-crlf":     {"ok", "ok"},
	"hyphens-inside":   {"ok", "ok"},
	"书城助手":             {"ok", "ok"},
	"blank-first":      {"blank_before field_type", "skipped: blank_before"},
	"colon-in-value":   {"unquoted_colon", "skipped: bad_yaml"},
	"hidden-text":      {"invisible_character invisible_character", "skipped: invisible_character"},
	"job-board":        {"name_form name_differs", "skipped: name_form"},
	"snake-case":       {"name_form name_differs", "skipped: name_form"},
	"numbers":          {"name_differs", "skipped: name_differs"},
	"no-name":          {"no_name", "skipped: no_name"},
	"No Name.v2":       {"no_name name_form", "skipped: no_name"},
	"long-description": {"long_description", "skipped: long_description"},
	"tool-list":        {"field_type", "skipped: field_type"},
	"xiaoshuo-search":  {"unknown_field field_type", "skipped: unknown_field"},
	"no-description":   {"skipped: no_description", "skipped: unknown_field"},
	"aliases-bomb":     {"skipped: bad_schema", "skipped: bad_schema"},
	"far-schema":       {"skipped: bad_schema", "skipped: bad_schema"},
	"list-schema":      {"skipped: bad_schema", "skipped: bad_schema"},
	"bom-no-fence":     {"skipped: no_front_matter", "skipped: no_front_matter"},
	"empty-file":       {"skipped: no_front_matter", "skipped: no_front_matter"},
	"never-closed":     {"skipped: not_closed", "skipped: not_closed"},
	"not-closed-early": {"skipped: bad_yaml", "skipped: bad_yaml"},
	"list-on-top":      {"skipped: bad_yaml", "skipped: bad_yaml"},
	"tabs-in-yaml":     {"skipped: bad_yaml", "skipped: bad_yaml"},
	"twice-a-key":      {"skipped: bad_yaml", "skipped: bad_yaml"},
	"latin-one":        {"skipped: not_text", "skipped: not_text"},
	"slash-in-name":    {"skipped: bad_name", "skipped: bad_name"},
	"lower-case-file":  {"skipped: wrong_case", "skipped: wrong_case"},
	"title-case-file":  {"skipped: wrong_case", "skipped: wrong_case"},
	// only-readme gives nothing: it is no skill and was never meant as one.
}

func TestFilesOfVariedForm(t *testing.T) {
	for i, mode := range []Mode{Lenient, Strict} {
		got := verdicts(scan(t, mode, absolute(t, "testdata/skills")))
		want := map[string]string{}
		for name, v := range corpus {
			want[name] = v[i]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

func find(t *testing.T, r Result, name string) Found {
	t.Helper()
	i := slices.IndexFunc(r.Skills, func(s Found) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no skill %s", name)
	}
	return r.Skills[i]
}

func TestWhatAFileSaysIsKept(t *testing.T) {
	root := absolute(t, "testdata/skills")
	r := scan(t, Lenient, root)

	got := find(t, r, "weather-report")
	want := Found{
		Skill: Skill{
			Name: "weather-report", Description: "Reads tomorrow's weather from the weather app and says it in one sentence.",
			Version: "1.10", License: "CC0-1.0", Compatibility: "needs a weather app",
			Metadata:     map[string]string{"author": "rack crew", "version": "1.10"},
			AllowedTools: []string{"observe", "launch_app", "Bash(git log:* --oneline)"},
			InputSchema:  []byte(`{"type":"object"}`),
			Body:         "\n# Weather report\n\nOpen the weather app, wait for the forecast, read the line for tomorrow.\n",
		},
		Origin: Origin{Path: filepath.Join(root, "weather-report"), File: filepath.Join(root, "weather-report", "SKILL.md"), Root: root, SHA256: got.Origin.SHA256, Size: 369},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("weather-report (-want +got):\n%s", diff)
	}
	if len(got.Origin.SHA256) != 64 {
		t.Errorf("the hash is %q", got.Origin.SHA256)
	}

	crlf := find(t, r, "bom-and-crlf")
	if crlf.Description != "Written on another system, and saved by its editor." || crlf.Body != "\n# First line\n\nSecond line\n" {
		t.Errorf("CRLF and BOM: %q, %q", crlf.Description, crlf.Body)
	}
	if s := find(t, r, "colon-in-value"); s.Description != "Two steps: open the app, then don't touch anything. Also: wait." {
		t.Errorf("unquoted colon: %q", s.Description)
	}
	if s := find(t, r, "hyphens-inside"); s.Description != "Values --- with hyphens --- are values.\n---\nSo is that line, as it is indented." || !strings.Contains(s.Body, "\n---\n") {
		t.Errorf("hyphens: %q, %q", s.Description, s.Body)
	}
	if s := find(t, r, "2048"); s.Description != "1.10" || s.License != "0x1F" || s.Metadata["released"] != "2026-01-02" || s.Metadata["build"] != "007" {
		t.Errorf("texts that YAML takes for numbers and dates: %+v", s.Skill)
	}
	s := find(t, r, "xiaoshuo-search")
	if s.Version != "1.0" || s.Metadata["openclaw"] != `{"emoji":"📖","requires":{"bins":["adb","jq"]}}` || s.Metadata["priority"] != "3" || s.Metadata["beta"] != "true" ||
		!strings.HasPrefix(s.Description, "在书城里搜索小说") {
		t.Errorf("Chinese block scalar, nested metadata: %+v", s.Skill)
	}
	hidden := find(t, r, "hidden-text")
	if hidden.Description != "Looks harmless, and says more." || hidden.Body != "The family 👨\u200d👩\u200d👧 stays whole, the rest goes.\n" {
		t.Errorf("hidden characters: %q, %q", hidden.Description, hidden.Body)
	}
	// A joiner is a letter's neighbour in Persian: this is the word for "I want".
	if s, err := Parse([]byte("---\nname: x\ndescription: می\u200cخواهم\n---\n"), "x", Strict); err != nil || s.Description != "می\u200cخواهم" {
		t.Errorf("Persian: %+v, %v", s, err)
	}
	if s := find(t, r, "lookup-query"); string(s.InputSchema) != `{"properties":{"limit":{"maximum":12345678901234567890,"type":"integer"},"query":{"default":"yes","minLength":1,"type":"string"}},"required":["query"],"type":"object"}` ||
		string(s.OutputSchema) != `{"properties":{"lines":{"items":{"type":"string"},"type":"array"}},"type":"object"}` {
		t.Errorf("schemas: %s, %s", s.InputSchema, s.OutputSchema)
	}
}

// write makes a file with its folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func simple(name string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: Says %s.\n---\nText of %s.\n", name, name, name)
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestSpec004_DiscoveryAlgorithm(t *testing.T) {
	t.Run("Parse the comma-separated skills.agent_skills_paths value", func(t *testing.T) {
		one, two := t.TempDir(), t.TempDir()
		write(t, filepath.Join(one, "a", FileName), simple("a"))
		write(t, filepath.Join(two, "b", FileName), simple("b"))
		r, err := Scan(t.Context(), Options{Paths: ParsePaths(one+" , "+two, "", "")})
		if err != nil || len(r.Skills) != 2 || r.Skills[0].Name != "a" || r.Skills[1].Name != "b" {
			t.Errorf("found %v, %v", r.Skills, err)
		}
	})
	t.Run("For each directory, find immediate subdirectories containing a SKILL.md file", func(t *testing.T) {
		root := t.TempDir()
		write(t, filepath.Join(root, "near", FileName), simple("near"))
		write(t, filepath.Join(root, "near", "nested", FileName), simple("nested"))
		write(t, filepath.Join(root, "group", "far", FileName), simple("far"))
		write(t, filepath.Join(root, FileName), simple("root"))
		write(t, filepath.Join(root, "empty", "README.md"), "nothing")
		r := scan(t, Strict, root)
		if len(r.Skills) != 1 || r.Skills[0].Name != "near" || len(r.Skipped) != 0 {
			t.Errorf("found %v, skipped %v", r.Skills, r.Skipped)
		}
	})
	t.Run("Parse the YAML front-matter (between --- fences) to extract the tool name, description, and optional input_schema / output_schema", func(t *testing.T) {
		s, err := Parse([]byte("---\nname: my-tool\ndescription: A custom agent skill\ninput_schema:\n  type: object\n  properties:\n    query:\n      type: string\n---\n\n# My Tool\n\nAdditional documentation here.\n"), "my-tool", Strict)
		if err != nil {
			t.Fatal(err)
		}
		want := &Skill{
			Name: "my-tool", Description: "A custom agent skill", InputSchema: []byte(`{"properties":{"query":{"type":"string"}},"type":"object"}`),
			Body: "\n# My Tool\n\nAdditional documentation here.\n",
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("the example of the spec (-want +got):\n%s", diff)
		}
	})
}

func TestSpec004_Configuration(t *testing.T) {
	t.Run("Multiple paths are separated by commas", func(t *testing.T) {
		p := ParsePaths("/home/user/.phonerack/agent_skills,/opt/skills", "/root", "/etc")
		if diff := cmp.Diff(Paths{Folders: []string{"/home/user/.phonerack/agent_skills", "/opt/skills"}}, p); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("The default path is ~/.cleveragents/agent_skills (here ~/.phonerack/agent_skills)", func(t *testing.T) {
		for _, list := range []string{"", " ", ",", " , ,"} {
			if diff := cmp.Diff(Paths{Folders: []string{"/home/op/.phonerack/agent_skills"}, Default: true}, ParsePaths(list, "/home/op", "/etc")); diff != "" {
				t.Errorf("%q: %s", list, diff)
			}
		}
		if p := ParsePaths("", "", "/etc"); len(p.Folders)+len(p.Skipped) != 0 {
			t.Errorf("without a home: %+v", p)
		}
	})
}

func TestPaths(t *testing.T) {
	p := ParsePaths("~, ~/s ,relative/x,~other/y,/opt//skills/,/opt/skills", "/home/op", "/etc/rackd")
	want := []string{"/home/op", "/home/op/s", "/etc/rackd/relative/x", "/opt/skills"}
	if !slices.Equal(p.Folders, want) || len(p.Skipped) != 1 || p.Skipped[0].Path != "~other/y" || p.Skipped[0].Code != NoHome {
		t.Errorf("got %+v", p)
	}
	if p := ParsePaths("~/s", "", "/"); len(p.Folders) != 0 || len(p.Skipped) != 1 {
		t.Errorf("without a home: %+v", p)
	}
	var many []string
	for i := range maxPaths + 2 {
		many = append(many, fmt.Sprintf("/p%d", i))
	}
	if p := ParsePaths(strings.Join(many, ","), "", "/"); len(p.Folders) != maxPaths || len(p.Skipped) != 2 || p.Skipped[0].Code != TooMany {
		t.Errorf("too many: %d folders, %v", len(p.Folders), p.Skipped)
	}
}

// TestSkillReport01_EverySkipHasItsReason: skills vanished without a word.
func TestSkillReport01_EverySkipHasItsReason(t *testing.T) {
	root := absolute(t, "testdata/skills")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Lenient, Strict} {
		r := scan(t, mode, root)
		told := map[string]bool{"only-readme": true}
		for _, s := range r.Skills {
			told[filepath.Base(s.Origin.Path)] = true
		}
		for _, s := range r.Skipped {
			if s.Code == "" || s.Detail == "" {
				t.Errorf("%s: %s is skipped without a reason", mode, s.Path)
			}
			told[filepath.Base(s.Path)] = true
		}
		for _, e := range entries {
			if !told[e.Name()] {
				t.Errorf("%s: not a word of %s", mode, e.Name())
			}
		}
	}
}

// TestSkillReport03_CRLFAndBOMAreNormalised: they broke the front matter.
func TestSkillReport03_CRLFAndBOMAreNormalised(t *testing.T) {
	plain := simple("x")
	want, err := Parse([]byte(plain), "x", Strict)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\ufeff" + plain, strings.ReplaceAll(plain, "\n", "\r\n"), "\ufeff" + strings.ReplaceAll(plain, "\n", "\r\n"), strings.ReplaceAll(plain, "\n", "\r")} {
		got, err := Parse([]byte(text), "x", Strict)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
}

// TestSkillReport04_CRLFKeepsNameAndDescription: the name came from the folder, the description was lost.
func TestSkillReport04_CRLFKeepsNameAndDescription(t *testing.T) {
	s, err := Parse([]byte(strings.ReplaceAll(simple("real"), "\n", "\r\n")), "folder", Lenient)
	if err != nil || s.Name != "real" || s.Description != "Says real." {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestSkillReport07_LinksDoNotLeadOut: a linked SKILL.md was read from anywhere.
func TestSkillReport07_LinksDoNotLeadOut(t *testing.T) {
	root, secret := t.TempDir(), filepath.Join(t.TempDir(), FileName)
	write(t, secret, simple("secret"))
	link(t, secret, filepath.Join(root, "absolute", FileName))
	link(t, filepath.Dir(secret), filepath.Join(root, "folder-out"))
	link(t, "../../../../../../../../../../"+secret, filepath.Join(root, "relative", FileName))
	link(t, "../beside/SKILL.md", filepath.Join(root, "sibling", FileName))
	write(t, filepath.Join(root, "beside", FileName), simple("beside"))
	link(t, "text.md", filepath.Join(root, "own", FileName))
	write(t, filepath.Join(root, "own", "text.md"), simple("own"))
	link(t, "loop", filepath.Join(root, "loop"))
	link(t, "beside", filepath.Join(root, "again"))
	link(t, "beside/SKILL.md", filepath.Join(root, "a-file"))
	want := map[string]string{
		"absolute": "skipped: outside", "folder-out": "skipped: outside", "relative": "skipped: outside", "sibling": "skipped: outside",
		"beside": "ok", "own": "ok", "loop": "skipped: unreadable", "again": "name_differs",
	}
	if diff := cmp.Diff(want, verdicts(scan(t, Lenient, root))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSkillReport08_ContainmentIsTestedItself: the check was never reached, because an earlier one took links out.
func TestSkillReport08_ContainmentIsTestedItself(t *testing.T) {
	dir := t.TempDir()
	link(t, "/etc/passwd", filepath.Join(dir, FileName))
	own, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, f := readFile(own); f == nil || f.Code != Outside {
		t.Errorf("got %v", f)
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"..", "../..", "/etc"} {
		if _, f := look(root, name, Lenient); f == nil || f.Code != Outside {
			t.Errorf("%s: got %v", name, f)
		}
	}
}

// TestSkillReport09_NamesAreNoPaths: an absolute path as a name read any file.
func TestSkillReport09_NamesAreNoPaths(t *testing.T) {
	for _, name := range []string{"/etc/passwd", "..", "../x", `a\b`, "a/b", "C:x", ".hidden", "a,b", "a\u2028b", "a b\u00a0c\u0001", strings.Repeat("n", 129)} {
		for _, mode := range []Mode{Lenient, Strict} {
			if s, err := Parse([]byte(fmt.Sprintf("---\nname: %q\ndescription: d\n---\n", name)), "x", mode); err == nil {
				t.Errorf("%s took the name %q as %q", mode, name, s.Name)
			}
			if s, err := Parse([]byte("---\ndescription: d\n---\n"), name, mode); err == nil {
				t.Errorf("%s took the folder's name %q as %q", mode, name, s.Name)
			}
		}
	}
}

// TestSkillReport19_AnotherNameThanTheFolderIsLoaded: 65 published skills were named so.
func TestSkillReport19_AnotherNameThanTheFolderIsLoaded(t *testing.T) {
	s, err := Parse([]byte(simple("one")), "other", Lenient)
	if err != nil || s.Name != "one" || len(s.Findings) != 1 || s.Findings[0].Code != NameDiffers || s.Findings[0].Line != 2 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestNoPipeIsWaitedForAndNoLargeFileRead(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe", FileName), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "folder", FileName), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "large", FileName), simple("large")+strings.Repeat("x", maxFile))
	write(t, filepath.Join(root, "wide", FileName), "---\nname: wide\ndescription: d\nmetadata:\n"+strings.Repeat("  a: b\n", maxFrontMatter/7)+"---\n")
	write(t, filepath.Join(root, ".git", FileName), simple("git"))
	write(t, filepath.Join(root, "node_modules", FileName), simple("node"))
	done := make(chan map[string]string, 1)
	go func() { done <- verdicts(scan(t, Lenient, root)) }()
	select {
	case got := <-done:
		want := map[string]string{"pipe": "skipped: unreadable", "folder": "skipped: unreadable", "large": "skipped: too_large", "wide": "skipped: too_large"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the scan waits for a pipe")
	}
}

func TestSearchedFolders(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	r := scan(t, Lenient, missing, file)
	if len(r.Skipped) != 2 || r.Skipped[0].Code != PathMissing || r.Skipped[1].Code != PathUnread {
		t.Errorf("skipped %v", r.Skipped)
	}
	r, err := Scan(t.Context(), Options{Paths: ParsePaths("", missing, "")})
	if err != nil || len(r.Skipped) != 0 {
		t.Errorf("a default folder that is not there: %v, %v", r.Skipped, err)
	}
	root := t.TempDir()
	for i := range 5 {
		write(t, filepath.Join(root, fmt.Sprint(i), FileName), simple(fmt.Sprint(i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Scan(ctx, Options{Paths: Paths{Folders: []string{root}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFrontMatterBounds(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)
	for _, c := range []struct {
		head string
		code Code
	}{
		{"name: x\ndescription: d\ninput_schema: {a: " + deep + "}\n", BadSchema},
		{"name: x\ndescription: d\nmetadata: {a: " + deep + "}\n", BadYAML},
		{"name: x\ndescription: d\nlicense: " + strings.Repeat("l", maxLenientText+1) + "\n", TooLarge},
		{"name: x\ndescription: d\ninput_schema: &a {b: *a}\n", BadSchema},
		{"name: x\ndescription: d\ninput_schema: {n: .nan}\n", BadSchema},
		{"name: x\ndescription: d\ninput_schema: {<<: {a: 1}}\n", BadSchema},
		{"name: x\ndescription: d\ninput_schema: {a: 1, a: 2}\n", BadSchema},
		{"name: x\ndescription: d\ninput_schema: [a]\n", BadSchema},
		{"name: x\ndescription: d\n<<: {a: 1}\n", BadYAML},
		{"name: x\ndescription: d\n? [a]\n: b\n", BadYAML},
		{"name: [x]\ndescription: d\n", NoName},
		{"name: x\ndescription:\n", NoDescription},
		{"name: x\ndescription: !!binary aGk=\n", NoDescription},
		{"", BadYAML},
		{"# only a remark\n", BadYAML},
		{"name: x\ndescription: d\n...\nname: y\n", BadYAML},
	} {
		s, err := Parse([]byte("---\n"+c.head+"---\n"), "x", Lenient)
		if f, ok := errors.AsType[Finding](err); ok && f.Code == c.code {
			continue
		}
		if s != nil && slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Code == c.code }) {
			continue
		}
		t.Errorf("%.60q: want %s, got %+v, %v", c.head, c.code, s, err)
	}
}

func FuzzParse(f *testing.F) {
	for name := range corpus {
		if data, err := os.ReadFile(filepath.Join("testdata/skills", name, FileName)); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := Parse(data, "x", Strict)
		if err == nil && len(strict.Findings) > 0 {
			t.Fatalf("taken strictly with %v", strict.Findings)
		}
		lenient, lenientErr := Parse(data, "x", Lenient)
		if err == nil {
			if diff := cmp.Diff(strict, lenient); diff != "" || lenientErr != nil {
				t.Fatalf("both take it, but differently: %v\n%s", lenientErr, diff)
			}
		}
		if lenientErr != nil {
			if _, ok := errors.AsType[Finding](lenientErr); !ok {
				t.Fatalf("%v is no finding", lenientErr)
			}
			return
		}
		if fault := nameFault(lenient.Name); fault != "" || strings.TrimSpace(lenient.Description) == "" || len(lenient.InputSchema) == 0 {
			t.Fatalf("taken: %+v", lenient)
		}
		for _, s := range []string{lenient.Description, lenient.Body, lenient.Name} {
			if _, n := visible(s); n > 0 {
				t.Fatalf("hidden characters in %q", s)
			}
		}
	})
}

// TestWhatIsKeptOfFoldersIsBounded: the texts stay in memory, and whoever may write into a folder may write much.
func TestWhatIsKeptOfFoldersIsBounded(t *testing.T) {
	root := t.TempDir()
	const text = "---\nname: a\ndescription: Short.\n---\n"
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name, FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := Result{Skills: []Found{{Origin: Origin{Size: maxKept - len(text)}}}} // of the path before
	if err := scanPath(t.Context(), &r, root, Options{Mode: Lenient}); err != nil {
		t.Fatal(err)
	}
	if len(r.Skills) != 2 || len(r.Skipped) != 1 || r.Skipped[0].Code != TooMany || filepath.Base(r.Skipped[0].Path) != "b" {
		t.Errorf("%d skills; skipped: %v", len(r.Skills), r.Skipped)
	}
}
