package mksh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// System is the machine that a shell runs on. Paths are absolute and clean.
// Errors are those of io/fs around a syscall.Errno.
type System interface {
	Open(path string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	// Access reports whether the shell's user may do mode: r (4), w (2), x (1).
	Access(path string, mode uint32) error
	// Which gives the path of a command found by name or by path.
	Which(name string) (string, bool)
	// Exec runs a command that Which knows and returns its exit status. It must
	// return soon after ctx ends.
	Exec(ctx context.Context, p *Process) int
}

// Process is a command as the System sees it.
type Process struct {
	Args   []string
	Dir    string
	Stdin  io.Reader // never nil
	Stdout io.Writer
	Stderr io.Writer
	// Getenv and Environ see the exported variables only.
	Getenv  func(name string) string
	Environ func() []string
	// Run executes another command, as nohup or timeout do, with further variables ("A=1") in its
	// environment.
	Run func(ctx context.Context, args []string, env ...string) int
}

// Config describes one run of a script.
type Config struct {
	System System
	Env    map[string]string // exported variables at the start
	Dir    string            // working directory; "" is /
	// NotFound is what the shell says of an unknown command:
	// "inaccessible or not found" since Android 10, "not found" before.
	NotFound string
	Stdin    io.Reader // nil is empty
	Stdout   io.Writer
	Stderr   io.Writer
}

// name is how the shell calls itself in its messages.
const name = "/system/bin/sh"

// Run executes a script and returns its exit status. It blocks until the script
// ends or ctx does; a Stdout or Stderr that blocks for ever blocks it too. A read from
// Stdin that is pending at the end is abandoned, and returns when Stdin does.
func Run(ctx context.Context, c Config, script string) int {
	return run(ctx, c, func(ctx context.Context, s *shell) int { return s.script(ctx, script) })
}

// run makes the first shell, and takes it down when fn is done.
func run(ctx context.Context, c Config, fn func(context.Context, *shell) int) (status int) {
	ctx, cancel := context.WithCancel(ctx)
	use, mu := &usage{}, &sync.Mutex{}
	out := &gate{mu: mu, w: c.Stdout, used: use}
	errOut := &gate{mu: mu, w: c.Stderr, used: use}
	s := newShell(ctx, c, use)
	s.fds[0] = handle{r: &lazyReader{ctx: ctx, src: c.Stdin}}
	s.fds[1] = handle{w: out}
	s.fds[2] = handle{w: errOut}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintln(errOut, "Segmentation fault")
			status = 139
		}
		cancel()
		s.jobs.Wait()
		out.close()
		errOut.close()
	}()
	return fn(ctx, s)
}

// handle is one open file descriptor.
type handle struct {
	r io.Reader
	w io.Writer
}

// shell is one process of the shell: the first, or a subshell.
// One goroutine runs it.
type shell struct {
	sys      System
	notFound string
	use      *usage
	jobs     *sync.WaitGroup // pipes and background jobs of the whole Run
	kids     *sync.WaitGroup // background jobs of this shell, for wait

	ctx    context.Context // of the statement being run; for expansions
	cfg    *expand.Config
	spent  int // bytes of variables expanded by the current statement
	vars   map[string]variable
	funcs  map[string]*syntax.Stmt
	args0  string
	params []string
	dir    string
	status int
	subst  int // status of the last command substitution of this statement
	lastBG int
	rand   uint32
	depth  int
	fds    [10]handle

	errExit, noUnset, noGlob, xTrace bool
	// guarded counts the conditions around the current statement: there, a failure
	// does not end the shell under set -e.
	guarded int

	loops             int // enclosing loops
	breaks, continues int // loops still to leave, to restart
	inFunc            int
	returning         bool
	exiting           bool
	locals            []map[string]*variable // saved by "local", one map a function
}

// variable is a shell variable.
type variable struct {
	value              string
	exported, readOnly bool
}

func newShell(ctx context.Context, c Config, use *usage) *shell {
	s := &shell{
		sys: c.System, notFound: c.NotFound, use: use, jobs: &sync.WaitGroup{}, kids: &sync.WaitGroup{},
		ctx: ctx, vars: map[string]variable{}, funcs: map[string]*syntax.Stmt{},
		args0: name, dir: c.Dir, rand: 12345,
	}
	if s.notFound == "" {
		s.notFound = "inaccessible or not found"
	}
	if s.dir == "" {
		s.dir = "/"
	}
	for k, v := range c.Env {
		s.vars[k] = variable{value: v, exported: true}
	}
	s.cfg = s.expandConfig()
	return s
}

// fork makes a subshell.
func (s *shell) fork(ctx context.Context) *shell {
	c := *s
	c.ctx = ctx
	c.vars = maps.Clone(s.vars)
	c.funcs = maps.Clone(s.funcs)
	c.kids = &sync.WaitGroup{}
	c.locals = nil
	c.loops, c.breaks, c.continues = 0, 0, 0
	c.depth++
	c.cfg = c.expandConfig()
	return &c
}

// script parses and runs a whole program.
func (s *shell) script(ctx context.Context, src string) int {
	file, ok := s.parse(src)
	if !ok {
		return s.status
	}
	s.stmts(ctx, file.Stmts)
	if ctx.Err() != nil && s.status == 0 {
		s.status = statusKilled
	}
	return s.status
}

func parser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangMirBSDKorn)) }

// parse reports a bad program on standard error and sets the status.
func (s *shell) parse(src string) (*syntax.File, bool) {
	if len(src) > maxScript {
		s.fail(126, "Argument list too long")
		return nil, false
	}
	file, err := parser().Parse(strings.NewReader(src), "")
	if err == nil {
		return file, true
	}
	s.fail(1, "syntax error: "+syntaxError(src, err))
	return nil, false
}

func syntaxError(src string, err error) string {
	if syntax.IsIncomplete(err) {
		if strings.Contains(err.Error(), "quote") {
			return "no closing quote"
		}
		return "unexpected EOF"
	}
	var pe syntax.ParseError
	if errors.As(err, &pe) && int(pe.Pos.Offset()) < len(src) {
		token := src[pe.Pos.Offset():]
		if at := strings.IndexAny(token, "()|&;"); strings.Contains(pe.Text, "foo(") && at > 0 {
			token = token[at:] // the parser points at the word before
		}
		if i := strings.IndexAny(token, " \t\n"); i > 0 {
			token = token[:i]
		}
		if strings.ContainsAny(token[:1], "()|&;<>") {
			token = token[:1]
		}
		if token == "\n" {
			token = "newline"
		}
		return fmt.Sprintf("unexpected '%s'", token)
	}
	return "bad substitution"
}

// fail sets the status and says why.
func (s *shell) fail(status int, format string, a ...any) {
	s.status = status
	s.say(format, a...)
}

func (s *shell) say(format string, a ...any) {
	fmt.Fprintf(s.stderr(), name+": "+format+"\n", a...)
}

func (s *shell) stdin() io.Reader {
	if s.fds[0].r == nil {
		return strings.NewReader("")
	}
	return s.fds[0].r
}

func (s *shell) stdout() io.Writer { return writerOf(s.fds[1]) }
func (s *shell) stderr() io.Writer { return writerOf(s.fds[2]) }

func writerOf(h handle) io.Writer {
	if h.w == nil {
		return closedWriter{}
	}
	return h.w
}

// Interact reads commands from Stdin line by line until it ends or the script exits, as the
// shell does without a command. It is bounded as Run is. It prompts if Stdout and Stderr are
// the same writer, for then they are a terminal.
func Interact(ctx context.Context, c Config) int {
	terminal := sameWriter(c.Stdout, c.Stderr)
	return run(ctx, c, func(ctx context.Context, s *shell) int { return s.interact(ctx, s.stdin(), terminal) })
}

func sameWriter(a, b io.Writer) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && a == b
}

// prompt is Android's: the status if it is not 0, the phone's name, the folder.
func (s *shell) prompt(more bool) {
	if more {
		io.WriteString(s.stderr(), "> ")
		return
	}
	status := ""
	if s.status != 0 {
		status = fmt.Sprintf("%d|", s.status)
	}
	fmt.Fprintf(s.stderr(), "%s%s:%s $ ", status, s.vars["HOSTNAME"].value, s.dir)
}

func (s *shell) interact(ctx context.Context, in io.Reader, terminal bool) int {
	var pending strings.Builder
	for !s.exiting {
		if terminal {
			s.prompt(pending.Len() > 0)
		}
		line, err := readLine(in, maxScript)
		if err != nil && line == "" {
			break
		}
		pending.WriteString(line + "\n")
		_, perr := parser().Parse(strings.NewReader(pending.String()), "")
		if err == nil && perr != nil && syntax.IsIncomplete(perr) && pending.Len() < maxScript {
			continue
		}
		if file, ok := s.parse(pending.String()); ok {
			s.stmts(ctx, file.Stmts)
		}
		pending.Reset()
		if err != nil || ctx.Err() != nil {
			break
		}
	}
	return s.status
}
