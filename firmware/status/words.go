package status

import (
	"embed"
	"fmt"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

//go:embed catalogue/en.toml catalogue/zh.toml
var catalogueFiles embed.FS

// catalogue holds the page's own words of one language, by key.
type catalogue struct {
	Missing string            `toml:"missing"` // stands for an argument that was not given
	Words   map[string]string `toml:"words"`
}

var catalogues = sync.OnceValue(func() map[string]catalogue {
	all := map[string]catalogue{}
	for _, lang := range wire.Languages() {
		b, err := catalogueFiles.ReadFile("catalogue/" + lang + ".toml")
		if err != nil {
			panic(err)
		}
		var c catalogue
		if err := toml.Unmarshal(b, &c); err != nil {
			panic(fmt.Sprintf("catalogue of %s: %v", lang, err))
		}
		all[lang] = c
	}
	return all
})

// say gives the words of a key with its arguments, which come as name and value in turn. A key that is not there is
// shown as it is, so that a word of another version (a state, a rung) is seen too.
func say(lang, key string, args ...any) string {
	c := catalogues()[lang]
	text, ok := c.Words[key]
	if !ok {
		return key
	}
	if len(args) == 0 {
		return text
	}
	named := map[string]any{}
	for i := 0; i+1 < len(args); i += 2 {
		name, _ := args[i].(string)
		named[name] = args[i+1]
	}
	return wire.Fill(text, c.Missing, named)
}

// word is that of one value of a kind: key "kind.value", else the value itself.
func word(lang, kind string, value any) string {
	s := fmt.Sprint(value)
	if text, ok := catalogues()[lang].Words[kind+"."+s]; ok {
		return text
	}
	return s
}

// holder says who has a slot; a person is called by name.
func holder(lang string, h lease.Holder) string {
	switch {
	case h.Kind == lease.Task:
		return say(lang, "holder.task", "task", h.TaskID, "who", h.Who)
	case h.Kind == lease.Recovery && h.Who == lease.Identify:
		return say(lang, "holder.identify")
	case h.Kind == lease.Recovery:
		return say(lang, "holder.recovery")
	}
	return h.Who
}

// span says a length of time roughly, as a person does: the largest unit.
func span(lang string, d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return say(lang, "span.seconds", "n", int(d/time.Second))
	case d < time.Hour:
		return say(lang, "span.minutes", "n", int(d/time.Minute))
	case d < 48*time.Hour:
		return say(lang, "span.hours", "n", int(d/time.Hour))
	}
	return say(lang, "span.days", "n", int(d/(24*time.Hour)))
}

// bytesOf says a size.
func bytesOf(n int64) string {
	const unit = 1 << 10
	value, i := float64(max(0, n)), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for ; value >= unit && i < len(units)-1; i++ {
		value /= unit
	}
	if i == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[i])
	}
	return fmt.Sprintf("%.1f %s", value, units[i])
}
