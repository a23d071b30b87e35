package app

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// A value of the expression language is one of: string, float64, bool, Text, *Item, *List.
// A missing name or field is the empty string.

// Text is one sentence in several languages, by language code ("en", "ar", "zh").
type Text map[string]string

// In returns the sentence in lang, or in English, or in whichever language sorts first.
func (t Text) In(lang string) string {
	if s, ok := t[lang]; ok {
		return s
	}
	if s, ok := t["en"]; ok {
		return s
	}
	for _, k := range slices.Sorted(maps.Keys(t)) {
		return t[k]
	}
	return ""
}

// Item is one entry of a list. Screens and steps refer to the same Item, so that a change made in one
// place shows everywhere.
type Item struct {
	Fields map[string]any
}

// Get returns a field, or the empty string.
func (it *Item) Get(name string) any {
	if v, ok := it.Fields[name]; ok {
		return v
	}
	return ""
}

// List is an ordered list of items.
type List struct {
	Items []*Item
	// Shuffle asks NewState to put the items in an order that the seed decides.
	Shuffle bool
}

func (l *List) clone(rng *rand.Rand) *List {
	out := &List{Items: make([]*Item, len(l.Items)), Shuffle: l.Shuffle}
	for i, it := range l.Items {
		out.Items[i] = it.clone(rng)
	}
	if l.Shuffle && rng != nil {
		rng.Shuffle(len(out.Items), func(i, j int) { out.Items[i], out.Items[j] = out.Items[j], out.Items[i] })
	}
	return out
}

func (it *Item) clone(rng *rand.Rand) *Item {
	out := &Item{Fields: make(map[string]any, len(it.Fields))}
	for _, k := range slices.Sorted(maps.Keys(it.Fields)) {
		v := it.Fields[k]
		if l, ok := v.(*List); ok {
			v = l.clone(rng)
		}
		out.Fields[k] = v
	}
	return out
}

// State is what changes while an app runs: its variables and its lists by name.
type State map[string]any

// NewState copies the app's variables and lists as its files declare them. The order of lists marked
// shuffle depends on seed and the app's package only.
func (a *App) NewState(seed int64) State {
	s := make(State, len(a.Variables)+len(a.Lists))
	for k, v := range a.Variables {
		s[k] = v.V
	}
	var salt uint64
	for _, c := range []byte(a.Package) {
		salt = salt*31 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(uint64(seed), salt))
	for _, k := range slices.Sorted(maps.Keys(a.Lists)) {
		s[k] = a.Lists[k].clone(rng)
	}
	return s
}

// Truth is false for false, 0, "" and an empty list.
func Truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case Text:
		return len(v) > 0
	case *Item:
		return v != nil
	case *List:
		return v != nil && len(v.Items) > 0
	}
	return false
}

// String shows a value as a person in lang reads it; items and lists show nothing.
func String(v any, lang string) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case Text:
		return v.In(lang)
	}
	return ""
}

func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	case string:
		f, _ := strconv.ParseFloat(v, 64)
		return f
	case *List:
		return float64(len(v.Items))
	}
	return 0
}
