package app

import (
	"image/color"
	"time"

	"go.yaml.in/yaml/v4"
)

// Languages that every text of an app must have.
var Languages = []string{"en", "ar", "zh"}

// System is the package whose texts, styles, colours and pictures every app may use, and which owns the
// windows that the phone itself opens.
const System = "android"

// Launcher is the package of the home screen, SystemUI that of the lock screen.
const (
	Launcher = "com.android.launcher3"
	SystemUI = "com.android.systemui"
)

// App is one app. Its files are merged: each may hold any of the maps.
type App struct {
	Package   string               `yaml:"package"`
	Activity  string               `yaml:"activity"` // ".MainActivity"
	Version   string               `yaml:"version"`
	Label     Template             `yaml:"label"`
	Icon      string               `yaml:"icon"`   // picture
	Hidden    bool                 `yaml:"hidden"` // no icon on the home screen
	User      bool                 `yaml:"user"`   // hidden, but no part of the system
	Requests  []string             `yaml:"permissions"`
	Start     string               `yaml:"start"` // screen
	Colors    map[string]Color     `yaml:"colors"`
	Styles    map[string]yaml.Node `yaml:"styles"`
	Texts     map[string]Words     `yaml:"texts"`
	Variables map[string]Value     `yaml:"variables"`
	Lists     map[string]*List     `yaml:"lists"`
	Pictures  map[string]*Picture  `yaml:"pictures"`
	Parts     map[string]*Widget   `yaml:"parts"`
	Screens   map[string]*Screen   `yaml:"screens"`
	Dialogs   map[string]*Screen   `yaml:"dialogs"`

	system *App // nil for the system package itself
	blank  bool
	file   map[string]string
}

// Words is a text of the app per language; each is a template.
type Words map[string]*Template

// Screen is one window of an app: an activity's content, or a dialog.
type Screen struct {
	Name       string           `yaml:"-"`
	Activity   string           `yaml:"activity"`   // default: the app's
	Args       []string         `yaml:"args"`       // what go or open must give
	Variables  map[string]Value `yaml:"variables"`  // fresh each time the screen opens
	Background Paint            `yaml:"background"` // default: the colour "background"
	StatusBar  Paint            `yaml:"status_bar"` // default: the colour "status_bar"
	Keyboard   string           `yaml:"keyboard"`   // "cover" (default), "resize" or "none"
	Focus      string           `yaml:"focus"`      // id of the edit that has the focus when the screen opens
	Title      Template         `yaml:"title"`      // of a system dialog's window
	Package    string           `yaml:"package"`    // of a system dialog: whose window it is; default: the system's
	Secure     bool             `yaml:"secure"`     // FLAG_SECURE: screenshots are black
	Cancelable *bool            `yaml:"cancelable"` // dialogs: BACK and a tap outside dismiss it; default true
	Enter      []*Step          `yaml:"enter"`
	SwipeUp    []*Step          `yaml:"swipe_up"` // where nothing scrolls
	Root       *Widget          `yaml:"root"`

	Dialog bool `yaml:"-"`
}

// Widget is a node of a screen's tree.
type Widget struct {
	Kind     string          `yaml:"widget"`
	ID       string          `yaml:"id"`
	Class    string          `yaml:"class"`
	Text     Template        `yaml:"text"`
	Desc     Template        `yaml:"desc"`
	Hint     Template        `yaml:"hint"`
	When     Expr            `yaml:"when"`
	Enabled  Expr            `yaml:"enabled"`
	Checked  Expr            `yaml:"checked"`
	Selected Expr            `yaml:"selected"`
	Value    Expr            `yaml:"value"` // variable or field that an edit, checkbox or switch holds
	Password bool            `yaml:"password"`
	Leaf     bool            `yaml:"leaf"` // accessibility sees the widget, not what is in it
	IME      string          `yaml:"ime"`  // label of ENTER: done, search, send, go, next
	Picture  Template        `yaml:"picture"`
	Tint     Template        `yaml:"tint"`
	Up       bool            `yaml:"up"` // toolbar: with a "Navigate up" button
	List     Expr            `yaml:"list"`
	Where    Expr            `yaml:"where"`
	As       string          `yaml:"as"` // name of the item in Item; default "item"
	Item     *Widget         `yaml:"item"`
	None     *Widget         `yaml:"none"` // shown instead when the list shows no item
	Bottom   bool            `yaml:"bottom"`
	Part     string          `yaml:"part"`
	With     map[string]Expr `yaml:"with"`
	Tap      []*Step         `yaml:"tap"`
	Long     []*Step         `yaml:"long_press"`
	Double   []*Step         `yaml:"double_tap"`
	Submit   []*Step         `yaml:"submit"`
	Change   []*Step         `yaml:"change"`
	Style    string          `yaml:"style"`
	LookNode yaml.Node       `yaml:"look"`
	Children []*Widget       `yaml:"children"`

	Look Look `yaml:"-"` // defaults of the kind, style and look put together
}

// Step is one thing that an app does. Exactly one of its verbs is set; With belongs to Go, Replace and
// Open, Then and Else to If, Quiet to Delay.
type Step struct {
	Go        string          `yaml:"go"`
	Replace   string          `yaml:"replace"`
	Open      string          `yaml:"open"`
	With      map[string]Expr `yaml:"with"`
	Back      bool            `yaml:"back"`
	Home      bool            `yaml:"home"` // back to the start screen of the app
	Dismiss   bool            `yaml:"dismiss"`
	Set       map[string]Expr `yaml:"set"`
	Add       *Add            `yaml:"add"`
	Remove    *Remove         `yaml:"remove"`
	Delay     Duration        `yaml:"delay"`
	Quiet     bool            `yaml:"quiet"`
	Journal   Template        `yaml:"journal"`
	Launch    Expr            `yaml:"launch"`
	Stop      Expr            `yaml:"stop"`
	Unlock    Expr            `yaml:"unlock"` // the lock screen: tries a PIN
	Ask       string          `yaml:"ask"`    // dialog of the system
	Grant     *Grant          `yaml:"grant"`
	Crash     bool            `yaml:"crash"`
	Focus     string          `yaml:"focus"`
	Hide      bool            `yaml:"hide_keyboard"`
	If        Expr            `yaml:"if"`
	Then      []*Step         `yaml:"then"`
	Else      []*Step         `yaml:"else"`
	ScrollEnd string          `yaml:"scroll_end"` // id of a list or scroll

	Assignments []Assignment `yaml:"-"`
}

// Assignment is one line of a set step.
type Assignment struct{ Target, Value Expr }

// Add appends an item to a list. With Key, an item whose field Key equals the new one's is not added
// again: its field Bump grows by the new one's.
type Add struct {
	To   Expr            `yaml:"to"`
	Item map[string]Expr `yaml:"item"`
	Key  string          `yaml:"key"`
	Bump string          `yaml:"bump"`
}

// Grant gives an app a permission. Both are expressions.
type Grant struct {
	To         Expr `yaml:"to"`
	Permission Expr `yaml:"permission"`
}

// Remove deletes the items of a list for which Where holds; all, if Where is empty.
type Remove struct {
	From  Expr `yaml:"from"`
	Where Expr `yaml:"where"`
}

// Size of a widget along one axis.
type Size struct {
	Mode SizeMode
	DP   float64
}

// SizeMode says how a Size is meant.
type SizeMode uint8

// Modes of a Size.
const (
	Wrap  SizeMode = iota + 1 // as large as the content
	Fill                      // as large as the parent allows
	Fixed                     // DP
)

// Insets in dp. Start is the right side in a right-to-left language.
type Insets struct{ Top, End, Bottom, Start float64 }

// Look is how a widget is drawn. Lengths are dp, text sizes sp (which is dp here).
type Look struct {
	Width      Size    `yaml:"width"`
	Height     Size    `yaml:"height"`
	MinHeight  float64 `yaml:"min_height"`
	MaxWidth   float64 `yaml:"max_width"`
	Weight     float64 `yaml:"weight"`
	Padding    Insets  `yaml:"padding"`
	Margin     Insets  `yaml:"margin"`
	Gap        float64 `yaml:"gap"`
	Align      string  `yaml:"align"`   // children across the axis, or the text: start center end
	Justify    string  `yaml:"justify"` // children along the axis: start center end between
	Place      string  `yaml:"place"`   // in a frame: "top start", "center", "bottom end", ...
	Background Paint   `yaml:"background"`
	Color      Paint   `yaml:"color"`
	Border     Paint   `yaml:"border"`
	Radius     float64 `yaml:"radius"`
	Elevation  float64 `yaml:"elevation"`
	Size       float64 `yaml:"size"`
	Bold       bool    `yaml:"bold"`
	Strike     bool    `yaml:"strike"`
	Lines      int     `yaml:"lines"` // most lines of a text; 0: no limit
	Picture    float64 `yaml:"picture"`
	Divider    bool    `yaml:"divider"`
	Columns    int     `yaml:"columns"`
	Horizontal bool    `yaml:"horizontal"`
}

// Color is red, green, blue and alpha, written "#rrggbb" or "#rrggbbaa".
type Color struct{ color.NRGBA }

// Paint is a colour by name or value, or two of them for a vertical gradient.
type Paint struct {
	Names  []string
	Colors []color.NRGBA // same length, after the check
}

// Duration is written "1500ms" or "2s".
type Duration struct{ time.Duration }

// Value of a variable as a file declares it.
type Value struct{ V any }

// Picture is a drawing on a square grid.
type Picture struct {
	Size   float64  `yaml:"size"` // of the grid; default 24
	Mirror bool     `yaml:"mirror"`
	Shapes []*Shape `yaml:"shapes"`
}

// Shape is one part of a picture: exactly one of Rect, Circle, Ellipse and Path, filled or stroked.
type Shape struct {
	Fill    string    `yaml:"fill"`   // colour, or "tint"
	Stroke  string    `yaml:"stroke"` // colour, or "tint"
	Width   float64   `yaml:"width"`  // of the stroke, default 2
	Rect    []float64 `yaml:"rect"`   // x, y, width, height
	Radius  float64   `yaml:"radius"`
	Circle  []float64 `yaml:"circle"`  // x, y, radius
	Ellipse []float64 `yaml:"ellipse"` // x, y, horizontal and vertical radius
	Path    string    `yaml:"path"`    // SVG path data with M L H V C Q Z, absolute or relative

	Segments []Segment   `yaml:"-"`
	Ink      color.NRGBA `yaml:"-"`
	Tinted   bool        `yaml:"-"`
}

// Segment of an outline. Op is 'M', 'L', 'Q', 'C' or 'Z'; P holds the points that it needs.
type Segment struct {
	Op byte
	P  [3][2]float64
}
