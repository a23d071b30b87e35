package main

import (
	"os"
	"testing"

	"phonerack/agent/document"
	"phonerack/agent/document/documenttest"
)

// TestMain makes the test binary rackd where it is started as the child that reads a document, or by BenchmarkIdleRack.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "render-document" || os.Getenv(asRackd) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRackdReadsDocumentsInAChild(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &document.Reader{Program: []string{program, "render-document"}}
	d, err := r.Read(t.Context(), document.FromBytes("x.pdf", documenttest.Letter([]string{"Hello"})), document.Request{Text: true, Images: true})
	if err != nil || d.Pages[0].Text != "Hello\n" || d.Pages[0].Image == nil {
		t.Errorf("%+v, %v", d, err)
	}
}
