package runner

import (
	"image"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
)

// Tokens are estimated where the planner does not count them: perception.Tokens
// of the system prompt, the user prompt, the names, descriptions and schemas of
// the tools and the arguments of the answer, and for a picture one token for
// each tile of 28x28 pixels once its longer side is at most 1568 pixels, at most
// 1568 in all.
const (
	tileSide = 28
	maxEdge  = 1568
	maxTiles = 1568
)

func toolTokens(offer []planner.Tool) int {
	n := 0
	for _, t := range offer {
		n += perception.Tokens(t.Name) + perception.Tokens(t.Description) + perception.Tokens(string(t.InputSchema))
	}
	return n
}

func pictureTokens(size image.Point) int {
	if longer := max(size.X, size.Y); longer > maxEdge {
		size = image.Pt(size.X*maxEdge/longer, size.Y*maxEdge/longer)
	}
	tiles := func(n int) int { return (n + tileSide - 1) / tileSide }
	return min(tiles(size.X)*tiles(size.Y), maxTiles)
}
