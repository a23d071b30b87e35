package api

import (
	_ "embed"
	"encoding/json"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openAPISource []byte

// openAPI is the description as JSON.
var openAPI = sync.OnceValues(func() ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(openAPISource, &doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
})
