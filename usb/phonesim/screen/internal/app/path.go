package app

import (
	"fmt"
	"strconv"
)

// kappa places the control points of a cubic that draws a quarter of a circle.
const kappa = 0.5522847498

// Ellipse is a closed outline around (x, y), drawn clockwise on a screen.
func Ellipse(x, y, rx, ry float64) []Segment {
	kx, ky := rx*kappa, ry*kappa
	return []Segment{
		{'M', [3][2]float64{{x + rx, y}}},
		{'C', [3][2]float64{{x + rx, y + ky}, {x + kx, y + ry}, {x, y + ry}}},
		{'C', [3][2]float64{{x - kx, y + ry}, {x - rx, y + ky}, {x - rx, y}}},
		{'C', [3][2]float64{{x - rx, y - ky}, {x - kx, y - ry}, {x, y - ry}}},
		{'C', [3][2]float64{{x + kx, y - ry}, {x + rx, y - ky}, {x + rx, y}}},
		{Op: 'Z'},
	}
}

// RoundRect is a closed outline with corners of radius r.
func RoundRect(x, y, w, h, r float64) []Segment {
	r = max(0, min(r, w/2, h/2))
	k := r * (1 - kappa)
	return []Segment{
		{'M', [3][2]float64{{x + r, y}}},
		{'L', [3][2]float64{{x + w - r, y}}},
		{'C', [3][2]float64{{x + w - k, y}, {x + w, y + k}, {x + w, y + r}}},
		{'L', [3][2]float64{{x + w, y + h - r}}},
		{'C', [3][2]float64{{x + w, y + h - k}, {x + w - k, y + h}, {x + w - r, y + h}}},
		{'L', [3][2]float64{{x + r, y + h}}},
		{'C', [3][2]float64{{x + k, y + h}, {x, y + h - k}, {x, y + h - r}}},
		{'L', [3][2]float64{{x, y + r}}},
		{'C', [3][2]float64{{x, y + k}, {x + k, y}, {x + r, y}}},
		{Op: 'Z'},
	}
}

// coordinates that each path command takes.
var pathArgs = map[byte]int{'M': 2, 'L': 2, 'H': 1, 'V': 1, 'Q': 4, 'C': 6, 'Z': 0}

// maxSegments bounds a path's length.
const maxSegments = 2000

// ParsePath reads SVG path data with the commands M L H V Q C Z, absolute or relative.
func ParsePath(src string) ([]Segment, error) {
	var (
		out        []Segment
		x, y       float64 // pen
		startX     float64
		startY     float64
		cmd        byte
		rest       = src
		pathErr    = func(what string) error { return fmt.Errorf("path %q: %s", src, what) }
		skipSpaces = func() {
			for rest != "" && (rest[0] == ' ' || rest[0] == ',' || rest[0] == '\n') {
				rest = rest[1:]
			}
		}
	)
	for skipSpaces(); rest != ""; skipSpaces() {
		if c := rest[0] &^ 0x20; c >= 'A' && c <= 'Z' {
			cmd, rest = rest[0], rest[1:]
			if _, ok := pathArgs[c]; !ok {
				return nil, pathErr("unknown command " + string(cmd))
			}
		} else if cmd == 0 || cmd&^0x20 == 'Z' {
			return nil, pathErr("number without a command")
		}
		upper := cmd &^ 0x20
		if len(out) == 0 && upper != 'M' {
			return nil, pathErr("does not begin with M")
		}
		if len(out) > maxSegments {
			return nil, pathErr("too long")
		}
		var v [6]float64
		for i := range pathArgs[upper] {
			skipSpaces()
			n := numberPrefix(rest)
			f, err := strconv.ParseFloat(rest[:n], 64)
			if err != nil || f > maxLength || f < -maxLength {
				return nil, pathErr("bad or missing number")
			}
			v[i], rest = f, rest[n:]
		}
		if cmd != upper { // relative
			for i := range v {
				switch {
				case upper == 'V' || upper != 'H' && i%2 == 1:
					v[i] += y
				default:
					v[i] += x
				}
			}
		}
		s := Segment{Op: upper}
		switch upper {
		case 'Z':
			x, y = startX, startY
		case 'H':
			s.Op, x = 'L', v[0]
			s.P[0] = [2]float64{x, y}
		case 'V':
			s.Op, y = 'L', v[0]
			s.P[0] = [2]float64{x, y}
		default:
			n := pathArgs[upper]
			for i := 0; i < n; i += 2 {
				s.P[i/2] = [2]float64{v[i], v[i+1]}
			}
			x, y = v[n-2], v[n-1]
			if upper == 'M' {
				startX, startY = x, y
				cmd ^= 'M' ^ 'L' // further pairs are lines
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// numberPrefix returns how many bytes of s are one number.
func numberPrefix(s string) int {
	dot := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
		case c == '.' && !dot:
			dot = true
		case i == 0 && c == '-':
		default:
			return i
		}
	}
	return len(s)
}
