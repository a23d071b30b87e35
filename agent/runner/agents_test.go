package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
)

// agentsVariable names the variable that makes this test binary a process of
// agents alone, so that its memory is theirs: "PHONES SECONDS STEPS", of which the
// last two bound it.
const agentsVariable = "PHONERACK_AGENTS"

// What a phone and a planner take by themselves, about as a phone at USB 2 with
// its own dumper and a quick model do.
const (
	treeTakes   = 900 * time.Millisecond
	stateTakes  = 60 * time.Millisecond
	actTakes    = 80 * time.Millisecond
	planTakes   = 1500 * time.Millisecond
	framesPerMB = 33 * time.Millisecond // 30 MB/s
)

// measured is what the process of agents prints.
type measured struct {
	Steps      int     `json:"steps"`
	P50, P95   float64 // added per step in milliseconds
	MiB        float64 // peak of the resident memory
	Elements   int     // of a scene
	PhoneWaits float64 // of a step, for comparison
}

// agents runs n phones for a while and prints what it measured.
func agents(spec string) int {
	var n, seconds, steps int
	if _, err := fmt.Sscan(spec, &n, &seconds, &steps); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	raw := rawFrame()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	all := make([]*meter, n)
	var wg sync.WaitGroup
	var done atomic.Int64
	for i := range all {
		all[i] = &meter{raw: raw, counted: func() {
			if done.Add(1) >= int64(steps) {
				cancel()
			}
		}}
		wg.Go(func() { all[i].work(ctx, filepath.Join(dir, strconv.Itoa(i))) })
	}
	wg.Wait()
	m := summary(all)
	if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
		return 1
	}
	return 0
}

func summary(all []*meter) measured {
	var m measured
	var added, waits []float64
	for _, one := range all {
		added = append(added, one.added...)
		waits = append(waits, one.waits...)
		m.Elements = one.elements
	}
	slices.Sort(added)
	slices.Sort(waits)
	m.Steps = len(added)
	m.P50, m.P95 = quantile(added, .5), quantile(added, .95)
	m.PhoneWaits = quantile(waits, .5)
	m.MiB = peakMiB()
	return m
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return -1
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// peakMiB is the largest resident memory that this process had.
func peakMiB() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		return -1
	}
	return kib / 1024
}

// meter is a phone and its planner, and keeps how long they were waited for: the
// time in which at least one of their answers is on its way.
type meter struct {
	tools.Unsupported
	raw     []byte
	counted func() // called after each step that was measured

	mu      sync.Mutex // guards what follows
	waiting int        // answers on their way
	since   time.Time  // when waiting rose from 0
	waited  time.Duration
	screen  int // changes with each act

	added    []float64 // per step, in milliseconds
	waits    []float64
	elements int
}

func (m *meter) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting++; m.waiting == 1 {
		m.since = time.Now()
	}
}

func (m *meter) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting--; m.waiting == 0 {
		m.waited += time.Since(m.since)
	}
}

// takes waits as long as the phone or the planner would.
func (m *meter) takes(ctx context.Context, d time.Duration) error {
	m.enter()
	defer m.leave()
	return sleep(ctx, d)
}

func (m *meter) Tree(ctx context.Context) ([]byte, error) {
	err := m.takes(ctx, treeTakes)
	m.mu.Lock()
	defer m.mu.Unlock()
	return dump(m.screen), err
}

func (m *meter) State(ctx context.Context) phone.State {
	if err := m.takes(ctx, stateTakes); err != nil {
		return phone.State{FocusErr: err, DisplayErr: err, KeyboardErr: err, WindowsErr: err, LockErr: err}
	}
	return phone.State{
		Focus: phone.Focus{Package: "com.example.mail", Activity: ".Inbox"}, Display: phone.Display{Width: 1080, Height: 2400, Density: 420},
		Lock: phone.Lock{Awake: true},
	}
}

func (m *meter) Screenshot(ctx context.Context) (*frame.Picture, error) {
	m.mu.Lock()
	seed := m.screen
	m.mu.Unlock()
	return frame.ReadRaw(ctx, &stream{meter: m, ctx: ctx, rest: m.raw, seed: byte(seed), begun: time.Now()}, frame.Options{Mask: 63})
}

func (m *meter) Tap(ctx context.Context, _, _ int) error {
	err := m.takes(ctx, actTakes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.screen++
	return err
}

// Decide taps one row after the other.
func (m *meter) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	if err := m.takes(ctx, planTakes); err != nil {
		return planner.Decision{}, err
	}
	_, at, _ := strings.Cut(req.UserPrompt, "\nscreen ")
	generation, _, _ := strings.Cut(at, ":")
	m.elements = strings.Count(at, "\n") - 1
	for line := range strings.SplitSeq(at, "\n") {
		index, rest, _ := strings.Cut(line, "] ")
		if strings.HasPrefix(rest, "item ") && rand.N(3) == 0 {
			return planner.Decision{Tool: "tap", Arguments: json.RawMessage(`{"element":` + index[1:] + `,"generation":` + generation + `}`)}, nil
		}
	}
	return planner.Decision{Tool: "tap", Arguments: json.RawMessage(`{"element":0,"generation":` + generation + `}`)}, nil
}

// work runs tasks until ctx ends.
func (m *meter) work(ctx context.Context, dir string) {
	if sleep(ctx, rand.N(3*time.Second)) != nil { // phones are not in step
		return
	}
	for ctx.Err() == nil {
		begun, waited := time.Now(), m.waited
		step := func(s Step) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if all := time.Since(begun); s.N > 1 && s.Kind == "" && ctx.Err() == nil { // the first has a look of its own
				phone := m.waited - waited
				m.added = append(m.added, float64((all-phone).Microseconds())/1000)
				m.waits = append(m.waits, float64(phone.Microseconds())/1000)
				m.counted()
			}
			begun, waited = time.Now(), m.waited
		}
		r := &Runner{
			Observer: perception.NewObserver(m, perception.Options{}), Controls: m, Planner: m, Slot: 1, Phone: "STUB", Pictures: PicturesAlways,
			Trajectory: dir, OnStep: step,
		}
		if _, err := r.Run(ctx, Task{Goal: "read the mail", MaxSteps: 30}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}

// stream sends a raw frame as fast as the cable carries it. Everything but the
// reading of it is the phone's time.
type stream struct {
	meter *meter
	ctx   context.Context
	rest  []byte
	sent  int
	seed  byte
	begun time.Time
}

func (s *stream) Read(p []byte) (int, error) {
	s.meter.enter()
	defer s.meter.leave()
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	if s.sent == 0 && n > 20 {
		p[17] = s.seed // no two screens are the same
	}
	s.sent += n
	due := time.Duration(s.sent) * framesPerMB / 1_000_000
	if ahead := due - time.Since(s.begun); ahead > 2*time.Millisecond {
		if err := sleep(s.ctx, ahead); err != nil {
			return n, err
		}
	}
	return n, nil
}

// rawFrame is what screencap sends of a screen of 1080x2400 with rows of text.
func rawFrame() []byte {
	const width, height = 1080, 2400
	b := make([]byte, 16, 16+4*width*height)
	for i, v := range []uint32{width, height, 1, 1} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			grey := byte(250)
			if y%150 > 40 && y%150 < 110 && x > 160 && (x/7+y/9)%3 == 0 {
				grey = byte(rng.IntN(120))
			}
			b = append(b, grey, grey, grey/2+120, 255)
		}
	}
	return b
}

// dump is an element tree of 112 KB: a list of mails, as many apps show one.
func dump(screen int) []byte {
	const size = 112 << 10
	var b bytes.Buffer
	b.WriteString(`<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation="0">`)
	node := func(class, id, text string, clickable bool, y1, y2 int, children string) string {
		return fmt.Sprintf(`<node index="0" text="%s" resource-id="com.example.mail:id/%s" class="android.%s" package="com.example.mail" content-desc="" `+
			`checkable="false" checked="false" clickable="%t" enabled="true" focusable="%t" focused="false" scrollable="false" long-clickable="false" `+
			`password="false" selected="false" bounds="[0,%d][1080,%d]">%s</node>`, text, id, class, clickable, clickable, y1, y2, children)
	}
	b.WriteString(`<node index="0" text="" resource-id="com.example.mail:id/list" class="androidx.recyclerview.widget.RecyclerView" package="com.example.mail" ` +
		`content-desc="" checkable="false" checked="false" clickable="false" enabled="true" focusable="true" focused="false" scrollable="true" ` +
		`long-clickable="false" password="false" selected="false" bounds="[0,80][1080,2400]">`)
	for i := 0; b.Len() < size; i++ {
		y := 80 + i*30
		inner := node("widget.TextView", "sender", fmt.Sprintf("Sender %d of screen %d", i, screen), false, y, y+10, "") +
			node("widget.TextView", "subject", fmt.Sprintf("Subject %d: what is to be done about it", i), false, y+10, y+20, "") +
			node("widget.TextView", "snippet", "The first words of a mail, as far as they fit in a line of a list", false, y+20, y+29, "") +
			node("widget.ImageView", "star", "", i%4 == 0, y, y+29, "")
		b.WriteString(node("view.ViewGroup", "row", "", true, y, y+29, inner))
	}
	b.WriteString(`</node></hierarchy>`)
	return b.Bytes()
}

// measure runs a process of agents for so long, or until they have taken so many
// steps together.
func measure(tb testing.TB, phones, seconds, steps int) measured {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Duration(seconds)*time.Second+time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", agentsVariable, phones, seconds, steps))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var m measured
	if err = errors.Join(err, json.Unmarshal(out, &m)); err != nil {
		tb.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	return m
}

// BenchmarkAgentStep measures the time that the agent adds to a step: its
// duration without what the phone and the planner take, over stubs that answer
// as slowly as real ones, with a tree of 112 KB and raw pictures of 1080x2400.
// rss_mib is the peak of the whole process.
func BenchmarkAgentStep(b *testing.B) {
	for _, phones := range []int{1, 40} {
		b.Run(fmt.Sprintf("phones=%d", phones), func(b *testing.B) {
			for range b.N {
				m := measure(b, phones, 60, 1<<30)
				if m.Steps < 5*phones {
					b.Fatalf("%d steps only", m.Steps)
				}
				b.ReportMetric(m.P50, "p50_ms")
				b.ReportMetric(m.P95, "p95_ms")
				b.ReportMetric(m.PhoneWaits, "phone_p50_ms")
				b.ReportMetric(m.MiB, "rss_mib")
				b.ReportMetric(float64(m.Steps), "steps")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
