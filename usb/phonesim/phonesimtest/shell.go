package phonesimtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run implements phonesim.System. A line has commands separated by ";", of words that may be quoted with '...':
//
//	echo words      to standard output
//	warn words      to standard error
//	cat [path]      standard input or a file
//	bytes n         n bytes 0x00, 0x01 ... 0xff, 0x00 ...
//	sleep seconds   may be a fraction; ends with 130 when the host is gone
//	getprop name
//	exit n
//
// Anything else ends with 127. With no command line, Run reads lines from stdin until exit or its end.
func (s *System) Run(ctx context.Context, cmd string, stdin io.Reader, stdout, stderr io.Writer) int {
	s.mu.Lock()
	s.runs = append(s.runs, cmd)
	s.mu.Unlock()
	p := process{system: s, ctx: ctx, in: bufio.NewReader(stdin), out: stdout, err: stderr}
	if cmd != "" {
		p.line(cmd)
		return p.exit
	}
	for !p.ended {
		fmt.Fprint(stdout, "$ ")
		line, err := p.in.ReadString('\n')
		if err != nil {
			break
		}
		p.line(strings.TrimSuffix(line, "\n"))
	}
	return p.exit
}

// Runs returns the command lines so far.
func (s *System) Runs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// process is one run.
type process struct {
	system   *System
	ctx      context.Context
	in       *bufio.Reader
	out, err io.Writer
	exit     int
	ended    bool
}

func (p *process) line(line string) {
	for _, words := range parse(line) {
		if p.exit = p.command(words); p.ended || p.ctx.Err() != nil {
			return
		}
	}
}

func (p *process) command(words []string) int {
	args := words[1:]
	first := strings.Join(args[:min(len(args), 1)], "")
	switch words[0] {
	case "echo":
		fmt.Fprintln(p.out, strings.Join(args, " "))
	case "warn":
		fmt.Fprintln(p.err, strings.Join(args, " "))
	case "cat":
		return p.cat(first)
	case "bytes":
		n, _ := strconv.Atoi(first)
		return p.bytes(n)
	case "sleep":
		seconds, _ := strconv.ParseFloat(first, 64)
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
		case <-p.ctx.Done():
			return 130
		}
	case "getprop":
		fmt.Fprintln(p.out, p.system.Property(first))
	case "exit":
		n, _ := strconv.Atoi(first)
		p.ended = true
		return n
	default:
		fmt.Fprintf(p.err, "sh: %s: inaccessible or not found\n", words[0])
		return 127
	}
	return 0
}

func (p *process) cat(name string) int {
	if name == "" {
		if _, err := io.Copy(p.out, p.in); err != nil {
			return 1
		}
		return 0
	}
	data, err := p.system.ReadFile(name)
	if err != nil {
		fmt.Fprintf(p.err, "cat: %s: No such file or directory\n", name)
		return 1
	}
	p.out.Write(data)
	return 0
}

func (p *process) bytes(n int) int {
	block := Bytes(min(n, 32<<10))
	for n > 0 {
		part := block[:min(n, len(block))]
		if _, err := p.out.Write(part); err != nil {
			return 1
		}
		n -= len(part)
	}
	return 0
}

// Bytes returns n bytes that count from 0 to 255 and over again.
func Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// parse splits a line into commands and words.
func parse(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	inWord, quoted := false, false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for _, c := range line + ";" {
		switch {
		case c == '\'':
			quoted, inWord = !quoted, true
		case !quoted && (c == ' ' || c == '\n' || c == ';'):
			endWord()
			if c != ' ' && len(words) > 0 {
				commands = append(commands, words)
				words = nil
			}
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	return commands
}
