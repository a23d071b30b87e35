package mksh

import (
	"context"
	"io"
	"regexp"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

func (s *shell) stmts(ctx context.Context, stmts []*syntax.Stmt) {
	for _, st := range stmts {
		if s.stop(ctx) {
			return
		}
		s.stmt(ctx, st)
	}
}

// stop reports whether the statements that follow are not to be run.
func (s *shell) stop(ctx context.Context) bool {
	if ctx.Err() != nil && !s.exiting {
		s.exiting = true
		s.status = statusKilled
	}
	return s.exiting || s.returning || s.breaks > 0 || s.continues > 0
}

// kill ends this shell because a limit is reached.
func (s *shell) kill() {
	s.say("%v", errLimit)
	s.exiting = true
	s.status = statusKilled
}

func (s *shell) stmt(ctx context.Context, st *syntax.Stmt) {
	if s.stop(ctx) {
		return
	}
	if s.use.steps.Add(1) > maxSteps || s.depth > maxDepth {
		s.kill()
		return
	}
	s.ctx = ctx
	s.spent = 0
	if st.Background || st.Coprocess || st.Disown {
		s.background(ctx, st)
		return
	}
	saved := s.fds
	closers, ok := s.redirect(st.Redirs)
	keep := false
	if ok {
		keep = s.command(ctx, st.Cmd)
	}
	if !keep {
		s.fds = saved
		for _, c := range closers {
			c.Close()
		}
	}
	if st.Negated && !s.exiting {
		s.status = flip(s.status)
		return
	}
	if s.status != 0 && s.errExit && s.guarded == 0 && !isList(st.Cmd) {
		s.exiting = true
	}
}

func isList(cmd syntax.Command) bool {
	b, ok := cmd.(*syntax.BinaryCmd)
	return ok && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt)
}

func flip(status int) int {
	if status == 0 {
		return 1
	}
	return 0
}

// background starts a job with an empty standard input and does not wait.
func (s *shell) background(ctx context.Context, st *syntax.Stmt) {
	if s.use.jobs.Add(1) > maxJobs {
		s.use.jobs.Add(-1)
		s.fail(1, "can't fork: Try again")
		return
	}
	sub := s.fork(ctx)
	sub.fds[0] = handle{}
	job := *st
	job.Background, job.Coprocess, job.Disown = false, false, false
	s.lastBG = firstPID + int(s.use.steps.Load())
	s.kids.Add(1)
	kids := s.kids
	s.jobs.Go(func() {
		defer kids.Done()
		defer s.use.jobs.Add(-1)
		defer sub.survive()
		sub.stmt(ctx, &job)
	})
	s.status = 0
}

// survive turns a panic in a subshell of its own goroutine into a status.
func (s *shell) survive() {
	if r := recover(); r != nil {
		s.status = 139
	}
}

// command runs one command; keep is true for "exec" without a command, whose
// redirections stay.
func (s *shell) command(ctx context.Context, cmd syntax.Command) (keep bool) {
	switch c := cmd.(type) {
	case nil:
		s.status = 0
	case *syntax.CallExpr:
		return s.call(ctx, c)
	case *syntax.Block:
		s.stmts(ctx, c.Stmts)
	case *syntax.Subshell:
		sub := s.fork(ctx)
		sub.stmts(ctx, c.Stmts)
		s.status = sub.status
	case *syntax.BinaryCmd:
		s.binary(ctx, c)
	case *syntax.IfClause:
		s.ifClause(ctx, c)
	case *syntax.WhileClause:
		s.while(ctx, c)
	case *syntax.ForClause:
		s.forClause(ctx, c)
	case *syntax.CaseClause:
		s.caseClause(ctx, c)
	case *syntax.FuncDecl:
		if c.Name != nil {
			s.funcs[c.Name.Value] = c.Body
		}
		s.status = 0
	case *syntax.ArithmCmd:
		s.status = flip(min(1, abs(s.arithm(c.X))))
	case *syntax.LetClause:
		n := 0
		for _, x := range c.Exprs {
			n = s.arithm(x)
		}
		s.status = flip(min(1, abs(n)))
	case *syntax.TestClause:
		s.status = s.testClause(c.X)
	case *syntax.DeclClause:
		s.declare(c)
	case *syntax.TimeClause:
		s.status = 0
		if c.Stmt != nil {
			s.stmt(ctx, c.Stmt)
		}
		io.WriteString(s.stderr(), "    0m00.01s real     0m00.00s user     0m00.00s system\n")
	default:
		s.fail(1, "syntax error: unexpected command")
	}
	return false
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1) + 1
	}
	return n
}

func (s *shell) binary(ctx context.Context, c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		s.guarded++
		s.stmt(ctx, c.X)
		s.guarded--
		if s.stop(ctx) {
			return
		}
		if (s.status == 0) == (c.Op == syntax.AndStmt) {
			s.stmt(ctx, c.Y)
		}
	default:
		s.pipe(ctx, c)
	}
}

// pipe runs both ends in subshells of their own; the status is the right end's.
func (s *shell) pipe(ctx context.Context, c *syntax.BinaryCmd) {
	if s.use.jobs.Add(1) > maxJobs {
		s.use.jobs.Add(-1)
		s.fail(1, "can't fork: Try again")
		return
	}
	pr, pw := io.Pipe()
	leftCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	stop := context.AfterFunc(ctx, func() {
		pr.CloseWithError(ctx.Err())
		pw.CloseWithError(ctx.Err())
	})
	defer stop()

	left, right := s.fork(leftCtx), s.fork(ctx)
	w := &pipeWriter{PipeWriter: pw, hangUp: hangUp}
	left.fds[1] = handle{w: w}
	if c.Op == syntax.PipeAll {
		left.fds[2] = handle{w: w}
	}
	right.fds[0] = handle{r: pr}
	done := make(chan struct{}) // closed by the left end when it is over
	s.jobs.Go(func() {
		defer close(done)
		defer pw.Close()
		defer left.survive()
		left.stmt(leftCtx, c.X)
	})
	func() {
		defer right.survive()
		right.stmt(ctx, c.Y)
	}()
	pr.Close()
	<-done
	s.use.jobs.Add(-1)
	s.status = right.status
}

func (s *shell) condition(ctx context.Context, stmts []*syntax.Stmt) bool {
	s.guarded++
	s.stmts(ctx, stmts)
	s.guarded--
	return s.status == 0
}

func (s *shell) ifClause(ctx context.Context, c *syntax.IfClause) {
	for c != nil {
		if !c.ThenPos.IsValid() || s.condition(ctx, c.Cond) { // an "else" has no condition
			if !s.stop(ctx) {
				s.status = 0
				s.stmts(ctx, c.Then)
			}
			return
		}
		if s.stop(ctx) {
			return
		}
		s.status = 0
		c = c.Else
	}
}

func (s *shell) while(ctx context.Context, c *syntax.WhileClause) {
	status := 0
	for !s.stop(ctx) {
		if s.use.steps.Add(1) > maxSteps {
			s.kill()
			return
		}
		ok := s.condition(ctx, c.Cond)
		if s.stop(ctx) {
			return
		}
		if ok == c.Until {
			break
		}
		if s.loopBody(ctx, c.Do) {
			return
		}
		status = s.status
	}
	if !s.stop(ctx) {
		s.status = status
	}
}

// loopBody runs the body once and reports whether the loop is over.
func (s *shell) loopBody(ctx context.Context, body []*syntax.Stmt) bool {
	s.loops++
	s.stmts(ctx, body)
	s.loops--
	if s.breaks > 0 {
		s.breaks--
		return true
	}
	if s.continues > 0 {
		s.continues--
		return s.continues > 0
	}
	return s.stop(ctx)
}

func (s *shell) forClause(ctx context.Context, c *syntax.ForClause) {
	loop, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select {
		s.fail(1, "syntax error: unexpected '('")
		return
	}
	items := s.params
	if loop.InPos.IsValid() {
		if items, ok = s.fields(loop.Items); !ok {
			return
		}
	}
	s.status = 0
	for _, item := range items {
		if s.use.steps.Add(1) > maxSteps {
			s.kill()
			return
		}
		if err := s.set(loop.Name.Value, item); err != nil {
			s.fail(1, "%v", err)
			return
		}
		if s.loopBody(ctx, c.Do) {
			return
		}
	}
}

func (s *shell) caseClause(ctx context.Context, c *syntax.CaseClause) {
	word, ok := s.literal(c.Word)
	if !ok {
		return
	}
	s.status = 0
	fall := false
	for _, item := range c.Items {
		if fall || s.matchesAny(item.Patterns, word) {
			s.stmts(ctx, item.Stmts)
			if item.Op == syntax.Break || s.stop(ctx) {
				return
			}
			fall = item.Op == syntax.Fallthrough
		}
	}
}

func (s *shell) matchesAny(patterns []*syntax.Word, word string) bool {
	for _, p := range patterns {
		pat, err := expand.Pattern(s.cfg, p)
		if err != nil {
			s.expandError(err)
			return false
		}
		if match(pat, word) {
			return true
		}
	}
	return false
}

// match reports whether a shell pattern matches the whole of a word.
func match(pat, word string) bool {
	expr, err := pattern.Regexp(pat, pattern.EntireString|pattern.ExtendedOperators)
	if err != nil {
		return pat == word
	}
	rx, err := regexp.Compile(expr)
	if err != nil {
		return pat == word
	}
	return rx.MatchString(word)
}
