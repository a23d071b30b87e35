package board

import (
	"embed"
	"slices"
	"strings"
)

//go:embed boards/*.toml
var models embed.FS

// Models names the boards that phonerack knows; a board file builds upon one with model = "...".
func Models() []string {
	entries, err := models.ReadDir("boards")
	if err != nil {
		return nil // the folder is in the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// Model gives the text of a known board's file.
func Model(name string) ([]byte, bool) {
	if !slices.Contains(Models(), name) {
		return nil, false
	}
	data, err := models.ReadFile("boards/" + name + ".toml")
	return data, err == nil
}
