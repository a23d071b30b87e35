package toybox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

func translate(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("dsc")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		return e.fail("Needs 1 argument")
	}
	from := charSet(args[0])
	if has(opts, 'c') {
		var rest []byte
		for c := range 256 {
			if bytes.IndexByte(from, byte(c)) < 0 {
				rest = append(rest, byte(c))
			}
		}
		from = rest
	}
	var to []byte
	if len(args) > 1 {
		to = charSet(args[1])
	}
	var table [256]int
	for c := range table {
		table[c] = c
	}
	for i, c := range from {
		switch {
		case has(opts, 'd'):
			table[c] = -1
		case len(to) > 0:
			table[c] = int(to[min(i, len(to)-1)])
		}
	}
	squeeze := from
	if len(to) > 0 {
		squeeze = to
	}
	last := -1
	buf := make([]byte, 32<<10)
	for {
		n, err := contextReader{ctx, e.Stdin}.Read(buf)
		out := buf[:0]
		for _, c := range buf[:n] {
			t := table[c]
			if t < 0 || has(opts, 's') && t == last && bytes.IndexByte(squeeze, byte(t)) >= 0 {
				continue
			}
			last = t
			out = append(out, byte(t))
		}
		if _, werr := e.Stdout.Write(out); werr != nil {
			return 1
		}
		if err == io.EOF {
			return 0
		}
		if err != nil {
			return 1
		}
	}
}

// charSet reads "a-z", "\n" and [:upper:].
func charSet(text string) []byte {
	for name, chars := range map[string]string{
		"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z",
		"[:alnum:]": "0-9A-Za-z", "[:space:]": " \\t-\\r",
	} {
		text = strings.ReplaceAll(text, name, chars)
	}
	var set []byte
	for i := 0; i < len(text); {
		c, n := setChar(text[i:])
		i += n
		if i+1 < len(text) && text[i] == '-' {
			end, n := setChar(text[i+1:])
			i += 1 + n
			for v := int(c); v <= int(end); v++ {
				set = append(set, byte(v))
			}
			continue
		}
		set = append(set, c)
	}
	return set
}

func setChar(text string) (byte, int) {
	if text[0] != '\\' || len(text) == 1 {
		return text[0], 1
	}
	switch text[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case '0':
		return 0, 2
	}
	return text[1], 2
}

func cut(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("d:f:c:b:sD")
	if !ok {
		return 1
	}
	delim := "\t"
	if d := opts['d']; d != "" {
		delim = d[:1]
	}
	spec := opts['f']
	byChar := has(opts, 'c') || has(opts, 'b')
	if byChar {
		spec = opts['c'] + opts['b']
	}
	ranges, err := parseRanges(spec)
	if err != nil {
		return e.fail("%v", err)
	}
	return e.each(ctx, args, func(_ string, r io.Reader) error {
		return lines(ctx, r, func(line string) bool {
			fields := strings.Split(line, delim)
			if byChar {
				delim, fields = "", strings.Split(line, "")
			} else if len(fields) == 1 {
				if !has(opts, 's') {
					e.printf("%s\n", line)
				}
				return false
			}
			var out []string
			for i, f := range fields {
				if slices.ContainsFunc(ranges, func(r [2]int) bool { return i+1 >= r[0] && i+1 <= r[1] }) {
					out = append(out, f)
				}
			}
			e.printf("%s\n", strings.Join(out, delim))
			return false
		})
	})
}

func parseRanges(text string) ([][2]int, error) {
	var list [][2]int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		r := [2]int{1, 1 << 30}
		var err error
		if from != "" {
			r[0], err = strconv.Atoi(from)
		}
		if err == nil && to != "" {
			r[1], err = strconv.Atoi(to)
		}
		if !isRange {
			r[1] = r[0]
		}
		if err != nil || part == "" || part == "-" {
			return nil, fmt.Errorf("bad list '%s'", text)
		}
		list = append(list, r)
	}
	return list, nil
}
