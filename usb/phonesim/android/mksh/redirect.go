package mksh

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// redirect applies the redirections of a statement. The closers are the files
// it opened; not ok means that one failed and the message is out.
func (s *shell) redirect(redirs []*syntax.Redirect) (closers []io.Closer, ok bool) {
	for _, rd := range redirs {
		c, err := s.redirectOne(rd)
		if c != nil {
			closers = append(closers, c)
		}
		if err != nil {
			s.status = 1
			if err != errReported {
				s.say("%v", err)
			}
			return closers, false
		}
	}
	return closers, true
}

// errReported marks a failure whose message has been written already.
var errReported = errors.New("reported")

func (s *shell) redirectOne(rd *syntax.Redirect) (io.Closer, error) {
	fd := 1
	switch rd.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrInOut:
		fd = 0
	}
	if rd.N != nil {
		n, err := strconv.Atoi(rd.N.Value)
		if err != nil || n < 0 || n >= len(s.fds) {
			return nil, errors.New(rd.N.Value + ": bad file descriptor")
		}
		fd = n
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text := ""
		if rd.Hdoc != nil {
			var err error
			if text, err = expand.Document(s.cfg, rd.Hdoc); err != nil {
				s.expandError(err)
				return nil, errReported
			}
		}
		s.fds[fd] = handle{r: &document{text: text}}
		return nil, nil
	}
	word, ok := s.literal(rd.Word)
	if !ok {
		return nil, errReported
	}
	switch rd.Op {
	case syntax.WordHdoc:
		s.fds[fd] = handle{r: &document{text: word + "\n"}}
		return nil, nil
	case syntax.DplIn, syntax.DplOut:
		return nil, s.duplicate(fd, word)
	}
	return s.openFor(rd.Op, fd, word)
}

// duplicate does n>&m and n>&-.
func (s *shell) duplicate(fd int, word string) error {
	if word == "-" {
		s.fds[fd] = handle{}
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n >= len(s.fds) || s.fds[n] == (handle{}) {
		return errors.New(word + ": bad file descriptor")
	}
	s.fds[fd] = s.fds[n]
	return nil
}

func (s *shell) openFor(op syntax.RedirOperator, fd int, word string) (io.Closer, error) {
	flag, verb := os.O_RDONLY, "open"
	switch op {
	case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll, syntax.RdrAllClob:
		flag, verb = os.O_WRONLY|os.O_CREATE|os.O_TRUNC, "create"
	case syntax.AppOut, syntax.AppAll, syntax.AppClob, syntax.AppAllClob:
		flag, verb = os.O_WRONLY|os.O_CREATE|os.O_APPEND, "create"
	case syntax.RdrInOut:
		flag, verb = os.O_RDWR|os.O_CREATE, "create"
	}
	f, err := s.sys.Open(s.abs(word), flag, 0o666)
	if err != nil {
		return nil, errors.New("can't " + verb + " " + word + ": " + errText(err))
	}
	switch op {
	case syntax.RdrIn:
		s.fds[fd] = handle{r: f}
	case syntax.RdrInOut:
		s.fds[fd] = handle{r: f, w: f}
	case syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
		s.fds[1] = handle{w: f}
		s.fds[2] = handle{w: f}
	default:
		s.fds[fd] = handle{w: f}
	}
	return f, nil
}

// errText is strerror: Go writes the errors of the system in lower case.
func errText(err error) string {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return err.Error()
	}
	text := no.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
