package perception

import (
	"image"
	"sync"
)

// tree is a dump as a flat list: a node's ancestors and descendants are found
// without recursion. Its strings lie in the dump, so that a node costs nothing
// of its own; trees are used again, see release.
type tree struct {
	src      []byte      // the dump
	side     []byte      // strings that are not in the dump as they are: decoded or joined ones
	nodes    []node      // in document order: a subtree is contiguous
	names    names       // classes, packages and ids
	rotation int         // of the root, -1 if it has none
	size     image.Point // of the root in pixels, which Appium's server tells; zero if it has none
	cut      bool        // nodes were left out
	hints    bool        // hints stand in attributes of their own, though they may all be empty
	parsed   int         // bytes of side that the parser wrote
	work     []int32     // a list of nodes, for condensing
}

type node struct {
	parent int32 // index in nodes, -1 below the root
	end    int32 // index behind the last descendant
	depth  int32
	order  int32 // drawing order among siblings, 0 if not known

	text, desc, hint span
	id, class, pkg   int32 // names
	bounds           box
	flags            flags

	// What condensing finds out.
	rect   box    // bounds on the screen, empty if not visible
	clip   box    // where its children can be seen
	path   uint64 // hash of the classes and ids of the ancestors
	label  span   // text that a touchable node has from its children
	toggle int32  // the checkable child that a touchable row stands for, 0 if none
}

// span is a string of a tree: n bytes of the dump from at on, or of side from
// ^at on.
type span struct{ at, n int32 }

// bytes returns a string of the tree.
func (t *tree) bytes(s span) []byte {
	if s.at < 0 {
		return t.side[^s.at : ^s.at+s.n]
	}
	return t.src[s.at : s.at+s.n]
}

type flags uint32

const (
	checkable flags = 1 << iota
	checked
	clickable
	disabled
	focusable
	focused
	scrollable
	longClickable
	password
	selected
	editable
	invisible
	hinting    // its text is its hint
	notHinting // its text is not its hint, whatever it says

	inWeb   // lies in a web page
	foreign // belongs to a bar of the system or to the keyboard
	folded  // said by an ancestor, or covered
)

func (n *node) has(f flags) bool { return n.flags&f != 0 }

// trees keeps the memory of trees between observations, of all phones together.
var trees = sync.Pool{New: func() any { return new(tree) }}

// Trees that grew beyond maxKept nodes or bytes of strings are not kept.
const (
	maxKept     = 4096
	maxKeptSide = 256 << 10
)

// release gives the memory of t back; t and its spans must not be used again.
func (t *tree) release() {
	if cap(t.nodes) > maxKept || cap(t.side) > maxKeptSide || cap(t.names.list) > maxKept {
		return
	}
	t.src = nil // up to 16 MiB
	trees.Put(t)
}
