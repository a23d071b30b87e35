package mksh

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call runs a simple command.
func (s *shell) call(ctx context.Context, c *syntax.CallExpr) (keep bool) {
	s.subst = 0
	args, ok := s.fields(c.Args)
	if !ok {
		return false
	}
	if len(args) == 0 {
		for _, a := range c.Assigns {
			if !s.assign(a, false) {
				return false
			}
		}
		s.status = s.subst
		return false
	}
	saved := map[string]*variable{}
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		n := a.Name.Value
		if _, seen := saved[n]; !seen {
			saved[n] = s.snapshot(n)
		}
		if !s.assign(a, true) {
			s.restore(saved)
			return false
		}
	}
	if s.xTrace {
		io.WriteString(s.stderr(), "+ "+strings.Join(args, " ")+"\n")
	}
	keep = s.invoke(ctx, args)
	if !specialBuiltins[args[0]] {
		s.restore(saved)
	}
	return keep
}

func (s *shell) snapshot(name string) *variable {
	if v, ok := s.vars[name]; ok {
		return &v
	}
	return nil
}

func (s *shell) restore(saved map[string]*variable) {
	for n, v := range saved {
		if v == nil {
			delete(s.vars, n)
			continue
		}
		s.vars[n] = *v
	}
}

// invoke runs a function, a built-in or a command of the system.
func (s *shell) invoke(ctx context.Context, args []string) (keep bool) {
	if body, ok := s.funcs[args[0]]; ok {
		s.function(ctx, body, args[1:])
		return false
	}
	if b, ok := builtins[args[0]]; ok {
		s.status = b(s, ctx, args)
		return args[0] == "exec" && len(args) == 1
	}
	s.status = s.external(ctx, args)
	return false
}

func (s *shell) function(ctx context.Context, body *syntax.Stmt, args []string) {
	params := s.params
	s.params = args
	s.depth++
	s.inFunc++
	s.locals = append(s.locals, map[string]*variable{})
	s.stmt(ctx, body)
	if n := len(s.locals); n > 0 {
		s.restore(s.locals[n-1])
		s.locals = s.locals[:n-1]
	}
	s.inFunc--
	s.depth--
	s.params = params
	s.returning = false
}

// external runs what is not part of the shell: a command of the system, or a file.
func (s *shell) external(ctx context.Context, args []string) int {
	if _, ok := s.sys.Which(args[0]); ok {
		return s.sys.Exec(ctx, s.process(args))
	}
	if !strings.Contains(args[0], "/") {
		s.say("%s: %s", args[0], s.notFound)
		return 127
	}
	p := s.abs(args[0])
	info, err := s.sys.Stat(p)
	if err != nil {
		s.say("%s: %s", args[0], s.notFound)
		return 127
	}
	if info.IsDir() {
		s.say("%s: can't execute: Is a directory", args[0])
		return 126
	}
	if s.sys.Access(p, 1) != nil {
		s.say("%s: can't execute: Permission denied", args[0])
		return 126
	}
	return s.scriptFile(ctx, p, args)
}

func (s *shell) process(args []string) *Process {
	return &Process{
		Args: args, Dir: s.dir, Stdin: s.stdin(), Stdout: s.stdout(), Stderr: s.stderr(),
		Getenv: func(n string) string {
			if v := s.vars[n]; v.exported {
				return v.value
			}
			return ""
		},
		Environ: s.environ,
		Run: func(ctx context.Context, args []string, env ...string) int {
			if len(args) == 0 {
				return 0
			}
			sub := s.fork(ctx)
			for _, kv := range env {
				n, v, _ := strings.Cut(kv, "=")
				sub.vars[n] = variable{value: v, exported: true}
			}
			if sub.depth > maxDepth {
				return statusKilled
			}
			sub.invoke(ctx, args)
			return sub.status
		},
	}
}

func (s *shell) environ() []string {
	var list []string
	for n, v := range s.vars {
		if v.exported {
			list = append(list, n+"="+v.value)
		}
	}
	slices.Sort(list)
	return list
}

// scriptFile runs a file as a script in a new shell.
func (s *shell) scriptFile(ctx context.Context, p string, args []string) int {
	src, err := s.readFile(p)
	if err != nil {
		s.say("%s: %s", args[0], errText(err))
		return 126
	}
	if strings.HasPrefix(src, "\x7fELF") || strings.IndexByte(src, 0) >= 0 {
		s.say("%s: not executable: 64-bit ELF file", args[0])
		return 126
	}
	return s.newScript(ctx, src, args)
}

// newScript runs a program in a shell that inherits the exported variables only.
func (s *shell) newScript(ctx context.Context, src string, args []string) int {
	sub := s.fork(ctx)
	for n, v := range sub.vars {
		if !v.exported {
			delete(sub.vars, n)
		}
	}
	clear(sub.funcs)
	sub.errExit, sub.noUnset, sub.noGlob, sub.xTrace = false, false, false, false
	sub.guarded, sub.inFunc = 0, 0
	sub.status = 0
	sub.args0, sub.params = args[0], args[1:]
	return sub.script(ctx, src)
}

// readFile reads a script.
func (s *shell) readFile(p string) (string, error) {
	f, err := s.sys.Open(p, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, maxScript+1)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// abs makes a path absolute and clean.
func (s *shell) abs(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = s.dir + "/" + p
	}
	return path.Clean(p)
}

// isDir reports whether a path names a directory.
func (s *shell) isDir(p string) bool {
	info, err := s.sys.Stat(p)
	return err == nil && info.Mode()&fs.ModeDir != 0
}
