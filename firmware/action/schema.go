package action

import (
	"encoding/json"
	"reflect"
	"strings"
)

// schemaOf describes an argument struct as JSON Schema: a field without omitempty is required, and its doc tag is its
// description.
func schemaOf[A any]() json.RawMessage {
	type property struct {
		Type        string    `json:"type"`
		Description string    `json:"description,omitempty"`
		Values      *property `json:"additionalProperties,omitempty"`
		Items       *property `json:"items,omitempty"`
	}
	properties, required := map[string]property{}, []string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[A]()) {
		tag := f.Tag.Get("json")
		if f.Anonymous || tag == "" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		p := property{Type: jsonType(f.Type), Description: f.Tag.Get("doc")}
		switch f.Type.Kind() {
		case reflect.Map:
			p.Values = &property{Type: jsonType(f.Type.Elem())}
		case reflect.Slice:
			if f.Type == reflect.TypeFor[json.RawMessage]() { // as it stands
				p.Type = "object"
				break
			}
			p.Items = &property{Type: jsonType(f.Type.Elem())}
		}
		properties[name] = p
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic("action: schema: " + err.Error()) // the types are ours
	}
	return schema
}

func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint32:
		return "integer"
	case reflect.Map:
		return "object"
	case reflect.Slice:
		return "array"
	}
	return "string"
}
