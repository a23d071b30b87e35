package runner

import (
	"image"

	"phonerack/agent/planner"
)

// Tokens are estimated where the planner does not count them: a quarter of a
// token for each ASCII character and a whole one for any other, over the system
// prompt, the user prompt, the names, descriptions and schemas of the tools, and
// the arguments of the answer; for a picture one token for each tile of 28x28
// pixels once its longer side is at most 1568 pixels, at most 1568 in all.
const (
	asciiPerToken = 4
	tileSide      = 28
	maxEdge       = 1568
	maxTiles      = 1568
)

func textTokens(s string) int {
	ascii, others := 0, 0
	for _, r := range s {
		if r < 0x80 {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+asciiPerToken-1)/asciiPerToken + others
}

func toolTokens(offer []planner.Tool) int {
	n := 0
	for _, t := range offer {
		n += textTokens(t.Name) + textTokens(t.Description) + textTokens(string(t.InputSchema))
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
