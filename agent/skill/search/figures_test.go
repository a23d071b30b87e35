package search_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"phonerack/agent/skill/search"
)

// size is a catalog as large as any that was measured.
const size = 2500

// TestIndexIsSmall holds an index of 2,500 skills to 4 MiB, their texts apart.
func TestIndexIsSmall(t *testing.T) {
	docs, _ := collection(1, size)
	before := heap()
	start := time.Now()
	x := search.New(docs)
	took := time.Since(start)
	used := heap() - before
	runtime.KeepAlive(docs)
	t.Logf("%d documents: %.2f MiB, built in %v", x.Len(), float64(used)/(1<<20), took)
	if used > 4<<20 {
		t.Errorf("the index has %d bytes", used)
	}
	runtime.KeepAlive(x)
}

// BenchmarkIndex2500 makes the index of 2,500 skills, and tells what it keeps, their texts apart. It fails above 4 MiB.
func BenchmarkIndex2500(b *testing.B) {
	docs, _ := collection(1, size)
	for b.Loop() {
		search.New(docs)
	}
	before := heap()
	x := search.New(docs)
	kept := heap() - before
	b.ReportMetric(float64(kept)/(1<<20), "MiB-kept")
	if kept > 4<<20 {
		b.Errorf("the index has %d bytes", kept)
	}
	runtime.KeepAlive(docs)
	runtime.KeepAlive(x)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// plain is what a search can cost at least: a map of the terms, and a sort of all
// documents that they name.
type plain map[string][]uint32

func newPlain(docs []search.Document) plain {
	p := plain{}
	for i, d := range docs {
		for _, text := range slices.Concat([]string{d.Name, d.ID, d.Description}, d.Tags, d.Aliases) {
			for _, term := range search.Terms(text, false) {
				if list := p[term]; len(list) == 0 || list[len(list)-1] != uint32(i) {
					p[term] = append(list, uint32(i))
				}
			}
		}
	}
	return p
}

func (p plain) search(terms []string, seen []bool) []uint32 {
	var found []uint32
	for _, term := range terms {
		for _, doc := range p[term] {
			if !seen[doc] {
				seen[doc] = true
				found = append(found, doc)
			}
		}
	}
	for _, doc := range found {
		seen[doc] = false
	}
	slices.Sort(found)
	return found
}

// BenchmarkSearch measures a query and the plain map by turns, so that both have
// the same machine. It fails if a query costs more than three times the map.
func BenchmarkSearch(b *testing.B) {
	docs, _ := collection(1, size)
	x, p := search.New(docs), newPlain(docs)
	visible := map[string]bool{}
	var queries []string
	for i, d := range docs {
		visible[d.ID] = i%10 != 0
	}
	for i := range 200 {
		_, query := collection(uint64(i), 0)
		queries = append(queries, query)
	}
	terms := make([][]string, len(queries))
	for i, q := range queries {
		terms[i] = search.Terms(q, true)
	}
	seen := make([]bool, len(docs))
	var ours, theirs []time.Duration
	see := func(id string) bool { return visible[id] }
	for i := 0; b.Loop(); i++ {
		q := i % len(queries)
		start := time.Now()
		hits := x.Search(queries[q], see, 0, 20)
		middle := time.Now()
		found := p.search(terms[q], seen)
		theirs = append(theirs, time.Since(middle))
		ours = append(ours, middle.Sub(start))
		if len(found) < len(hits) {
			b.Fatalf("%q: %d hits of %d", queries[q], len(hits), len(found))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	p50, p99 := ours[len(ours)/2], ours[len(ours)*99/100]
	base50, base99 := theirs[len(theirs)/2], theirs[len(theirs)*99/100]
	b.ReportMetric(float64(p50.Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(p99.Nanoseconds()), "p99-ns")
	b.ReportMetric(float64(base50.Nanoseconds()), "map-p50-ns")
	b.ReportMetric(float64(base99.Nanoseconds()), "map-p99-ns")
	b.ReportMetric(float64(p50)/float64(base50), "p50-of-map")
	b.ReportMetric(float64(p99)/float64(base99), "p99-of-map")
	if len(ours) > 1000 && (p50 > 3*base50 || p99 > 3*base99) {
		b.Errorf("a query takes %v (p99 %v), and a plain map %v (%v)", p50, p99, base50, base99)
	}
}
