package search

// Terms are the terms of a text, as an index or a query has them.
func Terms(text string, query bool) []string {
	var all []string
	split(text, query, func(term string) { all = append(all, term) })
	return all
}
