package board

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `name = "two hubs"

[[slot]]
number = 2
path = "1-1.2"
label = "右上"

[[slot]]
number = 1
path = "1-1.1"
row = 1
column = 2
`

func TestLoadOrdersSlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board.toml")
	if err := os.WriteFile(path, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Slots) != 2 || b.Slots[0].Number != 1 || b.Slots[1].String() != "slot 2 (右上)" {
		t.Errorf("got %+v", b)
	}
	if s, ok := b.SlotAt("1-1.2"); !ok || s.Number != 2 {
		t.Errorf("SlotAt gave %v, %v", s, ok)
	}
	if _, ok := b.SlotAt("1-1"); ok {
		t.Error("the hub's own port is taken for a slot")
	}
}

func TestFaultsSayWhereAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "b.toml: the board has no name"},
		"no slots":        {`name = "x"`, "b.toml: the board has no slots: add a [[slot]]"},
		"syntax":          {"name = \"x\"\n[[slot]\n", "b.toml:2:"},
		"unknown key":     {good + "colour = 1\n", `b.toml:13:1: unknown key "slot.colour"`},
		"wrong type":      {strings.Replace(good, "number = 1", `number = "one"`, 1), "b.toml:9:"},
		"same number":     {strings.Replace(good, "number = 1", "number = 2", 1), "b.toml:9:1: slot number 2 is used twice: the other is at port 1-1.2"},
		"same port":       {strings.Replace(good, "1-1.1", "1-1.2", 1), "b.toml:10:1: port 1-1.2 is given to slot 2 and to slot 1"},
		"hub and phone":   {strings.Replace(good, "1-1.1", "1-1", 1), "b.toml:5:1: port 1-1.2 of slot 2 lies behind port 1-1, which is slot 1"},
		"port zero":       {strings.Replace(good, "1-1.1", "1-0.1", 1), "b.toml:10:1: port path \"1-0.1\""},
		"port 256":        {strings.Replace(good, "1-1.1", "1-256", 1), "b.toml:10:1: port path"},
		"too deep":        {strings.Replace(good, "1-1.1", "1-1.1.1.1.1.1.1", 1), "b.toml:10:1: port path"},
		"folder escape":   {strings.Replace(good, "1-1.1", "../1-1", 1), "b.toml:10:1: port path"},
		"number missing":  {strings.Replace(good, "number = 1\n", "", 1), "b.toml:8:3: slot number 0"},
		"label too long":  {strings.Replace(good, "右上", strings.Repeat("右", 33), 1), "b.toml:6:1: slot 2: label is longer than 32"},
		"label unseen":    {strings.Replace(good, "右上", `a\u001b[31m`, 1), "b.toml:6:1: slot 2: label holds characters"},
		"negative column": {strings.Replace(good, "column = 2", "column = -2", 1), "slot 1: row and column"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("b.toml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAllFaultsComeAtOnce(t *testing.T) {
	_, err := parse("b.toml", []byte("name = \"x\"\n[[slot]]\nnumber = 0\npath = \"a\"\n[[slot]]\nnumber = 1000\npath = \"b\"\n"))
	if n := len(strings.Split(err.Error(), "\n")); n != 4 {
		t.Errorf("%d faults, want 4:\n%v", n, err)
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.toml")
	if err := os.WriteFile(path, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
}

// TestAFileOfAnEditorOfWindows has a byte order mark and ends its lines with two characters, or is no UTF-8 at all.
func TestAFileOfAnEditorOfWindows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.toml")
	load := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		return err
	}
	windows := "\ufeff" + strings.ReplaceAll(good, "\n", "\r\n")
	if err := load(windows); err != nil {
		t.Error(err)
	}
	draft, err := OpenDraft(path, "", "")
	if err == nil {
		err = draft.Add(Slot{Number: 9, Path: "1-1.4"})
	}
	if _, again := Load(path); err != nil || again != nil {
		t.Errorf("a slot is added: %v, and then %v", err, again)
	}
	if err := load(windows + "colour = 1\r\n"); err == nil || !strings.Contains(err.Error(), `b.toml:13:1: unknown key "slot.colour"`) {
		t.Errorf("%v", err)
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if err := load(mark + "n\x00a\x00"); err == nil || err.Error() != path+": the file is in UTF-16: save it as UTF-8" {
			t.Errorf("%v", err)
		}
	}
}

func TestAKeyThatIsFarTooLongIsCutInTheFault(t *testing.T) {
	_, err := parse("b.toml", []byte(strings.Repeat("a.", 20000)+"b = 1\n"+good))
	if err == nil || !strings.Contains(err.Error(), "remove it or mend its spelling") || len(err.Error()) > 200 {
		t.Errorf("%.300v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("[[slot]]\n[slot.x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := parse("b.toml", data); err == nil && (b.Name == "" || len(b.Slots) == 0) {
			t.Error("an empty board passed")
		}
	})
}

func TestABoardFileThatIsNotThereIsSaidInOneSentence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(path)
	if want := "board file " + path + " does not exist: correct the path, or have rackctl board learn make it"; err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want %s", err, want)
	}
}
