// Package search finds skills by words, in memory: BM25 summed over fields, with
// bigrams for scripts that are written without blanks. An [Index] is made anew
// from a catalog, which takes some 50 ms for 2,500 skills, and does not change;
// the bodies of skills are not in it. On a corpus of public skills, indexing them
// made the answers no better and the index nine times as large.
//
// Texts and queries are folded alike: NFKC (full-width and half-width forms are
// one), lower case, invisible characters dropped, words split at hyphens and all
// that is no letter, digit or mark. A run of Chinese, Japanese, Korean, Thai and
// their like becomes pairs of characters; single characters are found too.
//
// Who asks sees only what a predicate lets through, and it is asked before the
// best are chosen: what is hidden takes no place. The same index and query give
// the same answer, ties in order of name. How rare a word is counts over the
// whole index, also what is hidden; scores are for ranking and not for showing.
package search
