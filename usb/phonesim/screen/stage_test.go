package screen

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const stage = "com.phonerack.stage"

// onStage opens one of the stage's screens.
func onStage(t *testing.T, entry string) *driver {
	t.Helper()
	d := drive(t, Config{})
	d.open(stage)
	if entry != "" {
		d.Tap(centre(d.find(entry)))
		d.wait(time.Second)
	}
	return d
}

func TestEveryScreenOfTheStageIsReached(t *testing.T) {
	for _, lang := range []string{"en", "ar", "zh"} {
		d := drive(t, Config{Language: lang})
		d.open(stage)
		seen := map[string]bool{}
		for _, n := range nodes(d.Tree()) {
			_, id, _ := strings.Cut(n.ResourceID, ":id/open_")
			if id == "" {
				continue
			}
			d.Tap(centre(n))
			d.wait(time.Second)
			_, activity := d.Focus()
			seen[activity] = true
			if black(d) {
				t.Errorf("%s is black", id)
			}
			d.Key(KeyBack)
			if d.Keyboard() {
				d.Key(KeyBack)
			}
			d.settle()
		}
		if seen[".StageActivity"] || len(seen) != 8 {
			t.Errorf("%s: seen %v", lang, seen)
		}
	}
}

func TestStageHasNoIconButIsNoPartOfTheSystem(t *testing.T) {
	d := drive(t, Config{})
	if d.has("Stage") {
		t.Error("there is an icon")
	}
	for _, p := range d.Packages() {
		if p.Name == stage && (p.System || len(p.Permissions) != 3) {
			t.Errorf("package %+v", p)
		}
	}
}

func TestSystemDialogs(t *testing.T) {
	for _, test := range []struct {
		open, owner, activity string
		tap                   []string
		journal               string
	}{
		{
			"camera", "com.android.permissioncontroller", ".permission.ui.GrantPermissionsActivity",
			[]string{"permission_deny_button"},
			"permission android.permission.CAMERA for com.phonerack.stage: denied",
		},
		{
			"location", "com.android.permissioncontroller", ".permission.ui.GrantPermissionsActivity",
			[]string{"While using the app"},
			"permission android.permission.ACCESS_FINE_LOCATION for com.phonerack.stage: allowed",
		},
		{"hang", "android", ".AppErrorDialog", []string{"aerr_wait"}, "not responding: waited for com.phonerack.stage"},
		{"hang", "android", ".AppErrorDialog", []string{"aerr_close"}, "not responding: com.phonerack.stage closed"},
		{"update", "com.google.android.gms", ".update.SystemUpdateActivity", []string{"Later"}, "system update: later"},
		{"rate", "com.android.vending", ".inappreview.InAppReviewActivity", []string{"4 stars", "submit"}, "rating of com.phonerack.stage: 4"},
		{"own", stage, ".DialogsActivity", []string{"Cancel"}, "kept all"},
	} {
		t.Run(test.open+" "+test.tap[0], func(t *testing.T) {
			d := onStage(t, "open_dialogs")
			d.tap(test.open)
			if pkg, activity := d.Focus(); test.owner != stage && (pkg != test.owner || activity != test.activity) {
				t.Errorf("focus %s %s", pkg, activity)
			}
			for _, n := range nodes(d.Tree()) {
				if n.Package != test.owner || n.ResourceID != "" && !strings.HasPrefix(n.ResourceID, test.owner+":id/") && !strings.HasPrefix(n.ResourceID, "android:id/") {
					t.Errorf("node %s of %s", n.ResourceID, n.Package)
				}
			}
			for _, what := range test.tap {
				d.tap(what)
			}
			d.wantJournal(test.journal)
			want := stage
			if strings.HasSuffix(test.journal, "closed") {
				want = "com.android.launcher3"
			}
			if pkg, _ := d.Focus(); pkg != want {
				t.Errorf("focus %s, want %s", pkg, want)
			}
		})
	}
}

func TestDialogAtAMoment(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	args := map[string]string{"label": "Shop", "package": "com.phonerack.shop"}
	if err := d.ShowDialog("rating", args, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	d.wait(1900 * time.Millisecond)
	if !d.Idle() || d.has("submit") {
		t.Error("the dialog shows in advance")
	}
	d.wait(time.Second)
	d.find("Do you like Shop?")
	d.Key(KeyBack)
	d.settle()
	if err := d.ShowDialog("anr", args, 0); err != nil {
		t.Fatal(err)
	}
	d.settle()
	d.Key(KeyBack)
	d.find("Shop isn't responding")
	for name, args := range map[string]map[string]string{"none": nil, "rating": {"none": "x"}} {
		if err := d.ShowDialog(name, args, 0); !errors.Is(err, ErrUnknownDialog) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGameShowsOneNode(t *testing.T) {
	d := onStage(t, "open_game")
	all := nodes(d.Tree())
	if len(all) != 5 || all[4].Class != "android.view.SurfaceView" {
		t.Fatalf("%d nodes, the last is %s", len(all), all[len(all)-1].Class)
	}
	b := all[4].Bounds
	x, y := (b.Min.X+b.Max.X)/2, (b.Min.Y+b.Max.Y)/2
	d.Tap(x, y)
	d.Tap(x, y)
	d.Tap(x, b.Max.Y-20)
	d.wantJournal("score 1", "score 2")
}

func TestEndlessMotion(t *testing.T) {
	d := onStage(t, "open_motion")
	for range 100 {
		if d.Idle() {
			t.Fatal("idle")
		}
		d.wait(200 * time.Millisecond)
	}
	d.SetAnimationScale(0)
	if !d.Idle() {
		t.Error("restless without animations")
	}
}

func TestLongListScrolls(t *testing.T) {
	d := onStage(t, "open_list")
	for range 200 {
		if d.has("Item 87") {
			break
		}
		d.Swipe(360, 1300, 360, 400, 300*time.Millisecond)
	}
	d.tap("Item 87")
	d.wantJournal("item 87")
}

func TestFormIsFilledIn(t *testing.T) {
	d := onStage(t, "open_form")
	if d.find("name").Text != "Jane Roe" || d.find("submit").Enabled {
		t.Error("the form begins otherwise")
	}
	d.tap("name")
	d.Shortcut(keyA)
	d.typeText("Bo")
	d.Key(KeyEnter) // on to the next fields
	d.Key(KeyMoveEnd)
	d.typeText("x")
	d.Key(KeyEnter)
	d.typeText("pa ss")
	if n := d.find("password"); n.Text != "•••••" || !n.Password {
		t.Errorf("password shows as %q", n.Text)
	}
	d.Key(KeyBack)
	d.tap("agree")
	d.tap("submit")
	d.wantJournal("form: Bo | jane.roe@example.orgx | pa ss |  | ")
	d.find("Thank you, Bo")
}

func TestWebPageHasNoIDs(t *testing.T) {
	d := onStage(t, "open_web")
	web := d.find("webview")
	if web.Class != "android.webkit.WebView" {
		t.Errorf("class %s", web.Class)
	}
	for _, n := range nodes(web)[1:] {
		if n.ResourceID != "" {
			t.Errorf("a node of the page has the id %s", n.ResourceID)
		}
	}
	d.tap("Forecast for tomorrow")
	d.find("Tomorrow: rain from noon on.")
	d.tap("Back to the news")
	for _, n := range nodes(d.find("webview")) {
		if n.Class == "android.widget.EditText" {
			d.Tap(centre(n))
		}
	}
	d.typeText("hello")
	d.tap("Post")
	d.wantJournal("followed a link", "comment: hello")
}

func TestVaultAndGestures(t *testing.T) {
	d := onStage(t, "open_vault")
	d.tap("secret")
	d.typeText("sesame")
	d.Key(KeyBack)
	d.tap("unlock")
	d.Key(KeyBack)
	d.settle()
	d.tap("open_gestures")
	x, y := centre(d.find("twice"))
	d.Tap(x, y)
	d.Tap(x, y)
	d.LongPress(centre(d.find("hold")))
	x, y = centre(d.find("up"))
	d.Swipe(x, y, x, y-300, 200*time.Millisecond)
	d.wantJournal("vault opened with sesame", "tapped twice", "held", "swiped up")
}
