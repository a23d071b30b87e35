package mksh

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// builtin runs inside the shell and returns the status; args[0] is its name.
type builtin func(s *shell, ctx context.Context, args []string) int

// specialBuiltins keep the assignments written before them.
var specialBuiltins = map[string]bool{
	":": true, ".": true, "exec": true, "eval": true, "exit": true, "export": true,
	"return": true, "set": true, "shift": true, "unset": true, "trap": true,
}

// builtins is filled by init, for some of them run others.
var builtins map[string]builtin

func init() {
	ok := func(*shell, context.Context, []string) int { return 0 }
	builtins = map[string]builtin{
		":": ok, "true": ok, "trap": ok, "umask": ok, "ulimit": ok, "alias": ok, "unalias": ok,
		"jobs": ok, "hash": ok, "times": ok, "bg": ok, "fg": ok,
		"false":          func(*shell, context.Context, []string) int { return 1 },
		"cd":             (*shell).cd,
		"pwd":            (*shell).pwd,
		"echo":           (*shell).echo,
		"print":          (*shell).echo,
		"printf":         (*shell).printf,
		"test":           (*shell).test,
		"[":              (*shell).test,
		"exit":           (*shell).exit,
		"return":         (*shell).returnFrom,
		"break":          (*shell).leave,
		"continue":       (*shell).leave,
		"set":            (*shell).setOptions,
		"shift":          (*shell).shift,
		"unset":          (*shell).unset,
		"eval":           (*shell).eval,
		".":              (*shell).dot,
		"source":         (*shell).dot,
		"read":           (*shell).read,
		"wait":           (*shell).wait,
		"type":           (*shell).typeOf,
		"whence":         (*shell).typeOf,
		"command":        (*shell).runCommand,
		"builtin":        (*shell).runCommand,
		"exec":           (*shell).exec,
		"sh":             (*shell).subShell,
		"/system/bin/sh": (*shell).subShell,
		"export":         (*shell).declareArgs,
		"local":          (*shell).declareArgs,
		"readonly":       (*shell).declareArgs,
		"typeset":        (*shell).declareArgs,
	}
}

func (s *shell) cd(_ context.Context, args []string) int {
	to := s.vars["HOME"].value
	switch {
	case len(args) > 2:
		s.say("cd: bad substitution")
		return 1
	case len(args) == 2:
		to = args[1]
	}
	if to == "-" {
		to = s.vars["OLDPWD"].value
		fmt.Fprintln(s.stdout(), to)
	}
	if to == "" {
		to = "/"
	}
	p := s.abs(to)
	info, err := s.sys.Stat(p)
	if err == nil && !info.IsDir() {
		s.say("cd: %s: Not a directory", p)
		return 2
	}
	if err == nil {
		err = s.sys.Access(p, 1)
	}
	if err != nil {
		s.say("cd: %s: %s", p, errText(err))
		return 2
	}
	s.vars["OLDPWD"] = variable{value: s.dir}
	s.dir = p
	return 0
}

func (s *shell) pwd(context.Context, []string) int {
	fmt.Fprintln(s.stdout(), s.dir)
	return 0
}

func number(args []string, otherwise int) int {
	if len(args) < 2 {
		return otherwise
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 1
	}
	return n
}

func (s *shell) exit(_ context.Context, args []string) int {
	s.exiting = true
	return number(args, s.status) & 255
}

func (s *shell) returnFrom(ctx context.Context, args []string) int {
	if s.inFunc == 0 {
		return s.exit(ctx, args)
	}
	s.returning = true
	return number(args, s.status) & 255
}

func (s *shell) leave(_ context.Context, args []string) int {
	if s.loops == 0 {
		s.say("%s: can't %s", args[0], args[0])
		return 0
	}
	n := max(1, min(number(args, 1), s.loops))
	if args[0] == "break" {
		s.breaks = n
	} else {
		s.continues = n
	}
	return 0
}

func (s *shell) setOptions(_ context.Context, args []string) int {
	rest := args[1:]
	for len(rest) > 0 {
		a := rest[0]
		if a == "--" {
			s.params = rest[1:]
			break
		}
		if len(a) < 2 || (a[0] != '-' && a[0] != '+') {
			s.params = rest
			break
		}
		on := a[0] == '-'
		rest = rest[1:]
		for _, f := range a[1:] {
			switch f {
			case 'e':
				s.errExit = on
			case 'u':
				s.noUnset = on
			case 'f':
				s.noGlob = on
			case 'x':
				s.xTrace = on
			case 'o':
				if len(rest) > 0 {
					rest = rest[1:]
				}
			}
		}
	}
	s.configure()
	return 0
}

func (s *shell) shift(_ context.Context, args []string) int {
	n := number(args, 1)
	if n < 0 || n > len(s.params) {
		s.say("shift: nothing to shift")
		return 1
	}
	s.params = s.params[n:]
	return 0
}

func (s *shell) unset(_ context.Context, args []string) int {
	for _, n := range args[1:] {
		switch {
		case n == "-f" || n == "-v":
		case s.vars[n].readOnly:
			s.say("read-only: %s", n)
			return 1
		default:
			delete(s.vars, n)
			delete(s.funcs, n)
		}
	}
	return 0
}

func (s *shell) eval(ctx context.Context, args []string) int {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > maxDepth {
		s.kill()
		return s.status
	}
	file, ok := s.parse(strings.Join(args[1:], " "))
	if !ok {
		return s.status
	}
	s.status = 0
	s.stmts(ctx, file.Stmts)
	return s.status
}

// dot runs a file in this shell.
func (s *shell) dot(ctx context.Context, args []string) int {
	if len(args) < 2 {
		s.say("%s: missing argument", args[0])
		return 1
	}
	src, err := s.readFile(s.abs(args[1]))
	if err != nil {
		s.say("%s: %s: %s", args[0], args[1], errText(err))
		return 1
	}
	return s.eval(ctx, []string{"eval", src})
}

func (s *shell) read(_ context.Context, args []string) int {
	raw := false
	names := args[1:]
	for len(names) > 0 && strings.HasPrefix(names[0], "-") {
		raw = raw || strings.Contains(names[0], "r")
		names = names[1:]
	}
	line, err := readLine(s.stdin(), maxScript)
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	values := expand.ReadFields(s.cfg, line, len(names), raw)
	for i, n := range names {
		v := ""
		if i < len(values) {
			v = values[i]
		}
		if err := s.set(n, v); err != nil {
			s.say("%v", err)
			return 1
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

// wait waits for the jobs of this shell; it ends with the context, too.
func (s *shell) wait(ctx context.Context, _ []string) int {
	done := make(chan struct{}) // closed when the jobs are over
	kids := s.kids
	go func() {
		kids.Wait()
		close(done)
	}()
	select {
	case <-done:
		return 0
	case <-ctx.Done():
		return statusKilled
	}
}

func (s *shell) typeOf(_ context.Context, args []string) int {
	status := 0
	for _, n := range args[1:] {
		if n == "-v" || n == "-p" {
			continue
		}
		if text, ok := s.describe(n); ok {
			fmt.Fprintln(s.stdout(), text)
			continue
		}
		fmt.Fprintf(s.stdout(), "%s not found\n", n)
		status = 127
	}
	return status
}

func (s *shell) describe(n string) (string, bool) {
	if syntax.IsKeyword(n) {
		return n + " is a reserved word", true
	}
	if _, ok := s.funcs[n]; ok {
		return n + " is a function", true
	}
	if _, ok := builtins[n]; ok && n != "sh" {
		return n + " is a shell builtin", true
	}
	if p, ok := s.which(n); ok {
		return n + " is " + p, true
	}
	return "", false
}

// which finds the file of a command.
func (s *shell) which(n string) (string, bool) {
	if n == "sh" {
		return name, true
	}
	if p, ok := s.sys.Which(n); ok {
		return p, true
	}
	if strings.Contains(n, "/") && s.sys.Access(s.abs(n), 1) == nil && !s.isDir(s.abs(n)) {
		return path.Clean(n), true
	}
	return "", false
}

// runCommand is "command": a command by its name, functions left out.
func (s *shell) runCommand(ctx context.Context, args []string) int {
	rest := args[1:]
	if len(rest) > 0 && (rest[0] == "-v" || rest[0] == "-V") {
		status := 0
		for _, n := range rest[1:] {
			switch p, ok := s.which(n); {
			case syntax.IsKeyword(n), s.funcs[n] != nil, builtins[n] != nil && n != "sh":
				fmt.Fprintln(s.stdout(), n)
			case ok:
				fmt.Fprintln(s.stdout(), p)
			default:
				status = 1
			}
		}
		return status
	}
	for len(rest) > 0 && (rest[0] == "--" || rest[0] == "-p") {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return 0
	}
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > maxDepth {
		s.kill()
		return s.status
	}
	if b, ok := builtins[rest[0]]; ok {
		return b(s, ctx, rest)
	}
	return s.external(ctx, rest)
}

// exec replaces the shell by a command.
func (s *shell) exec(ctx context.Context, args []string) int {
	if len(args) == 1 {
		return 0
	}
	status := s.runCommand(ctx, args)
	s.exiting = true
	return status
}

// subShell is the command sh: sh -c script [name args], sh file [args], or the
// script on standard input.
func (s *shell) subShell(ctx context.Context, args []string) int {
	rest := args[1:]
	trace := false
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		flags := rest[0]
		rest = rest[1:]
		trace = trace || strings.Contains(flags, "x")
		if !strings.Contains(flags, "c") {
			continue
		}
		if len(rest) == 0 {
			s.say("-c: requires an argument")
			return 1
		}
		argv := rest[1:]
		if len(argv) == 0 {
			argv = []string{name}
		}
		return s.newScript(ctx, rest[0], argv)
	}
	if len(rest) == 0 {
		src, err := io.ReadAll(io.LimitReader(s.stdin(), maxScript+1))
		if err != nil {
			return 1
		}
		return s.newScript(ctx, string(src), []string{name})
	}
	p := s.abs(rest[0])
	if _, err := s.sys.Stat(p); err != nil {
		s.say("can't open %s: %s", rest[0], errText(err))
		return 127
	}
	return s.scriptFile(ctx, p, rest)
}
