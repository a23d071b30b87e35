package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/sync/wire"
)

func TestDocumentIsHandedOverAndReadBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.pdf")
	if err := os.WriteFile(name, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(5, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	pipe, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	fmt.Fprint(feed, "from a pipe")
	feed.Close()
	for want, source := range map[string]Source{
		"from bytes":    FromBytes("x", []byte("from bytes")),
		"from a stream": FromReader("x", io.MultiReader(strings.NewReader("from a "), strings.NewReader("stream"))),
		"from a file":   FromFile("x", file),
		"from a pipe":   FromFile("x", pipe),
	} {
		d, err := fakeReader(t, "echo").Read(t.Context(), source, Request{Text: true, Password: "pa\xffss"})
		if err != nil {
			t.Fatal(err)
		}
		// Nothing of this process's environment, and not its folder.
		if got := d.Pages[0].Text; got != want+"|pa\ufffdss|MALLOC_ARENA_MAX=1|/" {
			t.Errorf("%q", got)
		}
	}
	if at, err := file.Seek(0, io.SeekCurrent); err != nil || at != 5 {
		t.Errorf("the file was moved to %d, %v", at, err)
	}
}

func TestPagesAndPictures(t *testing.T) {
	d, err := fakeReader(t, "good").Read(t.Context(), FromBytes("x", []byte("x")), Request{First: 2, Text: true, Images: true})
	if err != nil {
		t.Fatal(err)
	}
	if d.Count != 3 || len(d.Pages) != 2 || d.Pages[0].Number != 2 || d.Pages[1].Text != "page 3\n" || d.Pages[1].Image.Width != 4 {
		t.Errorf("%+v", d)
	}
}

func TestSourcesThatGiveNoDocument(t *testing.T) {
	r := fakeReader(t, "good")
	r.Limits.InputBytes = 100
	lost := wire.Refuse(wire.PhoneLost, map[string]any{"slot": 7})
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for name, c := range map[string]struct {
		source Source
		code   wire.Code
	}{
		"empty":          {FromBytes("x", nil), wire.DocumentUnreadable},
		"large":          {FromBytes("x", make([]byte, 101)), wire.DocumentTooLarge},
		"endless":        {FromReader("x", endless{}), wire.DocumentTooLarge},
		"lost phone":     {FromReader("x", io.MultiReader(strings.NewReader("beginning"), failing{lost})), wire.PhoneLost},
		"broken":         {FromReader("x", failing{errors.New("broken")}), wire.Internal},
		"folder":         {FromFile("x", folder), wire.Internal},
		"no source":      {Source{}, wire.Internal},
		"name of a line": {FromBytes("a\nb\u202e", nil), wire.DocumentUnreadable},
	} {
		d, err := r.Read(t.Context(), c.source, text)
		if d != nil || err == nil || wire.From(err).Code != c.code || strings.ContainsAny(err.Error(), "\n\u202e") {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRequestsOutOfBounds(t *testing.T) {
	for name, q := range map[string]Request{
		"backwards":     {First: 5, Last: 4},
		"too many":      {First: 1, Last: 21},
		"far":           {First: 1_000_001, Last: 1_000_001},
		"too wide":      {MaxWidth: MaxPixels + 1},
		"too high":      {MaxHeight: MaxPixels + 1},
		"long password": {Password: strings.Repeat("x", MaxPassword+1)},
	} {
		if d, err := fakeReader(t, "good").Read(t.Context(), FromBytes("x", []byte("x")), q); d != nil || !wire.Is(err, wire.BadRequest) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

func TestChildrenThatFail(t *testing.T) {
	for part, c := range map[string]struct {
		code  wire.Code
		part  string // of the sentence
		pages int    // that are kept
	}{
		"hang":                {wire.DocumentTimeout, "starting took longer than 2000 ms", 0},
		"hang late":           {wire.DocumentTimeout, "page 2 took longer than 2000 ms", 1},
		"exit":                {wire.DocumentCrashed, "starting made its reader fail (exit status 0)", 0},
		"abort":               {wire.DocumentCrashed, "page 2 made its reader fail (exit status 7: some error: broken)", 1},
		"segfault":            {wire.DocumentCrashed, "counting its pages made its reader fail (", 0},
		"close stdout":        {wire.DocumentCrashed, "opening it made its reader fail (signal: killed)", 0},
		"out of memory":       {wire.DocumentTooLarge, "the memory that it needs exceeds 384 MiB", 0},
		"picture fails":       {wire.DocumentCrashed, "drawing page 1 made its reader fail (exit status 1)", 1},
		"flood":               {wire.DocumentCrashed, "its answer breaks the rules", 0},
		"flood of stages":     {wire.DocumentCrashed, "too many stages", 0},
		"flood of complaints": {wire.DocumentCrashed, "it complains without end", 0},
		"unknown refusal":     {wire.DocumentCrashed, "its answer breaks the rules", 0},
		"unreadable":          {wire.DocumentUnreadable, `because it is {name}\u000a\u202ezzz`, 0},
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			r := fakeReader(t, part)
			r.Limits.Wall = 10 * time.Second
			if strings.HasPrefix(part, "hang") {
				r.Limits.Wall = 2 * time.Second
			}
			begun := time.Now()
			d, err := r.Read(t.Context(), FromBytes("x.pdf", []byte("x")), Request{Text: true, Images: part == "picture fails"})
			if !wire.Is(err, c.code) || !strings.Contains(err.Error(), c.part) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%v", err)
			}
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("took %v", took)
			}
			if (d != nil) != (c.pages > 0) || d != nil && len(d.Pages) != c.pages {
				t.Errorf("%+v", d)
			}
			if part == "picture fails" && (d.Pages[0].Text != "kept" || d.Pages[0].Problems[0].Code != NoPicture) {
				t.Errorf("%+v", d.Pages[0])
			}
		})
	}
}

func TestAnswersThatBreakTheRules(t *testing.T) {
	for name, lie := range liars {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fakeReader(t, name)
			r.Limits.Wall = 10 * time.Second
			d, err := r.Read(t.Context(), FromBytes("x.pdf", []byte("x")), lie.ask)
			if d != nil || !wire.Is(err, wire.DocumentCrashed) || !strings.Contains(err.Error(), "its answer breaks the rules") {
				t.Error(err)
			}
		})
	}
}

func TestWholeAnswerEndsTheChild(t *testing.T) {
	begun := time.Now()
	if d, err := fakeReader(t, "hang at end").Read(t.Context(), FromBytes("x", []byte("x")), text); err != nil || len(d.Pages) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestContentsThatFailCostNoPages(t *testing.T) {
	d, err := fakeReader(t, "contents fail").Read(t.Context(), FromBytes("x", []byte("x")), Request{Text: true, Contents: true})
	if err != nil || len(d.Pages) != 1 || len(d.Problems) != 1 || d.Problems[0].Code != InfoMissing {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestComplaintsBecomeProblems(t *testing.T) {
	d, err := fakeReader(t, "complain").Read(t.Context(), FromBytes("x", []byte("x")), text)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(d.Problems); got != `[fonts not embedded, so the text may be wrong and the picture lacks it: "some for Chinese, Japanese or Korean" `+
		`the file is damaged, so something may be missing: "format error: broken"]` {
		t.Error(got)
	}
}

func TestProcessorTimeOfTheChildIsLimitedByTheParent(t *testing.T) {
	r := fakeReader(t, "spin")
	r.Limits.CPU = time.Second
	d, err := r.Read(t.Context(), FromBytes("x", []byte("x")), text)
	if !wire.Is(err, wire.DocumentTimeout) || !strings.Contains(err.Error(), "page 2 took longer than 1000 ms") || len(d.Pages) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestParentSetsLimits(t *testing.T) {
	r := fakeReader(t, "limits")
	r.Limits.CPU = 1500 * time.Millisecond
	d, err := r.Read(t.Context(), FromBytes("x", []byte("x")), text)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]string{}
	for line := range strings.SplitSeq(d.Pages[0].Text, "\n") {
		if len(line) > 46 {
			limits[strings.TrimSpace(line[:26])] = strings.Join(strings.Fields(line[26:])[:2], " ")
		}
	}
	for name, want := range map[string]string{"Max cpu time": "2 2", "Max file size": "0 0", "Max core file size": "0 0", "Max open files": "32 32"} {
		if limits[name] != want {
			t.Errorf("%s: %q, want %q", name, limits[name], want)
		}
	}
	if soft, hard, _ := strings.Cut(limits["Max address space"], " "); soft != hard || soft == "unlimited" {
		t.Errorf("address space: %s, %s", soft, hard)
	}
}

func TestOffspringDiesWithTheChild(t *testing.T) {
	for _, password := range []string{"", "so that the answer has no end"} {
		begun := time.Now()
		r := fakeReader(t, "offspring")
		r.Limits.Wall = 3 * time.Second
		d, err := r.Read(t.Context(), FromBytes("x", []byte("x")), Request{Text: true, Password: password})
		if err != nil || len(d.Pages) != 1 || (len(d.Problems) == 0) != (password == "") {
			t.Fatalf("%+v, %v", d, err)
		}
		pid, err := strconv.Atoi(d.Pages[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		for alive(pid) && time.Since(begun) < 5*time.Second {
			time.Sleep(10 * time.Millisecond)
		}
		if alive(pid) {
			t.Errorf("the child's child %d lives on", pid)
		}
	}
}

// alive tells whether a process runs; a zombie that nobody has reaped yet does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(b, []byte(") Z ")) && syscall.Kill(pid, 0) == nil
}

func TestCancelWhileReadingAndWhileWaiting(t *testing.T) {
	r := fakeReader(t, "hang")
	r.Limits.Children = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the task is over")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if d, err := r.Read(ctx, FromBytes("x", []byte("x")), text); d != nil || !errors.Is(err, over) {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	cancel(over)
	wg.Wait()
	if _, err := r.Read(ctx, FromReader("x", failing{errors.New("closed")}), text); !errors.Is(err, over) {
		t.Error(err)
	}
}

func TestOnlySoManyChildrenAtOnce(t *testing.T) {
	r := fakeReader(t, "slow")
	r.Limits.Children = 2
	var wg sync.WaitGroup
	begun := time.Now()
	for range 8 {
		wg.Go(func() {
			if _, err := r.Read(t.Context(), FromBytes("x", []byte("x")), text); err != nil {
				t.Error(err)
			}
		})
	}
	most := 0
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case <-done:
			if most != 2 {
				t.Errorf("%d children at once", most)
			}
			if took := time.Since(begun); took < 4*200*time.Millisecond {
				t.Errorf("eight took %v", took)
			}
			return
		case <-time.After(5 * time.Millisecond):
			most = max(most, holdings(t).children)
		}
	}
}

// slow is a stream that a phone sends when it likes.
type slow struct {
	asked chan<- struct{} // gets one element when the stream is read
	sends <-chan struct{} // closed when the rest comes
}

func (s slow) Read([]byte) (int, error) {
	s.asked <- struct{}{}
	<-s.sends
	return 0, io.EOF
}

func TestSlowPhonesKeepNoOthersWaiting(t *testing.T) {
	r := fakeReader(t, "good")
	r.Limits.Children = 2
	asked, sends := make(chan struct{}, 3), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer sync.OnceFunc(func() { close(sends) })()
	for range 3 {
		wg.Go(func() {
			stream := io.MultiReader(strings.NewReader("beginning"), slow{asked, sends})
			if _, err := r.Read(t.Context(), FromReader("slow", stream), text); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		select {
		case <-asked:
		case <-ctx.Done():
			t.Fatal("a slow stream waits for its place before it is read")
		}
	}
	if _, err := r.Read(ctx, FromBytes("quick", []byte("x")), text); err != nil {
		t.Errorf("a document of another phone: %v", err)
	}
}

func TestDocumentsInMemoryAreBoundedTogether(t *testing.T) {
	r := fakeReader(t, "good")
	r.Limits.InputBytes, r.Limits.SpoolBytes = 100, 250
	asked, sends := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			stream := io.MultiReader(bytes.NewReader(make([]byte, 100)), slow{asked, sends})
			if _, err := r.Read(t.Context(), FromReader("slow", stream), text); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		<-asked
	}
	_, err := r.Read(t.Context(), FromBytes("x", make([]byte, 51)), text)
	if !wire.Is(err, wire.DocumentTooLarge) || !strings.Contains(err.Error(), "together with the documents that are read now exceeds 250 bytes") {
		t.Errorf("51 bytes where 50 are left: %v", err)
	}
	if _, err := r.Read(t.Context(), FromBytes("x", make([]byte, 50)), text); err != nil {
		t.Errorf("50 bytes where 50 are left: %v", err)
	}
	close(sends)
	wg.Wait()
	if n := r.spooled.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

func TestProgramThatCannotBeStarted(t *testing.T) {
	for _, program := range [][]string{nil, {"/none"}} {
		r := &Reader{Program: program}
		if _, err := r.Read(t.Context(), FromBytes("x", []byte("x")), text); !wire.Is(err, wire.DocumentCrashed) || !strings.Contains(err.Error(), "starting made its reader fail") {
			t.Error(err)
		}
	}
}

// TestNothingLeaks counts what this process has before and after many children that end in all ways.
func TestNothingLeaks(t *testing.T) {
	round := func() {
		for _, part := range []string{"good", "exit", "abort", "segfault", "flood", "hang", "close stdout", "offspring", "too many bytes"} {
			r := fakeReader(t, part)
			r.Limits.Wall = 100 * time.Millisecond
			_, _ = r.Read(t.Context(), FromBytes("x", []byte("x")), Request{Text: true, Images: true})
		}
		_, _ = fakeReader(t, "good").Read(t.Context(), FromReader("x", failing{io.ErrClosedPipe}), text)
		_, _ = (&Reader{Program: []string{"/none"}}).Read(t.Context(), FromBytes("x", []byte("x")), text)
	}
	round()
	before := holdings(t)
	for range 8 {
		round()
	}
	if after := holdings(t); after.files > before.files || after.children > 0 || after.bytes > before.bytes+32<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// held is what a process has of the system.
type held struct {
	files, children int
	bytes           int // resident
}

func holdings(t *testing.T) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h := held{files: len(files)}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatal("no lists of children", err)
	}
	for _, list := range tasks {
		b, _ := os.ReadFile(list) // zombies too; nothing of a thread that has ended meanwhile
		h.children += len(strings.Fields(string(b)))
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(statm), "%d %d", new(int), &h.bytes); err != nil {
		t.Fatal(err)
	}
	h.bytes *= os.Getpagesize()
	return h
}
