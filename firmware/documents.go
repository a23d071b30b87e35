package firmware

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"phonerack/agent/document"
	"phonerack/sync/wire"
)

// documentText bounds the text that a planner gets of a document, in bytes.
const documentText = 16 << 10

// documents reads documents in a child of this program; it implements tools.Documents.
type documents struct{ reader *document.Reader }

// newDocuments returns nil without a program to start.
func newDocuments(program []string, log *slog.Logger) *documents {
	if len(program) == 0 {
		return nil
	}
	return &documents{&document.Reader{Program: program, Logger: log}}
}

// Read implements tools.Documents.
func (d *documents) Read(ctx context.Context, file io.Reader, name, pages string) (string, error) {
	wanted, err := parsePages(pages)
	if err != nil {
		return "", err
	}
	request := document.Request{Text: true, Metadata: true, Links: true}
	if len(wanted) > 0 {
		request.First, request.Last = wanted[0].first, wanted[len(wanted)-1].last
	}
	doc, err := d.reader.Read(ctx, document.FromReader(name, file), request)
	if doc == nil {
		return "", err
	}
	if len(wanted) > 0 {
		var kept []document.Page
		for _, p := range doc.Pages {
			if inRanges(wanted, p.Number) {
				kept = append(kept, p)
			}
		}
		doc.Pages = kept
	}
	return doc.Text(documentText), err
}

// pageRange is "3" or "3-5", counted from 1.
type pageRange struct{ first, last int }

func inRanges(ranges []pageRange, page int) bool {
	for _, r := range ranges {
		if page >= r.first && page <= r.last {
			return true
		}
	}
	return false
}

const maxPage = 100_000

// parsePages reads "1-3,7": ascending, at most eight parts. "" is no range at all.
func parsePages(s string) ([]pageRange, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	fault := func(format string, args ...any) error {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(format, args...)})
	}
	parts := strings.Split(s, ",")
	if len(parts) > 8 {
		return nil, fault("the pages have more than 8 parts")
	}
	var ranges []pageRange
	last := 0
	for _, part := range parts {
		from, to, both := strings.Cut(strings.TrimSpace(part), "-")
		if !both {
			to = from
		}
		a, errA := strconv.Atoi(strings.TrimSpace(from))
		b, errB := strconv.Atoi(strings.TrimSpace(to))
		if errA != nil || errB != nil || a <= last || b < a || b > maxPage {
			return nil, fault("%.40q are no pages: write them as 1-3,7, counted from 1 and ascending", s)
		}
		ranges, last = append(ranges, pageRange{a, b}), b
	}
	return ranges, nil
}
