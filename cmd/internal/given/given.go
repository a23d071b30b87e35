// Package given checks the words that a command was given.
package given

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
)

// NoEmpty refuses words without content, such as a shell's variable that is not set gives. Where a word narrows an order, as
// --rack and --skill do, the order would go to everybody, or may do everything. The path is that of kong's
// Parse. A field whose tag has blank:"" takes an empty word.
func NoEmpty(path []*kong.Path) error {
	for _, p := range path {
		v := p.Positional
		if p.Flag != nil {
			v = p.Flag.Value
		}
		if v != nil && !v.Tag.Has("blank") && empty(v.Target) {
			return fmt.Errorf("%s is empty: give it a value, or leave it out", v.ShortSummary())
		}
	}
	return nil
}

func empty(v reflect.Value) bool {
	if words, ok := v.Interface().([]string); ok {
		return len(words) == 0 || slices.Contains(words, "") // kong makes no words of an empty one
	}
	return v.Kind() == reflect.String && v.Len() == 0
}
