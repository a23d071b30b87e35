package mksh

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// echo expands backslashes unless -E is given: mksh's habit, not bash's.
func (s *shell) echo(_ context.Context, args []string) int {
	newline, raw := true, false
	rest := args[1:]
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' && strings.Trim(rest[0][1:], "neEr") == "" {
		for _, f := range rest[0][1:] {
			switch f {
			case 'n':
				newline = false
			case 'e':
				raw = false
			default:
				raw = true
			}
		}
		rest = rest[1:]
	}
	text := strings.Join(rest, " ")
	if !raw {
		var stop bool
		if text, stop = unescape(text); stop {
			newline = false
		}
	}
	if newline {
		text += "\n"
	}
	if _, err := io.WriteString(s.stdout(), text); err != nil {
		s.say("echo: %s", errText(err))
		return 1
	}
	return 0
}

// maxWidth bounds the field width of printf.
const maxWidth = 4096

// printf is toybox's: the format is used again while arguments are left.
func (s *shell) printf(_ context.Context, args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(s.stderr(), "printf: Needs 1 argument")
		return 1
	}
	format, rest := args[1], args[2:]
	status := 0
	for {
		out, used, stop, err := formatOnce(format, rest)
		if _, werr := io.WriteString(s.stdout(), out); werr != nil {
			return 1
		}
		if err != nil {
			fmt.Fprintf(s.stderr(), "printf: %v\n", err)
			status = 1
		}
		rest = rest[used:]
		if stop || used == 0 || len(rest) == 0 {
			return status
		}
	}
}

// formatOnce goes through the format one time.
func formatOnce(format string, args []string) (out string, used int, stop bool, err error) {
	var b strings.Builder
	next := func() string {
		if used < len(args) {
			used++
			return args[used-1]
		}
		return ""
	}
	for i := 0; i < len(format); i++ {
		switch c := format[i]; {
		case c == '\\':
			n := escapeLength(format[i:])
			text, end := unescape(printfEscape(format[i : i+n]))
			b.WriteString(text)
			if end {
				return b.String(), used, true, err
			}
			i += n - 1
		case c != '%':
			b.WriteByte(c)
		case i+1 < len(format) && format[i+1] == '%':
			b.WriteByte('%')
			i++
		default:
			spec, verb, n := directive(format[i:], next)
			if verb == 0 {
				return b.String(), used, true, fmt.Errorf("bad %s@%d", format, i+1)
			}
			i += n - 1
			text, end, e := formatValue(spec, verb, next())
			b.WriteString(text)
			if e != nil {
				err = e
			}
			if end {
				return b.String(), used, true, err
			}
		}
	}
	return b.String(), used, false, err
}

// escapeLength is the length of the backslash sequence at the start of text.
func escapeLength(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	switch c := text[1]; {
	case c >= '0' && c <= '7':
		_, used := octal(text[1:], 4)
		if c != '0' {
			_, used = octal(text[1:], 3)
		}
		return 1 + used
	case c == 'x':
		n := 2
		for n < len(text) && n < 4 && strings.IndexByte("0123456789abcdefABCDEF", text[n]) >= 0 {
			n++
		}
		return n
	}
	return 2
}

// printfEscape turns printf's \123 into echo's \0123 and \" into ".
func printfEscape(seq string) string {
	if len(seq) < 2 {
		return seq
	}
	switch c := seq[1]; {
	case c >= '1' && c <= '7':
		return `\0` + seq[1:]
	case c == '"' || c == '\'':
		return string(c)
	}
	return seq
}

// directive reads "%-08.3d" and gives Go's form without the verb; a verb of 0 is
// an error.
func directive(text string, next func() string) (spec string, verb byte, length int) {
	var b strings.Builder
	b.WriteByte('%')
	digits := 0
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*':
			n, _ := strconv.Atoi(next())
			b.WriteString(strconv.Itoa(max(-maxWidth, min(n, maxWidth))))
		case c >= '0' && c <= '9':
			if digits++; digits > 6 {
				return "", 0, 0
			}
			b.WriteByte(c)
		case strings.IndexByte("-+ #.", c) >= 0:
			b.WriteByte(c)
		case strings.IndexByte("hlLqjzt", c) >= 0:
		case strings.IndexByte("diouxXcsbeEfgG", c) >= 0:
			return b.String(), c, i + 1
		default:
			return "", 0, 0
		}
	}
	return "", 0, 0
}

func formatValue(spec string, verb byte, arg string) (out string, end bool, err error) {
	switch verb {
	case 's':
		return fmt.Sprintf(spec+"s", arg), false, nil
	case 'b':
		text, stop := unescape(arg)
		return fmt.Sprintf(spec+"s", text), stop, nil
	case 'c':
		return fmt.Sprintf(spec+".1s", arg), false, nil
	case 'e', 'E', 'f', 'g', 'G':
		f, ferr := strconv.ParseFloat(orZero(arg), 64)
		if ferr != nil {
			err = fmt.Errorf("bad %q", arg)
		}
		return fmt.Sprintf(spec+string(verb), f), false, err
	}
	n, nerr := integer(arg)
	if nerr != nil {
		err = fmt.Errorf("bad %q", arg)
	}
	if verb == 'i' {
		verb = 'd'
	}
	if verb == 'd' {
		return fmt.Sprintf(spec+"d", n), false, err
	}
	if verb == 'u' {
		verb = 'd'
	}
	return fmt.Sprintf(spec+string(verb), uint64(n)), false, err
}

func orZero(arg string) string {
	if arg == "" {
		return "0"
	}
	return arg
}

// integer reads 12, 0x1f, 017 and 'A (the code of a character).
func integer(arg string) (int64, error) {
	if len(arg) > 1 && (arg[0] == '\'' || arg[0] == '"') {
		return int64([]rune(arg[1:])[0]), nil
	}
	return strconv.ParseInt(orZero(strings.TrimSpace(arg)), 0, 64)
}
