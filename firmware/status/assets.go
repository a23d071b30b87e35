package status

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"

	"phonerack/sync/wire"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/page.css assets/page.js
var assetFiles embed.FS

// pages are the templates, read once.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))
})

// asset is a file of the page. Its name has a hash of its content, so that browsers keep it for ever.
type asset struct {
	kind string
	body []byte
}

var assets = sync.OnceValue(func() map[string]asset {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
	all := map[string]asset{}
	for name := range strings.FieldsSeq("page.css page.js") {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		all[hashed(name, body)] = asset{kinds[path.Ext(name)], body}
	}
	return all
})

func hashed(name string, body []byte) string {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
}

// names are those of the assets with their hashes, by the name without.
var names = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for name := range assets() {
		base, _, _ := strings.Cut(name, "-")
		all[base+path.Ext(name)] = "/static/" + name
	}
	return all
})

// staticName is the address of an asset.
func staticName(name string) string { return names()[name] }

func static(w http.ResponseWriter, r *http.Request) error {
	a, ok := assets()[r.PathValue("file")]
	if !ok {
		return wire.Refuse(wire.PageUnknown, nil)
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return send(w, http.StatusOK, a.body)
}
