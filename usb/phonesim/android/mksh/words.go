package mksh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// firstPID is the process number of the shell; jobs come after it.
const firstPID = 4242

// environ gives the variables to package expand.
type environ struct{ s *shell }

func (e environ) Get(name string) expand.Variable {
	v := e.s.lookup(name)
	e.s.spent += len(v.Str)
	for _, p := range v.List {
		e.s.spent += len(p) + 1
	}
	if e.s.spent > maxExpansion {
		return expand.Variable{Set: true, Kind: expand.String}
	}
	return v
}

func (e environ) Each(fn func(string, expand.Variable) bool) {
	for n, v := range e.s.vars {
		if !fn(n, expand.Variable{Set: true, Kind: expand.String, Str: v.value, Exported: v.exported}) {
			return
		}
	}
}

func (e environ) Set(name string, v expand.Variable) error {
	if !v.IsSet() {
		delete(e.s.vars, name)
		return nil
	}
	return e.s.set(name, v.String())
}

// lookup finds a variable or a special parameter.
func (s *shell) lookup(name string) expand.Variable {
	str := func(v string) expand.Variable {
		return expand.Variable{Set: true, Kind: expand.String, Str: v}
	}
	if v, ok := s.vars[name]; ok {
		return str(v.value)
	}
	switch name {
	case "#":
		return str(strconv.Itoa(len(s.params)))
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: append([]string{}, s.params...)}
	case "?":
		return str(strconv.Itoa(s.status))
	case "$":
		return str(strconv.Itoa(firstPID))
	case "!":
		if s.lastBG != 0 {
			return str(strconv.Itoa(s.lastBG))
		}
	case "-":
		return str("h")
	case "0":
		return str(s.args0)
	case "PPID":
		return str("1")
	case "PWD":
		return str(s.dir)
	case "IFS":
		return str(" \t\n")
	case "RANDOM":
		s.rand = s.rand*1103515245 + 12345
		return str(strconv.Itoa(int(s.rand>>16) & 0x7fff))
	case "USER_ID":
		return str("2000")
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(s.params) {
		return str(s.params[n-1])
	}
	// "HOME x" asks for the home of user x; an unset answer would be looked up
	// on the host.
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		return str("~" + user)
	}
	return expand.Variable{}
}

// set assigns a string to a variable.
func (s *shell) set(name, value string) error {
	if !syntax.ValidName(name) {
		return fmt.Errorf("%s: is not an identifier", name)
	}
	if len(value) > maxScript {
		return fmt.Errorf("%s: %w", name, syscall.ENOMEM)
	}
	v := s.vars[name]
	if v.readOnly {
		return fmt.Errorf("read-only: %s", name)
	}
	v.value = value
	s.vars[name] = v
	return nil
}

// assign does name=value; false means that it failed and the message is out.
func (s *shell) assign(a *syntax.Assign, export bool) bool {
	if a.Name == nil || a.Index != nil || a.Array != nil {
		s.fail(1, "syntax error: unexpected '('")
		return false
	}
	value, ok := s.literal(a.Value)
	if !ok {
		return false
	}
	if a.Append {
		value = s.lookup(a.Name.Value).Str + value
	}
	if err := s.set(a.Name.Value, value); err != nil {
		s.fail(1, "%v", err)
		return false
	}
	if export {
		v := s.vars[a.Name.Value]
		v.exported = true
		s.vars[a.Name.Value] = v
	}
	return true
}

func (s *shell) expandConfig() *expand.Config {
	return &expand.Config{
		Env:      environ{s},
		CmdSubst: s.cmdSubst,
		ReadDir2: s.readDir,
		NoUnset:  s.noUnset,
	}
}

// configure makes the expansions follow the options of set.
func (s *shell) configure() {
	s.cfg.NoUnset = s.noUnset
	s.cfg.ReadDir2 = s.readDir
	if s.noGlob {
		s.cfg.ReadDir2 = nil
	}
}

// readDir serves globbing. What may not be read matches nothing.
func (s *shell) readDir(p string) ([]fs.DirEntry, error) {
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	list, err := s.sys.ReadDir(path.Clean(p))
	if s.use.glob.Add(int64(len(list)+1)) > maxGlob {
		return nil, errLimit
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return list, err
}

// cmdSubst runs $(...) and writes its output to w.
func (s *shell) cmdSubst(w io.Writer, cs *syntax.CmdSubst) error {
	if cs.ReplyVar || s.depth >= maxDepth {
		return errLimit
	}
	w = &capped{w: w, max: maxSubst}
	if word := fileSubst(cs); word != nil {
		p, ok := s.literal(word)
		if !ok {
			return nil
		}
		f, err := s.sys.Open(s.abs(p), os.O_RDONLY, 0)
		if err != nil {
			s.say("can't open %s: %s", p, errText(err))
			s.subst = 1
			return nil
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
	ctx := s.ctx
	sub := s.fork(ctx)
	sub.fds[1] = handle{w: w}
	sub.stmts(ctx, cs.Stmts)
	sub.kids.Wait() // they hold the pipe open
	s.subst = sub.status
	return nil
}

// fileSubst gives the file of $(<file), or nil.
func fileSubst(cs *syntax.CmdSubst) *syntax.Word {
	if len(cs.Stmts) != 1 {
		return nil
	}
	st := cs.Stmts[0]
	if st.Cmd != nil || st.Negated || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrIn {
		return nil
	}
	return st.Redirs[0].Word
}

// fields expands the words of a command.
func (s *shell) fields(words []*syntax.Word) ([]string, bool) {
	list, err := expand.Fields(s.cfg, words...)
	if err != nil {
		s.expandError(err)
		return nil, false
	}
	total := 0
	for _, f := range list {
		total += len(f) + 1
	}
	if total > maxArguments || s.spent > maxExpansion {
		s.fail(126, "Argument list too long")
		return nil, false
	}
	return list, true
}

// literal expands one word without splitting it.
func (s *shell) literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", true
	}
	v, err := expand.Literal(s.cfg, w)
	if err != nil {
		s.expandError(err)
		return "", false
	}
	return v, true
}

func (s *shell) arithm(x syntax.ArithmExpr) int {
	n, err := expand.Arithm(s.cfg, x)
	if err != nil {
		s.expandError(err)
	}
	return n
}

// expandError reports a failed expansion; an unset parameter ends the shell.
func (s *shell) expandError(err error) {
	var unset expand.UnsetParameterError
	if errors.As(err, &unset) {
		s.exiting = true
		if unset.Message == "unbound variable" {
			err = fmt.Errorf("%s: parameter not set", unset.Node.Param.Value)
		}
	}
	if errors.Is(err, errLimit) {
		s.kill()
		return
	}
	s.fail(1, "%v", err)
}

// unescape expands the backslashes of echo: all of C's and \c, which ends the output.
func unescape(text string) (out string, stop bool) {
	var b bytes.Buffer
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			b.WriteByte(c)
			continue
		}
		i++
		switch text[i] {
		case 'c':
			return b.String(), true
		case '0':
			n, used := octal(text[i+1:], 3)
			b.WriteByte(n)
			i += used
		case 'x':
			end := i + 1
			for end < len(text) && end < i+3 && strings.IndexByte("0123456789abcdefABCDEF", text[end]) >= 0 {
				end++
			}
			if end == i+1 {
				b.WriteString(`\x`)
				continue
			}
			n, _ := strconv.ParseUint(text[i+1:end], 16, 8)
			b.WriteByte(byte(n))
			i = end - 1
		default:
			if r, ok := escapes[text[i]]; ok {
				b.WriteByte(r)
				continue
			}
			b.WriteByte('\\')
			b.WriteByte(text[i])
		}
	}
	return b.String(), false
}

var escapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 27, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\',
}

// octal reads up to max octal digits.
func octal(text string, max int) (value byte, used int) {
	for used < max && used < len(text) && text[used] >= '0' && text[used] <= '7' {
		value = value*8 + text[used] - '0'
		used++
	}
	return value, used
}
