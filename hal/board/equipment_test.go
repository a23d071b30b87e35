package board

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const equipped = `name = "two hubs"
model = "rpi4"

[uplink]
path = "1-1.4"

[power]
stagger = "250ms"
concurrent = 3

[[hub]]
name = "A"
path = "1-1.1"
power = "line"
line = "HUB1_PWR"
active_low = true
default = "off"
off_time = "8s"

[[hub]]
name = "B"
path = "1-1.2"
companion = "2-1.2"
ports = 4
power = "ports"
settle = "1s"

[[led]]
name = "rack"
green = { sysfs = ["rack:green", "ACT"] }
red = { chip = "pinctrl-bcm2711", offset = 17, active_low = true }

[button]
line = "GPIO3"
active_low = true
pull = "up"

[[slot]]
number = 1
path = "1-1.1.4.2"

[[slot]]
number = 2
hub = "B"
port = 3
`

func TestBoardFileDescribesTheWholeRack(t *testing.T) {
	b, err := parse("b.toml", []byte(equipped))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Controllers) != 1 || b.Controllers[0].Devices != 32 {
		t.Errorf("the model's controller is missing: %+v", b.Controllers)
	}
	if b.Uplink != "1-1.4" || b.Power != (Power{250 * time.Millisecond, 3}) {
		t.Errorf("uplink %q, power %+v", b.Uplink, b.Power)
	}
	a, _ := b.Hub("A")
	if a.Feed != Lines || a.Line != (Line{Name: "HUB1_PWR", ActiveLow: true}) || a.On || a.OffTime != 8*time.Second || a.Settle != 3*time.Second {
		t.Errorf("hub A: %+v", a)
	}
	h, _ := b.Hub("B")
	if h.Feed != PortPower || h.Companion != "2-1.2" || !h.On || h.OffTime != 5*time.Second || h.Settle != time.Second {
		t.Errorf("hub B: %+v", h)
	}
	if len(b.LEDs) != 1 || len(b.LEDs[0].Lights) != 2 || b.LEDs[0].Lights[1].Line.Offset != 17 || b.LEDs[0].Lights[0].Sysfs[0] != "rack:green" {
		t.Errorf("LEDs: %+v", b.LEDs)
	}
	if b.Button == nil || b.Button.Name != "GPIO3" || b.Button.Pull != "up" {
		t.Errorf("button: %+v", b.Button)
	}
	one, two := b.Slots[0], b.Slots[1]
	if one.Hub != "A" || one.Port != 4 {
		t.Errorf("slot 1 is on hub %q port %d: the hub in the hub is A's affair", one.Hub, one.Port)
	}
	if two.Path != "1-1.2.3" || two.Hub != "B" || two.Port != 3 {
		t.Errorf("slot 2: %+v", two)
	}
	if s, ok := b.SlotAt("2-1.2.3"); !ok || s.Number != 2 {
		t.Errorf("a phone at SuperSpeed is in %v, %v", s, ok)
	}
	// 1-1, 1-1.1, 1-1.1.4, 1-1.2, 2-1, 2-1.2; the uplink; two phones.
	if u := b.Uses(); len(u) != 1 || u[0].Hubs != 6 || u[0].Others != 1 || u[0].Phones != 2 {
		t.Errorf("uses %v", u)
	}
}

func TestFaultsOfEquipment(t *testing.T) {
	change := func(pairs ...string) string { // what is there, then what takes its place
		text := equipped
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("no %q in the file", pairs[i])
			}
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		return text
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown model":              {change("rpi4", "rpi44"), `b.toml:2:1: no model is called "rpi44": choose one of cm4, emulated, generic, rpi4, rpi5`},
		"uplink form":                {change(`"1-1.4"`, `"usb0"`), `b.toml:5:1: port path "usb0" of the uplink is not of the form`},
		"line cuts the uplink":       {change(`path = "1-1.1"`, `path = "1-1"`), "b.toml:15:1: hub A at 1-1 is fed by line HUB1_PWR, and the uplink at 1-1.4 depends on it"},
		"line cuts it at SuperSpeed": {change(`path = "1-1.1"`, "path = \"1-1.1\"\ncompanion = \"2-1\"", `path = "1-1.4"`, `path = "2-1.4"`), "b.toml:16:1: hub A at 1-1.1 is fed by line HUB1_PWR, and the uplink at 2-1.4"},
		"port shared at SuperSpeed":  {change(`path = "1-1.4"`, `path = "2-1.2.3"`), "slot 2 shares port 3 of hub B with the uplink"},
		"slot is the uplink":         {change(`path = "1-1.1.4.2"`, `path = "1-1.4"`), "b.toml:40:1: port 1-1.4 is slot 1 and leads to the uplink"},
		"port shared with uplink":    {change(`path = "1-1.4"`, `path = "1-1.2.3.1"`), "shares port 3 of hub B with the uplink"},
		"no line":                    {change("line = \"HUB1_PWR\"\n", ""), `b.toml:11:3: hub A needs a GPIO line`},
		"chip number":                {change(`line = "HUB1_PWR"`, "chip = \"gpiochip0\"\noffset = 2"), `b.toml:15:1: hub A: chip "gpiochip0" is a number that changes`},
		"name and chip":              {change(`line = "HUB1_PWR"`, "line = \"X\"\nchip = \"pinctrl-rp1\""), "hub A names its line and a chip with offset"},
		"line without use":           {change(`power = "line"`, `power = "none"`), `b.toml:15:1: hub A names a GPIO line, but its power is "none"`},
		"unknown power":              {change(`power = "line"`, `power = "magic"`), `b.toml:14:1: power of hub A is "magic"`},
		"default":                    {change(`default = "off"`, `default = "maybe"`), `b.toml:17:1: default of hub A is "maybe"`},
		"short off":                  {change(`"8s"`, `"500ms"`), "b.toml:18:1: off_time is 500ms: choose 2s to 1m0s"},
		"no duration":                {change(`"8s"`, `"8"`), `b.toml:18:12: hub.off_time: "8" is no duration`},
		"number as a name":           {change(`name = "B"`, `name = 2`), "b.toml:21:8: hub.name has a wrong value: give it a text between quotes"},
		"text as a lamp":             {change(`green = { sysfs = ["rack:green", "ACT"] }`, `green = "ACT"`), `has a wrong value: give it a table such as { sysfs = ["ACT"] }`},
		"duration without a unit":    {change(`"8s"`, "8"), `b.toml:18:1: off_time is 8 without a unit: write it like "5s" or "500ms"`},
		"stagger without a unit":     {change("concurrent = 3", "concurrent = 3\nstagger = 5", "stagger = \"250ms\"\n", ""), `b.toml:9:1: stagger is 5 without a unit`},
		"milliseconds meant":         {change("concurrent = 3", "concurrent = 3\nstagger = 2000", "stagger = \"250ms\"\n", ""), `b.toml:9:1: stagger is 2000 without a unit`},
		"hub in single brackets":     {"name = \"x\"\n[[slot]]\nnumber = 1\npath = \"1-2\"\n[hub]\nname = \"A\"\npath = \"x\"\n", `b.toml:7:1: port path "x" of hub A`},
		"its heading":                {"name = \"x\"\n[[slot]]\nnumber = 1\npath = \"1-2\"\n[hub]\npath = \"1-1\"\n", "b.toml:5:2: the hub has no name"},
		"slot of an LED as text":     {change("[[led]]", "[[led]]\nslot = \"1\""), "led.slot has a wrong value: give it a whole number"},
		"concurrency zero":           {change("concurrent = 3", "concurrent = 0"), "b.toml:9:1: concurrent is 0"},
		"two of a name":              {change(`name = "B"`, `name = "A"`), "b.toml:21:1: two hubs are called A"},
		"two at a place":             {change(`path = "1-1.2"`, `path = "1-1.1"`), "b.toml:22:1: hub A and hub B are both at 1-1.1"},
		"companion on its bus":       {change("2-1.2", "1-3"), `b.toml:23:1: companion "1-3" of hub B`},
		"line used twice":            {change(`line = "GPIO3"`, `line = "HUB1_PWR"`), "b.toml:34:1: line HUB1_PWR is used for hub A and for the button"},
		"button's pull":              {change(`pull = "up"`, `pull = "left"`), `b.toml:36:1: pull of the button is "left"`},
		"LED without light":          {change("green = { sysfs = [\"rack:green\", \"ACT\"] }\nred = { chip = \"pinctrl-bcm2711\", offset = 17, active_low = true }\n", ""), "b.toml:28:3: LED rack has no light"},
		"LED of no slot":             {change("[[led]]", "[[led]]\nslot = 999"), "LED rack is of slot 999, which the board does not have: correct the number"},
		"LED of slot 0":              {change("[[led]]", "[[led]]\nslot = 0"), "LED rack is of slot 0, which the board does not have"},
		"one lamp of two LEDs":       {change("[[led]]", "[[led]]\nname = \"front\"\nlight = { sysfs = [\"rack:green\"] }\n[[led]]"), "LED rack: rack:green is a light of another LED or colour already"},
		"one lamp of two colours":    {change("red = { chip = \"pinctrl-bcm2711\", offset = 17, active_low = true }", "red = { sysfs = [\"ACT\"] }"), "LED rack: ACT is a light of another LED or colour already"},
		"LED escape":                 {change(`"rack:green"`, `"../../x"`), `b.toml:30:1: LED rack: "../../x" is no name below /sys/class/leds`},
		"hub not there":              {change(`hub = "B"`, `hub = "C"`), `b.toml:44:1: slot 2 is on hub "C", which is not in the file`},
		"port with a dot bare":       {change("port = 3", "port = 3.1"), "b.toml:45:1: slot 2: write the port as a whole number, or between quotes"},
		"port beyond":                {change("port = 3", "port = 5"), "b.toml:45:1: slot 2 is on port 5 of hub B, which has 4 ports"},
		"chain port":                 {change("port = 3", `port = "3.1"`), "slot 2 lies behind a further hub at port 3 of hub B: that port must not be switched; add a [[hub]] with the path 1-1.2.3"},
		"path and port":              {change("port = 3", "port = 3\npath = \"1-1.2.3\""), "slot 2 has a path and a hub with port"},
		"slot where the hub is":      {change(`path = "1-1.1.4.2"`, `path = "1-1.2"`), "port 1-1.2 is slot 1, and hub B is at 1-1.2"},
		"bus of two controllers":     {equipped + "[[controller]]\nname = \"x\"\nbuses = [1, 1]\ndevices = 9\n", "bus 1 belongs to controller x and to x"},
		"number as text":             {change("ports = 4", `ports = "4"`), "b.toml:24:9: hub.ports has a wrong value: give it a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("b.toml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// rack writes a board file of a Raspberry Pi 4 with hubs of four ports, each full of phones.
func rack(hubs int, companion bool) string {
	text := "name = \"x\"\nmodel = \"rpi4\"\n"
	for h := range hubs {
		text += fmt.Sprintf("[[hub]]\nname = \"%d\"\npath = \"1-1.%d\"\n", h, h+1)
		if companion {
			text += fmt.Sprintf("companion = \"2-%d\"\n", h+1)
		}
	}
	for s := range hubs * 4 {
		text += fmt.Sprintf("[[slot]]\nnumber = %d\nhub = \"%d\"\nport = %d\n", s+1, s/4, s%4+1)
	}
	return text
}

func TestMorePhonesThanTheControllerAddressesAreRefused(t *testing.T) {
	// 1 on the board, 6 hubs, 24 phones: 31 of 32.
	if _, err := parse("b.toml", []byte(rack(6, false))); err != nil {
		t.Error(err)
	}
	// One more hub of four: 36.
	_, err := parse("b.toml", []byte(rack(7, false)))
	if err == nil || !strings.Contains(err.Error(), "slot 25 at 1-1.7.1 does not fit: controller VL805 addresses 32 devices, hubs included, and there are 8 hubs, 0 others and 28 phones; remove 4 slots") {
		t.Error(err)
	}
	// The same six hubs on USB 3 cables: 37.
	_, err = parse("b.toml", []byte(rack(6, true)))
	if err == nil || !strings.Contains(err.Error(), "slot 20 at 1-1.5.4 does not fit") {
		t.Error(err)
	}
}

func TestModelsAreGoodBoards(t *testing.T) {
	if len(Models()) != 5 {
		t.Errorf("models %v", Models())
	}
	for _, name := range Models() {
		text, ok := Model(name)
		if !ok {
			t.Fatal(name)
		}
		if _, _, err := parseParts(name+".toml", text); err != nil {
			t.Error(err)
		}
		b, err := parse("b.toml", []byte(fmt.Sprintf("model = %q\n[[slot]]\nnumber = 1\npath = \"1-1.1\"\n", name)))
		if err != nil || b.Name == "" || b.Slots[0].Path != "1-1.1" {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func TestExampleOfTheDocsIsAGoodBoard(t *testing.T) {
	page, err := os.ReadFile("../../docs/boards.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## An example\n")
	example, _, _ := strings.Cut(rest, "\n## ")
	b, err := parse("docs", []byte(example))
	if err != nil || len(b.Slots) != 2 || len(b.Hubs) != 2 || b.Button == nil {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestDraftAddsSlotsAndKeepsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board.toml")
	const own = "name = \"mine\" # the rack beside the door\nmodel = \"rpi4\"" // no newline at its end
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDraft(path, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := d.Add(Slot{Number: i + 1, Path: fmt.Sprintf("1-1.%d", i+1), Row: 1, Column: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if undone, err := d.Undo(); !undone || err != nil {
		t.Errorf("undo: %v, %v", undone, err)
	}
	before, _ := os.ReadFile(path)
	if err := d.Add(Slot{Number: 1, Path: "1-1.4"}); err == nil || !strings.Contains(err.Error(), "slot number 1 is used twice") {
		t.Errorf("a second slot 1: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("a slot that was refused has changed the file:\n%s", after)
	}
	b, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Slots) != 2 || b.Slots[1].Path != "1-1.2" || b.Slots[1].Column != 2 || len(d.Board().Slots) != 2 {
		t.Errorf("slots %+v", b.Slots)
	}
	if !strings.HasPrefix(string(before), own+"\n") {
		t.Errorf("the file was rewritten:\n%s", before)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".board-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDraftOfANewFileAppearsWithItsFirstSlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board.toml")
	d, err := OpenDraft(path, `the "new" one`, "generic")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file before there is a slot")
	}
	if undone, err := d.Undo(); undone || err != nil {
		t.Errorf("undo of nothing: %v, %v", undone, err)
	}
	if err := d.Add(Slot{Number: 7, Path: "1-2", Label: "门"}); err != nil {
		t.Fatal(err)
	}
	b, err := Load(path)
	if err != nil || b.Name != `the "new" one` || b.Model != "generic" || b.Slots[0].Label != "门" {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := OpenDraft(path, "", "none"); err != nil {
		t.Errorf("an existing file names its own model: %v", err)
	}
	if _, err := OpenDraft(path+"2", "x", "none"); err == nil {
		t.Error("an unknown model is taken")
	}
}

func TestLesson(t *testing.T) {
	l := NewLesson([]Slot{{Number: 1, Path: "1-1.1"}}, []string{"1-1.1", "1-1.9"})
	look := func(want Sight, present ...string) {
		t.Helper()
		got := l.Look(present)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("with %v: got %+v, want %+v", present, got, want)
		}
	}
	look(Sight{}, "1-1.1", "1-1.9")       // both were there before anybody plugged anything
	look(Sight{}, "1-1.9")                // the phone leaves slot 1
	look(Sight{Taken: []int{1}}, "1-1.1") // and comes back to it; the one at .9 goes
	look(Sight{}, "1-1.1")                // said once
	look(Sight{}, "1-1.2")                // new: seen once
	look(Sight{}, "1-1.3")                // that was another port: seen once
	look(Sight{Found: "1-1.3"}, "1-1.3")  // twice
	look(Sight{Found: "1-1.3"}, "1-1.3")  // until it is learned
	l.Learned("1-1.3", 2)                 //
	look(Sight{}, "1-1.3")                //
	look(Sight{}, "1-1.3", "1-1.9")       // the one at .9 was unplugged since, so it counts
	look(Sight{Found: "1-1.9"}, "1-1.9")  //
	look(Sight{Several: []string{"1-1.4", "1-1.9"}}, "1-1.9", "1-1.4")
	look(Sight{}, "1-1.9", "1-1.4")      // said once
	look(Sight{}, "1-1.4")               // one of them is left
	look(Sight{Found: "1-1.4"}, "1-1.4") //
	l.Learned("1-1.4", 3)                //
	l.Forget("1-1.4")                    // taken back, while the phone is there
	look(Sight{}, "1-1.4")               //
	look(Sight{}, "1-1.4")               // not found again
	look(Sight{})                        // until it is unplugged
	look(Sight{}, "1-1.4")               //
	look(Sight{Found: "1-1.4"}, "1-1.4") //
}
