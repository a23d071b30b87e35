package phone

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// source is a command whose answer parts are read from. Several go to the phone
// in one round trip.
type source struct {
	name string
	cmd  string
}

// answer is what one source came to.
type answer struct {
	text string // with LF line ends
	err  error
}

// answers are what the phone has said so far.
type answers struct {
	said    map[string]answer // by the source's name
	windows *windowList       // nil until somebody asks for it
}

func newAnswers() *answers { return &answers{said: map[string]answer{}} }

// text returns what a source printed, "" if there is nothing.
func (a *answers) text(s source) string { return a.said[s.name].text }

// err returns why one of the sources has no answer.
func (a *answers) err(from []source) error {
	for _, s := range from {
		if err := a.said[s.name].err; err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// rows yields the lines of out that contain key, without white space at their
// ends. Dumps are long and a pattern is slow: what it is tried on is found first.
func rows(out, key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			at := strings.Index(out, key)
			if at < 0 {
				return
			}
			line := out[strings.LastIndexByte(out[:at], '\n')+1:]
			out = ""
			if end := strings.IndexByte(line, '\n'); end >= 0 {
				line, out = line[:end], line[end+1:]
			}
			if !yield(strings.TrimRight(line, " \t\r")) {
				return
			}
		}
	}
}

// row returns what pattern finds in the first line that contains key and fits,
// nil if there is none.
func row(out, key string, pattern *regexp.Regexp) []string {
	for line := range rows(out, key) {
		if m := pattern.FindStringSubmatch(line); m != nil {
			return m
		}
	}
	return nil
}

// maxAnswers bounds what all sources of one round trip print, in bytes.
const maxAnswers = 2 << 20

// ask runs the commands of sources in one round trip and adds their answers to
// a. Before each command and after the last the phone prints a mark that no app
// can guess, so that no text of theirs passes for the answer of another. When
// time is over, the sources that have answered keep their answers. It fails if
// the phone could not be asked at all.
func (p *Phone) ask(ctx context.Context, a *answers, sources []source) error {
	mark := "phonerack-" + strings.ToLower(rand.Text()[:12]) + "-"
	var cmd strings.Builder
	for i, s := range sources {
		fmt.Fprintf(&cmd, "echo %s%d; %s; ", mark, i, s.cmd)
	}
	cmd.WriteString("echo " + mark + strconv.Itoa(len(sources)))

	r, err := p.conn.shell(ctx, cmd.String())
	if err == nil && len(r.Stdout) > maxAnswers {
		err = fmt.Errorf("%d bytes, at most %d are read: %w", len(r.Stdout), maxAnswers, ErrTooLarge)
	}
	if err != nil && (!ended(err) || len(r.Stdout) == 0) {
		return err
	}
	cutAnswers(a, sources, mark, string(r.Stdout), err)
	return nil
}

// cutAnswers takes apart what the phone has printed for sources. Those that are
// not there to their end fail with why, ErrTruncated if that is nil.
func cutAnswers(a *answers, sources []source, mark, out string, why error) {
	if why == nil {
		why = ErrTruncated
	}
	_, rest, ok := strings.Cut(strings.ReplaceAll(out, "\r\n", "\n"), mark+"0\n")
	for i, s := range sources {
		var text string
		if ok {
			text, rest, ok = strings.Cut(rest, mark+strconv.Itoa(i+1)+"\n")
		}
		if ok {
			a.said[s.name] = answer{text: text}
		} else {
			a.said[s.name] = answer{err: why}
		}
	}
}

// way is one way to read a part of something: sources and what is made of them.
type way[T any] struct {
	name string
	from []source
	read func(*answers, *T) error
}

// part is what is read by one of several ways, the quickest first.
type part[T any] struct {
	name string
	ways []way[T]
	fail func(*T, error) // keeps why there is no such part
}

// reading is a part on its way to be read.
type reading[T any] struct {
	part[T]
	last error // why the way before did not work
}

// read reads parts into to: all by their first ways in one round trip, those
// that were not understood by their next ways in a further one, and so on. The
// ways that worked come first from then on. What a has already is not asked
// for again.
func read[T any](ctx context.Context, p *Phone, a *answers, to *T, parts []part[T]) {
	left := make([]reading[T], 0, len(parts))
	for _, part := range parts {
		part.ways = preferred(part.ways, func(w way[T]) string { return w.name }, p.way(part.name))
		left = append(left, reading[T]{part: part})
	}
	for len(left) > 0 {
		err := ctx.Err()
		if err == nil {
			if need := missing(a, left); len(need) > 0 {
				err = p.ask(ctx, a, need)
			}
		}
		if err != nil {
			for _, r := range left {
				r.fail(to, errors.Join(r.last, err))
			}
			return
		}
		var next []reading[T]
		for _, r := range left {
			w := r.ways[0]
			err := a.err(w.from)
			if err == nil {
				err = w.read(a, to)
			}
			r.last, r.ways = err, r.ways[1:]
			switch {
			case err == nil:
				p.learn(r.name, w.name)
			case errors.Is(err, ErrInTransition), len(r.ways) == 0:
				r.fail(to, err)
			default:
				next = append(next, r)
			}
		}
		left = next
	}
}

// missing lists the sources of the next ways that have not been asked.
func missing[T any](a *answers, left []reading[T]) []source {
	var need []source
	seen := map[string]bool{}
	for _, r := range left {
		for _, s := range r.ways[0].from {
			if _, ok := a.said[s.name]; !ok && !seen[s.name] {
				seen[s.name] = true
				need = append(need, s)
			}
		}
	}
	return need
}

// preferred puts the element of that name first and keeps the order otherwise.
func preferred[E any](all []E, name func(E) string, first string) []E {
	order := make([]E, 0, len(all))
	for _, e := range all {
		if name(e) == first {
			order = append(order, e)
		}
	}
	for _, e := range all {
		if name(e) != first {
			order = append(order, e)
		}
	}
	return order
}
