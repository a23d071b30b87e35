package screen

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// words of the shop that the tests look for, by language.
var words = map[string]struct{ kettle, name, address string }{
	"en": {"Kettle", "Ana", "Main Street 5"},
	"ar": {"غلاية", "آنا", "شارع النيل 5"},
	"zh": {"水壶", "安娜", "人民路五号"},
}

// dismiss leaves whichever pop-up is in the way.
func dismiss(d *driver) (seen bool) {
	d.Helper()
	for _, id := range []string{"rate_later", "coupon_no", "cookies_necessary"} {
		if d.has(id) {
			if d.has("toolbar") {
				d.Errorf("the page below the dialog %s is still in the tree", id)
			}
			d.tap(id)
			return true
		}
	}
	return false
}

func TestShopFromSearchToOrder(t *testing.T) {
	for lang, w := range words {
		for seed := range int64(3) {
			t.Run(lang+strconv.FormatInt(seed, 10), func(t *testing.T) {
				t.Parallel()
				d := drive(t, Config{Language: lang, Seed: seed})
				d.Tap(centre(d.find(map[string]string{"en": "Shop", "ar": "المتجر", "zh": "商店"}[lang])))
				if pkg, _ := d.Focus(); pkg != "" {
					t.Errorf("focus is %q during the transition", pkg)
				}
				d.settle()
				if pkg, activity := d.Focus(); pkg != "com.phonerack.shop" || activity != ".MainActivity" {
					t.Errorf("focus is %s/%s", pkg, activity)
				}
				d.tap("search")
				d.typeText(w.kettle)
				if got := d.find("search"); got.Text != w.kettle || !got.Focused {
					t.Errorf("search holds %q, focused %v", got.Text, got.Focused)
				}
				d.Key(KeyEnter)
				d.wait(time.Second)
				if !d.has("progress_bar") || d.has("results") || d.Idle() {
					t.Error("the results are there before they are loaded")
				}
				d.settle()
				popups := dismiss(d)
				d.tap(w.kettle)
				d.wait(time.Second)
				if dismiss(d) == popups {
					t.Error("want exactly one pop-up")
				}
				d.tap("add")
				d.tap("snackbar_action")
				if got := d.find("name").Text; got != w.kettle+" × 1" {
					t.Errorf("basket holds %q", got)
				}
				d.tap("checkout")
				if d.find("place_order").Enabled {
					t.Error("an order without an address can be placed")
				}
				d.tap("name")
				d.typeText(w.name)
				d.Key(KeyEnter)
				d.typeText(w.address)
				d.tap("place_order")
				d.find("thanks")
				d.wantJournal("basket: Kettle x1", "order placed: Kettle x1 for "+w.name+", "+w.address)
			})
		}
	}
}

func TestShopOrderOfResultsDependsOnTheSeed(t *testing.T) {
	names := func(seed int64) (out []string) {
		d := drive(t, Config{Seed: seed})
		search(d, "e")
		d.settle()
		dismiss(d)
		for _, n := range d.all("name") {
			out = append(out, n.Text)
		}
		return out
	}
	first := names(7)
	if len(first) < 5 {
		t.Fatalf("only %q are shown", first)
	}
	if !slices.Equal(first, names(7)) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(first, names(8)) && slices.Equal(first, names(9)) {
		t.Error("three seeds give one order")
	}
}

func TestShopQuantityAndCoupon(t *testing.T) {
	d := drive(t, Config{Seed: 1})
	search(d, "steel")
	d.settle()
	d.tap("result")
	d.wait(time.Second)
	d.tap("coupon_yes")
	d.tap("less") // disabled at one
	d.tap("more")
	d.tap("more")
	d.tap("add")
	d.tap("add")
	d.tap("basket")
	if got := d.find("name").Text; got != "Steel kettle × 6" {
		t.Errorf("basket holds %q", got)
	}
	if prices := d.all("price"); prices[len(prices)-1].Text != "$210.60" {
		t.Errorf("total is %q", prices[len(prices)-1].Text)
	}
	d.tap("remove")
	d.find("empty")
	d.wantJournal("coupon taken", "basket: Steel kettle x3", "basket: Steel kettle x3", "removed: Steel kettle")
}

func TestShopDialogsThatMustBeAnswered(t *testing.T) {
	d := drive(t, Config{Seed: 2})
	search(d, "mug")
	d.settle()
	d.Key(KeyBack)
	d.Tap(5, 100)
	d.settle()
	if !d.has("cookies_accept") {
		t.Fatal("the dialog went away without an answer")
	}
	d.tap("cookies_accept")
	d.find("results")

	d = drive(t, Config{Seed: 0})
	search(d, "mug")
	d.settle()
	d.tap("result")
	d.wait(time.Second)
	d.find("rate_now")
	d.Tap(5, 100) // beside the dialog
	d.settle()
	if d.has("rate_now") {
		t.Error("a tap beside a cancelable dialog leaves it open")
	}
	d.find("add")
}
