package popup

import (
	"image"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/perception"
)

// dialog is a scene of a window in the middle of the screen: texts, and buttons
// that begin with a "*". "id=..." after a button is its id.
func dialog(pkg string, lines ...string) *perception.Scene {
	s := &perception.Scene{Generation: 1, Package: pkg, Width: 1080, Height: 2400}
	for i, line := range lines {
		text, id, _ := strings.Cut(line, " id=")
		e := perception.Element{
			Index: i, Role: perception.RoleText, Text: text, Package: pkg, Enabled: true,
			Bounds: image.Rect(100, 900+80*i, 980, 960+80*i),
		}
		if id != "" {
			e.ID = pkg + ":id/" + id
		}
		if button, ok := strings.CutPrefix(text, "*"); ok {
			e.Role, e.Text, e.Clickable = perception.RoleButton, button, true
		}
		s.Elements = append(s.Elements, e)
	}
	return s
}

// page stretches a scene over the screen.
func page(s *perception.Scene) *perception.Scene {
	for i := range s.Elements {
		s.Elements[i].Bounds = image.Rect(0, 2300*i/len(s.Elements), 1080, 2300*i/len(s.Elements)+90)
	}
	s.Elements[len(s.Elements)-1].Bounds.Max.Y = 2400
	return s
}

func TestFind(t *testing.T) {
	const asker = "com.google.android.permissioncontroller"
	for _, c := range []struct {
		name           string
		scene          *perception.Scene
		consent        bool
		watcher, press string // "" for none
	}{
		{"an app does not respond", dialog("android", "Shop isn't responding", "*Close app id=aerr_close", "*Wait id=aerr_wait"), false, "app not responding", "Wait"},
		{"the same in Chinese", dialog("android", "商店没有响应", "*关闭应用 id=aerr_close", "*等待 id=aerr_wait"), false, "app not responding", "等待"},
		{"an app crashed", dialog("android", "Shop keeps stopping", "*Open app again id=aerr_restart", "*Close app id=aerr_close"), false, "app crashed", "Open app again"},
		{"a crash without another chance", dialog("android", "Shop has stopped", "*Close app id=aerr_close"), false, "app crashed", "Close app"},
		{"an app that calls its button so", dialog("com.shop", "Wait for delivery?", "*Wait id=aerr_wait"), false, "", ""},
		{"a permission is asked for", dialog(asker, "Allow Shop to take pictures?", "*While using the app id=permission_allow_foreground_only_button", "*Only this time id=permission_allow_one_time_button", "*Don’t allow id=permission_deny_button"), false, "permission declined", "Don’t allow"},
		{"the same with consent", dialog(asker, "Allow Shop to take pictures?", "*While using the app id=permission_allow_foreground_only_button", "*Don’t allow id=permission_deny_button"), true, "permission granted", "While using the app"},
		{"a permission in Arabic, ids of another maker", dialog("com.miui.securitycenter", "السماح للتطبيق؟", "*السماح", "*رفض"), false, "permission declined", "رفض"},
		{"an app draws a permission dialog itself", dialog("com.shop", "Allow Shop to take pictures?", "*Allow", "*Don't allow"), true, "", ""},
		{"rating", dialog("com.shop", "Rate this app?", "Your opinion helps us.", "*Not now", "*Rate"), false, "rating asked for", "Not now"},
		{"rating in Arabic, with vowel signs", dialog("com.shop", "هل تود تقييم التطبيق؟", "*ليس الآن", "*تقييم"), false, "rating asked for", "ليس الآن"},
		{"rating in Chinese", dialog("com.shop", "给我们评分？", "*以后再说", "*去评分"), false, "rating asked for", "以后再说"},
		{"rating in Russian", dialog("com.shop", "Оцените приложение", "*Не сейчас", "*Оценить"), false, "rating asked for", "Не сейчас"},
		{"an update", dialog("com.shop", "Update available", "*Update", "*Later"), false, "update offered", "Later"},
		{"an update in Spanish", dialog("com.shop", "Nueva versión disponible", "*Actualizar", "*Más tarde"), false, "update offered", "Más tarde"},
		{"an update that cannot be put off", dialog("com.shop", "Update required", "*Update"), false, "", ""},
		{"an offer", dialog("com.shop", "10% off your first order", "*No, thanks", "*Get coupon"), false, "offer made", "No, thanks"},
		{"cookies", dialog("com.shop", "We value your privacy", "This shop uses cookies.", "*Only necessary", "*Accept all"), false, "cookies", "Only necessary"},
		{"cookies that can only be accepted", dialog("com.shop", "This shop uses cookies.", "*Accept all"), false, "", ""},
		{"terms", dialog("com.shop", "Terms of Service", "*Agree", "*Cancel"), false, "", ""},
		{"terms with consent", dialog("com.shop", "Terms of Service", "*Agree", "*Cancel"), true, "terms accepted", "Agree"},
		{"a password to be saved", dialog("com.google.android.gms", "Save password to Google?", "*Not now id=autofill_save_no", "*Save id=autofill_save_yes"), false, "password saving offered", "Not now"},
		{"a question of the app that matters", dialog("com.shop", "Delete the order?", "*Not now", "*Delete"), false, "", ""},
		{"a page that has a button Not now", page(dialog("com.shop", "Rate this app?", "*Not now", "*Rate")), false, "", ""},
		{"a tour", page(dialog("com.shop", "Welcome to the shop", "*Next", "*Skip")), false, "tour of the app", "Skip"},
		{"a tour in Chinese", page(dialog("com.shop", "欢迎使用", "*下一步", "*跳过")), false, "tour of the app", "跳过"},
	} {
		w, e := Find(c.scene, c.consent)
		watcher, press := "", ""
		if w != nil {
			watcher, press = w.Name, e.Text
		}
		if watcher != c.watcher || press != c.press {
			t.Errorf("%s: %q presses %q, want %q, %q", c.name, watcher, press, c.watcher, c.press)
		}
	}
}

func TestWhatIsNoPopupIsLeftAlone(t *testing.T) {
	rating := func() *perception.Scene { return dialog("com.shop", "Rate this app?", "*Not now", "*Rate") }
	for name, s := range map[string]*perception.Scene{
		"locked": func() *perception.Scene { s := rating(); s.Locked = true; return s }(),
		"drawn":  func() *perception.Scene { s := rating(); s.NoTree = perception.NoTreeDrawn; return s }(),
		"a disabled button": func() *perception.Scene {
			s := rating()
			s.Elements[1].Enabled = false
			return s
		}(),
		"a text that reads like a button": dialog("com.shop", "Rate this app?", "Not now"),
		"many elements": func() *perception.Scene {
			return dialog("com.shop", append(slices.Repeat([]string{"rate us"}, maxElements), "*Not now")...)
		}(),
		"a page to sign in": func() *perception.Scene {
			s := page(dialog("com.shop", "Welcome", "Name", "*Next", "*Skip"))
			s.Elements[1].Editable = true
			return s
		}(),
		"a field that holds such a text": func() *perception.Scene {
			s := rating()
			s.Elements[1].Editable = true
			return s
		}(),
		"nothing": {Width: 1080, Height: 2400},
	} {
		if w, _ := Find(s, true); w != nil {
			t.Errorf("%s: %s", name, w.Name)
		}
	}
}

func TestAPopupDoesNotSpanTheScreen(t *testing.T) {
	span := func(height int, bars ...perception.Element) *perception.Scene {
		s := dialog("com.shop", "Rate this app?", "*Not now")
		s.Elements[0].Bounds = image.Rect(100, 200, 980, 260)
		s.Elements[1].Bounds = image.Rect(100, 260, 980, 200+height)
		s.Elements = append(s.Elements, bars...)
		return s
	}
	const most = 2400 * maxSpan / 100
	status := perception.Element{Package: "com.android.systemui", Bounds: image.Rect(0, 0, 1080, 150)}
	navigation := perception.Element{Package: "com.android.systemui", Bounds: image.Rect(0, 2250, 1080, 2400)}
	for _, c := range []struct {
		name  string
		scene *perception.Scene
		want  bool
	}{
		{"the most", span(most), true},
		{"more", span(most + 1), false},
		{"under a status bar", span(most, status), true},
		{"above a navigation bar", span(most, navigation), true},
		{"with an app's own bar", span(most, perception.Element{Package: "com.shop", Bounds: navigation.Bounds}), false},
	} {
		if w, _ := Find(c.scene, false); (w != nil) != c.want {
			t.Errorf("%s: found %t", c.name, w != nil)
		}
	}
}

// TestNoWatcherConsents: only those that say so may press what accepts something.
func TestNoWatcherConsents(t *testing.T) {
	accepting := []string{
		"allow", "agree", "accept", "accept all", "ok", "yes", "continue", "while using the app", "only this time", "turn on", "update", "rate", "install", "buy", "pay",
		"允许", "同意", "接受", "全部接受", "确定", "继续", "更新", "许可", "السماح", "موافق", "قبول", "قبول الكل", "نعم", "متابعة", "تحديث",
		"permitir", "aceptar", "autoriser", "accepter", "zulassen", "akzeptieren", "zustimmen", "aceitar", "разрешить", "принять", "許可", "同意する", "허용", "동의",
	}
	ids := []string{"allow", "accept", "agree", "yes", "positive", "button1", "permission_allow", "save_yes"}
	names := map[string]bool{}
	for _, w := range watchers {
		if names[w.Name] {
			t.Errorf("two watchers %q", w.Name)
		}
		names[w.Name] = true
		if len(w.IDs)+len(w.Buttons) == 0 {
			t.Errorf("%s presses nothing", w.Name)
		}
		if len(w.Packages) == 0 && len(w.Says) == 0 {
			t.Errorf("%s knows its popup by its button alone, in any app", w.Name)
		}
		for _, text := range slices.Concat(w.Says, w.Buttons) {
			if text != fold(text) {
				t.Errorf("%s: %q is not folded, it reads %q", w.Name, text, fold(text))
			}
		}
		for _, b := range w.Buttons {
			if !w.Consent && slices.Contains(accepting, b) {
				t.Errorf("%s presses %q, which accepts", w.Name, b)
			}
		}
		for _, id := range w.IDs {
			for _, bad := range ids {
				// The one button of the warning about old apps accepts nothing: it closes it.
				if !w.Consent && strings.Contains(id, bad) && w.Name != "made for an older Android" {
					t.Errorf("%s presses %q, which accepts", w.Name, id)
				}
			}
		}
	}
}
