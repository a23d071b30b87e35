package render_test

import (
	"errors"
	"slices"
	"testing"

	"phonerack/agent/document"
	"phonerack/agent/document/documenttest"
	"phonerack/agent/document/render"
)

func FuzzKind(f *testing.F) {
	f.Add([]byte("junk %PDF-1.7"))
	f.Add([]byte("<?xml version='1.0'?><!-- > --><!DOCTYPE svg><svg/>"))
	f.Add(documenttest.Zip(documenttest.File{Name: "mimetype", Text: "application/epub+zip"}, documenttest.File{Name: "1.png"}))
	f.Fuzz(func(t *testing.T, text []byte) {
		kind, rest, err := render.KindOf(text)
		if (err == nil) != slices.Contains(document.Kinds(), kind) || len(rest) > len(text) || err != nil && errors.Unwrap(err) != nil {
			t.Errorf("%q, %d of %d bytes, %v", kind, len(rest), len(text), err)
		}
	})
}
