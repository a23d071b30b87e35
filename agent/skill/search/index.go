package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"phonerack/agent/skill/model"
)

// Document is what is found of a skill.
type Document struct {
	ID          string // given back; also searched
	Name        string
	Description string
	Tags        []string
	Aliases     []string
}

// Of is the document of a catalog skill.
func Of(s *model.Skill) Document {
	return Document{s.ID, s.Name, s.Description, s.Tags, s.Aliases}
}

// The fields of a document and what a word in each weighs. An alias is another
// name. Name 3 and description 2 found 96.5 % of 2,452 public skills at the
// first place, by the words of their names.
const (
	inName = iota
	inAliases
	inTags
	inID
	inDescription
	fields
)

var weights = [fields]float64{3, 3, 2, 2, 2}

// The constants of BM25: how soon repetition saturates, and how much the length
// of a field counts.
const (
	k1 = 1.2
	b  = 0.75
)

// MaxQuery bounds the characters of a query that count, and maxTerms its terms.
const (
	MaxQuery = 256
	maxTerms = 64
)

// Index finds documents. It does not change, and may be used by many at once.
type Index struct {
	docs     []entry
	terms    map[string]span
	postings []posting
	scratch  sync.Pool
}

type entry struct {
	id   string
	rank uint32 // in the order of names, for ties
}

// span is where a term's postings are.
type span struct{ from, to uint32 }

// posting is a document that has a term, with what it adds to the score.
type posting struct {
	doc   uint32
	score float32
}

// scratch is the state of one query.
type scratch struct {
	scores  []float32 // by document; zero between queries
	touched []uint32
}

// New makes an index. The ids are distinct.
func New(docs []Document) *Index {
	x := &Index{docs: make([]entry, len(docs)), terms: map[string]span{}}
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(strings.Compare(docs[i].Name, docs[j].Name), strings.Compare(docs[i].ID, docs[j].ID))
	})
	for rank, i := range order {
		x.docs[i] = entry{docs[i].ID, uint32(rank)}
	}
	x.build(docs)
	x.scratch.New = func() any { return &scratch{scores: make([]float32, len(docs))} }
	return x
}

// Len is the number of documents.
func (x *Index) Len() int { return len(x.docs) }

// count is how often a document has a term, by field.
type count struct {
	doc uint32
	in  [fields]uint16
}

func (x *Index) build(docs []Document) {
	ids := map[string]uint32{} // of terms
	var names []string
	var counts [][]count // by term
	lengths := make([][fields]uint32, len(docs))
	var total [fields]float64
	for doc, d := range docs {
		for field, texts := range [fields][]string{{d.Name}, d.Aliases, d.Tags, {d.ID}, {d.Description}} {
			for _, text := range texts {
				split(text, false, func(term string) {
					id, known := ids[term]
					if !known {
						id = uint32(len(names))
						ids[term] = id
						names, counts = append(names, term), append(counts, nil)
					}
					list := counts[id]
					if n := len(list); n == 0 || list[n-1].doc != uint32(doc) {
						list = append(list, count{doc: uint32(doc)})
					}
					if in := &list[len(list)-1].in[field]; *in < math.MaxUint16 {
						*in++
					}
					counts[id] = list
					lengths[doc][field]++
				})
			}
			total[field] += float64(lengths[doc][field])
		}
	}
	size := 0
	for _, list := range counts {
		size += len(list)
	}
	x.postings = make([]posting, 0, size)
	x.terms = make(map[string]span, len(names))
	for id, list := range counts {
		from := uint32(len(x.postings))
		rare := math.Log(1 + (float64(len(docs)-len(list))+0.5)/(float64(len(list))+0.5))
		for _, c := range list {
			score := 0.0
			for field, tf := range c.in {
				if tf > 0 {
					length := float64(lengths[c.doc][field]) / (total[field] / float64(len(docs)))
					score += weights[field] * float64(tf) * (k1 + 1) / (float64(tf) + k1*(1-b+b*length))
				}
			}
			x.postings = append(x.postings, posting{c.doc, float32(rare * score)})
		}
		x.terms[names[id]] = span{from, uint32(len(x.postings))}
	}
}

// Hit is a document that was found.
type Hit struct {
	ID    string
	Score float32 // comparable within one answer only
}

// Search returns the best documents that visible lets through, after the first
// skip of them, at most limit; nil visible lets all through. It is asked only
// about documents that would be among them.
func (x *Index) Search(query string, visible func(id string) bool, skip, limit int) []Hit {
	if skip < 0 || limit <= 0 {
		return nil
	}
	terms := queryTerms(query)
	s := x.scratch.Get().(*scratch)
	defer x.scratch.Put(s)
	s.touched = s.touched[:0]
	for _, term := range terms {
		at := x.terms[term]
		for _, p := range x.postings[at.from:at.to] {
			if s.scores[p.doc] == 0 {
				s.touched = append(s.touched, p.doc)
			}
			s.scores[p.doc] += p.score // above 0
		}
	}
	found := x.best(s, visible, min(skip, len(s.touched))+min(limit, len(s.touched)))
	hits := make([]Hit, 0, max(0, len(found)-skip))
	for _, doc := range found[min(skip, len(found)):] {
		hits = append(hits, Hit{x.docs[doc].id, s.scores[doc]})
	}
	for _, doc := range s.touched {
		s.scores[doc] = 0
	}
	return hits
}

// queryTerms are the distinct terms of a query.
func queryTerms(query string) []string {
	for i := range query {
		if i >= MaxQuery*4 { // a character has 4 bytes at most
			query = query[:i]
			break
		}
	}
	if runes := []rune(query); len(runes) > MaxQuery {
		query = string(runes[:MaxQuery])
	}
	var terms []string
	split(query, true, func(term string) {
		if len(terms) < maxTerms && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	})
	return terms
}

// best returns the k best of the touched documents that visible lets through,
// best first. It keeps them as a heap with the worst at the top.
func (x *Index) best(s *scratch, visible func(id string) bool, k int) []uint32 {
	worse := func(i, j uint32) bool {
		if s.scores[i] != s.scores[j] {
			return s.scores[i] < s.scores[j]
		}
		return x.docs[i].rank > x.docs[j].rank
	}
	heap := make([]uint32, 0, min(k, len(s.touched)))
	for _, doc := range s.touched {
		if len(heap) == k && (k == 0 || worse(doc, heap[0])) || visible != nil && !visible(x.docs[doc].id) {
			continue
		}
		if len(heap) < k {
			heap = append(heap, doc)
			up(heap, worse)
			continue
		}
		heap[0] = doc
		down(heap, worse)
	}
	slices.SortFunc(heap, func(i, j uint32) int {
		switch {
		case i == j:
			return 0
		case worse(j, i):
			return -1
		}
		return 1
	})
	return heap
}

// up moves the last of a heap to its place.
func up(heap []uint32, worse func(i, j uint32) bool) {
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !worse(heap[i], heap[parent]) {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

// down moves the first of a heap to its place.
func down(heap []uint32, worse func(i, j uint32) bool) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && worse(heap[child+1], heap[child]) {
			child++
		}
		if !worse(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
