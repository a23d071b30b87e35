package perception

import "math/bits"

// names are the classes, packages and ids of a tree, each kept once: the nodes of
// a screen share a few dozen. Name 0 is "".
type names struct {
	list  []name
	slots []int32 // open addressing by hash: 0 is free, else a name
	last  int32   // package that was taken last
}

// name is one of them.
type name struct {
	at   span
	hash uint64
	role role  // that the class with this name has
	out  int32 // where it stands among the strings of the scene, -1 nowhere yet
}

// maxProbes bounds the search for a name; behind that it is kept twice, so that
// names made to collide cost nothing.
const maxProbes = 32

func (n *names) reset() {
	n.list = append(n.list[:0], name{out: -1, hash: hashText(0, "")})
	n.last = 0
	if n.slots == nil {
		n.slots = make([]int32, 256)
	}
	clear(n.slots)
}

// name returns the number of a name.
func (t *tree) name(s span) int32 {
	if s.n == 0 {
		return 0
	}
	text := t.bytes(s)
	h := hashText(0, text)
	n := &t.names
	mask := uint64(len(n.slots) - 1)
	slot := h & mask
	for range maxProbes {
		i := n.slots[slot]
		if i == 0 {
			break
		}
		if n.list[i].hash == h && string(t.bytes(n.list[i].at)) == string(text) {
			return i
		}
		slot = (slot + 1) & mask
	}
	i := int32(len(n.list))
	n.list = append(n.list, name{at: s, hash: h, role: classRole(text), out: -1})
	if n.slots[slot] == 0 {
		n.slots[slot] = i
	}
	if len(n.list)*2 > len(n.slots) {
		n.grow()
	}
	return i
}

// grow doubles the slots.
func (n *names) grow() {
	n.slots = make([]int32, 2*len(n.slots))
	mask := uint64(len(n.slots) - 1)
	for i := 1; i < len(n.list); i++ {
		slot := n.list[i].hash & mask
		for range maxProbes {
			if n.slots[slot] == 0 {
				n.slots[slot] = int32(i)
				break
			}
			slot = (slot + 1) & mask
		}
	}
}

// pack returns the name of a package, which is nearly always the last one's.
func (t *tree) pack(s span) int32 {
	n := &t.names
	if string(t.bytes(n.list[n.last].at)) != string(t.src[s.at:s.at+s.n]) {
		n.last = t.name(s)
	}
	return n.last
}

// text returns the bytes of a name.
func (t *tree) text(i int32) []byte { return t.bytes(t.names.list[i].at) }

// hashText hashes s on top of a hash, eight bytes at a time. It is the same on
// every machine, and not made to withstand an attacker.
func hashText[T string | []byte](h uint64, s T) uint64 {
	n := len(s)
	for ; len(s) >= 8; s = s[8:] {
		h = mix(h, uint64(s[0])|uint64(s[1])<<8|uint64(s[2])<<16|uint64(s[3])<<24|
			uint64(s[4])<<32|uint64(s[5])<<40|uint64(s[6])<<48|uint64(s[7])<<56)
	}
	var rest uint64
	for i := range len(s) {
		rest = rest<<8 | uint64(s[i])
	}
	return mix(mix(h, rest), uint64(n))
}

// mix folds the product of two words. Neither constant is valid UTF-8, so that
// no text makes a factor zero.
func mix(h, v uint64) uint64 {
	high, low := bits.Mul64(h^0x9E3779B97F4A7C15, v^0xD1B54A32D192ED03)
	return high ^ low
}

// ends reports whether s ends in end.
func ends[T string | []byte](s T, end string) bool {
	return len(s) >= len(end) && string(s[len(s)-len(end):]) == end
}
