package toolstest

import (
	"fmt"
	"hash/fnv"

	"phonerack/agent/perception"
)

// hash is equal for scenes that show the same.
func hash(s *perception.Scene) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %d %d %v %q\n", s.Package, s.Activity, s.Width, s.Height, s.Keyboard, s.NoTree)
	for _, e := range s.Elements {
		fmt.Fprintf(h, "%+v\n", e)
	}
	if s.Picture != nil {
		h.Write(s.Picture.Thumb[:])
	}
	return h.Sum64()
}
