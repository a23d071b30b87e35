// Package table prints what rackctl and rackcloud tell people: aligned columns, on terminals that nothing in a cell may control.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Table prints aligned columns.
type Table struct{ w *tabwriter.Writer }

// New begins a table with its headings.
func New(w io.Writer, headings ...string) Table {
	t := Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.Row(headings...)
	return t
}

// Row adds a row; an empty cell is shown as a dash.
func (t Table) Row(cells ...string) {
	for i, c := range cells {
		if cells[i] = Plain(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// Flush prints the rows.
func (t Table) Flush() error { return t.w.Flush() }

// Plain drops what would move the cursor or colour the terminal: names come from phones.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
