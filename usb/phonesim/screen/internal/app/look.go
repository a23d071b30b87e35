package app

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// kinds of widgets: Android's class and the look before style and look are applied.
var kinds = map[string]struct {
	class string
	look  Look
}{
	"column":   {"android.widget.LinearLayout", Look{Width: Size{Mode: Fill}}},
	"row":      {"android.widget.LinearLayout", Look{Width: Size{Mode: Fill}, Align: "center"}},
	"frame":    {"android.widget.FrameLayout", Look{Width: Size{Mode: Fill}}},
	"scroll":   {"android.widget.ScrollView", Look{Width: Size{Mode: Fill}, Weight: 1}},
	"list":     {"androidx.recyclerview.widget.RecyclerView", Look{Width: Size{Mode: Fill}, Weight: 1}},
	"toolbar":  {"android.view.ViewGroup", Look{Width: Size{Mode: Fill}, Height: Size{Fixed, 56}, Align: "center", Background: named("toolbar"), Color: named("on_toolbar"), Size: 20}},
	"text":     {"android.widget.TextView", Look{Size: 16, Color: named("text")}},
	"button":   {"android.widget.Button", Look{Height: Size{Fixed, 40}, Padding: Insets{0, 24, 0, 24}, Background: named("primary"), Color: named("on_primary"), Radius: 20, Size: 14, Bold: true, Align: "center", Lines: 1}},
	"edit":     {"android.widget.EditText", Look{Width: Size{Mode: Fill}, Height: Size{Fixed, 52}, Padding: Insets{0, 16, 0, 16}, Background: named("field"), Color: named("text"), Radius: 8, Size: 16, Lines: 1}},
	"image":    {"android.widget.ImageView", Look{Picture: 48}},
	"icon":     {"android.widget.ImageView", Look{Picture: 24, Padding: Insets{12, 12, 12, 12}, Color: named("icon")}},
	"checkbox": {"android.widget.CheckBox", Look{Height: Size{Fixed, 48}, Size: 16, Color: named("text"), Gap: 12}},
	"switch":   {"android.widget.Switch", Look{Height: Size{Fixed, 48}, Size: 16, Color: named("text"), Gap: 12}},
	"tab":      {"androidx.appcompat.app.ActionBar$Tab", Look{Width: Size{Mode: Fill}, Weight: 1, Height: Size{Fixed, 56}, Size: 13, Color: named("text_secondary"), Align: "center", Picture: 24}},
	"spacer":   {"android.view.View", Look{}},
	"spinner":  {"android.widget.ProgressBar", Look{Width: Size{Fixed, 48}, Height: Size{Fixed, 48}, Color: named("primary")}},
	"part":     {},
}

func named(s string) Paint { return Paint{Names: []string{s}} }

// resolveLook lays the kind's defaults, the style and the widget's own look over one another.
func (a *App) resolveLook(w *Widget) error {
	look := kinds[w.Kind].look
	if w.Style != "" {
		n, ok := a.style(w.Style)
		if !ok {
			return fmt.Errorf("unknown style %q", w.Style)
		}
		if err := overlay(&n, &look); err != nil {
			return fmt.Errorf("style %s: %w", w.Style, err)
		}
	}
	if err := overlay(&w.LookNode, &look); err != nil {
		return fmt.Errorf("look: %w", err)
	}
	for _, p := range []*Paint{&look.Background, &look.Color, &look.Border} {
		if err := a.resolvePaint(p); err != nil {
			return err
		}
	}
	for _, f := range []float64{look.MinHeight, look.MaxWidth, look.Weight, look.Gap, look.Radius, look.Elevation, look.Size, look.Picture, float64(look.Lines), float64(look.Columns)} {
		if !(f >= 0 && f <= maxLength) {
			return fmt.Errorf("look: %v is out of range", f)
		}
	}
	if look.Size > 200 || look.Columns > 100 {
		return fmt.Errorf("look: size or columns is out of range")
	}
	w.Look = look
	return nil
}

func overlay(n *yaml.Node, look *Look) error {
	if n.Kind == 0 {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want a map", n.Line)
	}
	return n.Load(look, yaml.WithKnownFields())
}

func (a *App) resolvePaint(p *Paint) error {
	p.Colors = nil
	for _, name := range p.Names {
		c, ok := a.FindColor(name)
		if !ok {
			return fmt.Errorf("unknown colour %q", name)
		}
		p.Colors = append(p.Colors, c.NRGBA)
	}
	return nil
}

// AndroidClass is the class that the widget's node reports.
func (w *Widget) AndroidClass() string {
	switch {
	case w.Class != "":
		return w.Class
	case w.Kind == "icon" && len(w.Tap) > 0:
		return "android.widget.ImageButton"
	case w.Kind == "scroll" && w.Look.Horizontal:
		return "android.widget.HorizontalScrollView"
	}
	return kinds[w.Kind].class
}

// expandToolbar turns up and text into the children that Android's toolbar makes of them.
func (w *Widget) expandToolbar() {
	var first []*Widget
	if w.Up {
		first = append(first, &Widget{
			Kind: "icon", Picture: Template{src: "back"}, Desc: Template{src: "@navigate_up"}, Style: "toolbar_icon",
			Tap: []*Step{{Back: true}},
		})
	}
	if !w.Text.Empty() {
		first = append(first, &Widget{Kind: "text", Text: w.Text, Style: "toolbar_title"})
	}
	w.Children = append(first, w.Children...)
	w.Up, w.Text = false, Template{}
}
