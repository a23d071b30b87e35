package health

import (
	"cmp"
	"embed"
	"maps"
	"strings"
	"sync"

	"phonerack/sync/wire"
)

//go:embed catalogue/en.toml catalogue/zh.toml
var catalogueFiles embed.FS

// catalogue holds what is said in one language.
type catalogue struct {
	Missing  string           `toml:"missing"`  // stands for an argument that was not given
	Nameless string           `toml:"nameless"` // stands for a phone without a serial number of its own
	words                     // of a code of another version
	Finding  map[string]words `toml:"finding"` // by code

	Word map[string]string `toml:"word"` // for arguments that are one of a few
}

// words say a finding: a few words, why, and what to do.
type words struct {
	Title string `toml:"title"`
	Why   string `toml:"why"`
	Do    string `toml:"do"`
}

var catalogues = sync.OnceValue(func() map[string]catalogue { return wire.ReadCatalogues[catalogue](catalogueFiles) })

// Say is the finding in one of wire.Languages, English for another: a few words, an explanation, and a suggested
// action. Each is one line of plain text with its arguments bounded and escaped, as wire.Fill does it.
func (f Finding) Say(lang string) (title, why, do string) {
	c, ok := catalogues()[lang]
	if !ok {
		c = catalogues()["en"]
	}
	w, args := c.Finding[f.Code], f.Args
	if w.Title == "" {
		w, args = c.words, map[string]any{"code": f.Code}
	}
	args = maps.Clone(args)
	if key, ok := args["phone"].(string); ok {
		args["phone"] = c.phone(key)
	}
	switch {
	case f.Code == "quarantined" && args["by"] == ByLadder: // what a person has written stays as it is
		args["by"] = c.word(ByLadder)
		if reason, ok := args["reason"].(string); ok {
			args["reason"] = cmp.Or(c.Finding[reason].Title, reason)
		}
	case f.Code == "database_recovered":
		if outcome, ok := args["outcome"].(string); ok {
			args["outcome"] = c.word(outcome)
		}
	}
	return wire.Fill(w.Title, c.Missing, args), wire.Fill(w.Why, c.Missing, args), wire.Fill(w.Do, c.Missing, args)
}

func (c catalogue) word(of string) string { return cmp.Or(c.Word[of], of) }

// phone is what people call the phone of a record.
func (c catalogue) phone(key string) string {
	if serial, ok := strings.CutPrefix(key, bySerial); ok {
		return serial
	}
	if strings.HasPrefix(key, byPlace) {
		return c.Nameless
	}
	return key
}
