package appium

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"phonerack/agent/phone"
)

// Bounds of a tree; the server goes to 100 levels.
const (
	maxLevels  = 600
	maxWindows = 100
)

// systemUI is the package of the status bar, whose clock runs on by itself.
const systemUI = "com.android.systemui"

// window is a child of the root.
type window struct {
	from, to int // bytes in the tree
	pkg      string
}

// fingerprint sums up what is on the screen, the system's own windows apart.
func fingerprint(xml []byte, windows []window) [sha256.Size]byte {
	sum := sha256.New()
	for _, w := range windows {
		if w.pkg != systemUI {
			sum.Write(xml[w.from:w.to])
		}
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// layOut finds the windows, the highest first. It accepts what the server writes:
// a declaration, elements with attributes, white space; nothing else.
func layOut(xml []byte) ([]window, error) {
	l := &layout{}
	pos, level, done := 0, 0, false
	for {
		skip := bytes.IndexByte(xml[pos:], '<')
		text := xml[pos:]
		if skip >= 0 {
			text = xml[pos : pos+skip]
		}
		if len(bytes.TrimSpace(text)) > 0 {
			return nil, fmt.Errorf("text at byte %d: %w", pos, phone.ErrMalformed)
		}
		if skip < 0 {
			break
		}
		pos += skip
		end := tagEnd(xml, pos)
		if end < 0 {
			return nil, fmt.Errorf("%d bytes: %w", len(xml), phone.ErrTruncated)
		}
		tag := xml[pos:end]
		switch {
		case tag[1] == '?' && level == 0 && l.head == 0:
		case tag[1] == '/':
			if level--; level < 0 {
				return nil, fmt.Errorf("end tag at byte %d: %w", pos, phone.ErrMalformed)
			}
			if level == 1 {
				l.windows[len(l.windows)-1].to = end
			}
			done = level == 0
		default:
			if err := l.element(tag, pos, level); err != nil {
				return nil, err
			}
			if tag[len(tag)-2] != '/' {
				level++
			} else {
				done = level == 0
			}
		}
		if level > maxLevels || len(l.windows) > maxWindows {
			return nil, fmt.Errorf("more than %d levels or %d windows: %w", maxLevels, maxWindows, phone.ErrTooLarge)
		}
		pos = end
	}
	switch {
	case l.head == 0:
		return nil, fmt.Errorf("no hierarchy: %w", phone.ErrMalformed)
	case !done:
		return nil, fmt.Errorf("%d bytes without </hierarchy>: %w", len(xml), phone.ErrTruncated)
	}
	if len(l.windows) == 0 {
		return nil, phone.ErrNoRoot
	}
	return l.windows, nil
}

// layout is a tree as a list of windows.
type layout struct {
	head    int // end of the root's start tag
	windows []window
}

// element takes the start tag at byte from.
func (l *layout) element(tag []byte, from, level int) error {
	name, _, _ := bytes.Cut(bytes.TrimRight(tag[1:len(tag)-1], "/"), []byte(" "))
	if len(name) == 0 || name[0] == '!' || level == 0 && (string(name) != "hierarchy" || l.head != 0) {
		return fmt.Errorf("element %s at byte %d: %w", excerpt(string(name)), from, phone.ErrMalformed)
	}
	switch level {
	case 0:
		l.head = from + len(tag)
	case 1:
		l.windows = append(l.windows, window{from: from, to: from + len(tag), pkg: string(attribute(tag, "package"))})
	}
	return nil
}

// tagEnd returns where the tag that begins at from ends, -1 if it does not. A
// quoted value may hold '>'.
func tagEnd(xml []byte, from int) int {
	var quote byte
	for i := from + 1; i < len(xml); i++ {
		switch c := xml[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>' && i > from+1:
			return i + 1
		case c == '<' || c == '>':
			return -1
		}
	}
	return -1
}

// attribute returns the raw value of an attribute, nil if the tag has none.
func attribute(tag []byte, name string) []byte {
	for {
		_, rest, ok := bytes.Cut(tag, []byte(" "))
		if !ok {
			return nil
		}
		key, value, ok := bytes.Cut(rest, []byte("="))
		if !ok || len(value) == 0 {
			return nil
		}
		end := bytes.IndexByte(value[1:], value[0])
		if end < 0 {
			return nil
		}
		if string(bytes.TrimSpace(key)) == name {
			return value[1 : 1+end]
		}
		tag = value[end+2:]
	}
}
