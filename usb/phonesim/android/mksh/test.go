package mksh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// test is the built-in: 0 true, 1 false, 2 not understood.
func (s *shell) test(_ context.Context, args []string) int {
	rest := args[1:]
	if args[0] == "[" {
		if len(rest) == 0 || rest[len(rest)-1] != "]" {
			s.say("[: missing ]")
			return 2
		}
		rest = rest[:len(rest)-1]
	}
	if len(rest) == 0 {
		return 1
	}
	t := &testReader{s: s, args: rest}
	ok, err := t.or(0)
	if err == nil && len(t.args) > 0 {
		err = fmt.Errorf("%s: unexpected operator/operand", t.args[0])
	}
	if err != nil {
		s.say("%s: %v", args[0], err)
		return 2
	}
	if ok {
		return 0
	}
	return 1
}

// testReader reads the arguments of test from the left.
type testReader struct {
	s    *shell
	args []string
}

var errTestEnd = errors.New("missing expression")

func (t *testReader) or(depth int) (bool, error) {
	v, err := t.and(depth)
	for err == nil && len(t.args) > 0 && t.args[0] == "-o" {
		t.args = t.args[1:]
		var w bool
		w, err = t.and(depth)
		v = v || w
	}
	return v, err
}

func (t *testReader) and(depth int) (bool, error) {
	v, err := t.not(depth)
	for err == nil && len(t.args) > 0 && t.args[0] == "-a" {
		t.args = t.args[1:]
		var w bool
		w, err = t.not(depth)
		v = v && w
	}
	return v, err
}

func (t *testReader) not(depth int) (bool, error) {
	if len(t.args) > 1 && t.args[0] == "!" && depth < maxDepth {
		t.args = t.args[1:]
		v, err := t.not(depth + 1)
		return !v, err
	}
	return t.primary(depth)
}

func (t *testReader) primary(depth int) (bool, error) {
	a := t.args
	switch {
	case len(a) == 0:
		return false, errTestEnd
	case len(a) >= 3 && isBinary(a[1]):
		t.args = a[3:]
		return t.s.binaryTest(a[1], a[0], a[2])
	case len(a) > 2 && a[0] == "(" && depth < maxDepth:
		t.args = a[1:]
		v, err := t.or(depth + 1)
		if err != nil {
			return false, err
		}
		if len(t.args) == 0 || t.args[0] != ")" {
			return false, errors.New("missing )")
		}
		t.args = t.args[1:]
		return v, nil
	case len(a) >= 2 && len(a[0]) == 2 && a[0][0] == '-' && strings.Contains(unaryTests, a[0][1:]):
		t.args = a[2:]
		return t.s.unaryTest(a[0], a[1]), nil
	}
	t.args = a[1:]
	return a[0] != "", nil
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

const unaryTests = "abcdefghknopprstuvwxzGLNOSH"

func (s *shell) unaryTest(op, arg string) bool {
	switch op {
	case "-z":
		return arg == ""
	case "-n":
		return arg != ""
	case "-t", "-o":
		return false
	case "-v":
		return s.lookup(arg).IsSet()
	case "-r":
		return s.sys.Access(s.abs(arg), 4) == nil
	case "-w":
		return s.sys.Access(s.abs(arg), 2) == nil
	case "-x":
		return s.sys.Access(s.abs(arg), 1) == nil
	case "-L", "-h":
		info, err := s.sys.Lstat(s.abs(arg))
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	if arg == "" {
		return false
	}
	info, err := s.sys.Stat(s.abs(arg))
	if err != nil {
		return false
	}
	mode := info.Mode()
	switch op {
	case "-e", "-a":
		return true
	case "-f":
		return mode.IsRegular()
	case "-d":
		return mode.IsDir()
	case "-s":
		return info.Size() > 0
	case "-c":
		return mode&fs.ModeCharDevice != 0
	case "-b":
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	case "-p":
		return mode&fs.ModeNamedPipe != 0
	case "-S":
		return mode&fs.ModeSocket != 0
	case "-u":
		return mode&fs.ModeSetuid != 0
	case "-g":
		return mode&fs.ModeSetgid != 0
	case "-k":
		return mode&fs.ModeSticky != 0
	case "-O", "-G":
		return s.sys.Access(s.abs(arg), 2) == nil
	}
	return false
}

func (s *shell) binaryTest(op, a, b string) (bool, error) {
	switch op {
	case "=", "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "<":
		return a < b, nil
	case ">":
		return a > b, nil
	case "-nt", "-ot", "-ef":
		return s.compareFiles(op, a, b), nil
	}
	x, err := strconv.Atoi(strings.TrimSpace(a))
	if err != nil {
		return false, fmt.Errorf("%s: bad number", a)
	}
	y, err := strconv.Atoi(strings.TrimSpace(b))
	if err != nil {
		return false, fmt.Errorf("%s: bad number", b)
	}
	switch op {
	case "-eq":
		return x == y, nil
	case "-ne":
		return x != y, nil
	case "-lt":
		return x < y, nil
	case "-le":
		return x <= y, nil
	case "-gt":
		return x > y, nil
	}
	return x >= y, nil
}

func (s *shell) compareFiles(op, a, b string) bool {
	x, errX := s.sys.Stat(s.abs(a))
	y, errY := s.sys.Stat(s.abs(b))
	switch {
	case op == "-ef":
		return errX == nil && errY == nil && s.abs(a) == s.abs(b)
	case op == "-ot":
		x, y, errX, errY = y, x, errY, errX
	}
	if errX != nil {
		return false
	}
	return errY != nil || x.ModTime().After(y.ModTime())
}

// testClause is [[ ... ]].
func (s *shell) testClause(x syntax.TestExpr) int {
	ok, err := s.evalTest(x)
	switch {
	case err == errReported:
		return 1
	case err != nil:
		s.say("[[: %v", err)
		return 2
	case ok:
		return 0
	}
	return 1
}

func (s *shell) evalTest(x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.Word:
		v, ok := s.literal(x)
		if !ok {
			return false, errReported
		}
		return v != "", nil
	case *syntax.ParenTest:
		return s.evalTest(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			v, err := s.evalTest(x.X)
			return !v, err
		}
		word, ok := x.X.(*syntax.Word)
		if !ok {
			return false, errTestEnd
		}
		v, ok := s.literal(word)
		if !ok {
			return false, errReported
		}
		return s.unaryTest(x.Op.String(), v), nil
	case *syntax.BinaryTest:
		return s.evalBinaryTest(x)
	}
	return false, errTestEnd
}

func (s *shell) evalBinaryTest(x *syntax.BinaryTest) (bool, error) {
	switch x.Op {
	case syntax.AndTest:
		v, err := s.evalTest(x.X)
		if err != nil || !v {
			return false, err
		}
		return s.evalTest(x.Y)
	case syntax.OrTest:
		v, err := s.evalTest(x.X)
		if err != nil || v {
			return v, err
		}
		return s.evalTest(x.Y)
	}
	left, ok1 := x.X.(*syntax.Word)
	right, ok2 := x.Y.(*syntax.Word)
	if !ok1 || !ok2 {
		return false, errTestEnd
	}
	a, ok := s.literal(left)
	if !ok {
		return false, errReported
	}
	switch x.Op {
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		pat, err := expand.Pattern(s.cfg, right)
		if err != nil {
			return false, err
		}
		return match(pat, a) != (x.Op == syntax.TsNoMatch), nil
	}
	b, ok := s.literal(right)
	if !ok {
		return false, errReported
	}
	if !isBinary(x.Op.String()) {
		return false, fmt.Errorf("%s: unexpected operator/operand", x.Op)
	}
	return s.binaryTest(x.Op.String(), a, b)
}
