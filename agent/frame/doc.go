// Package frame holds pictures of screens: how they are made of what a phone
// sends, how they are compared, and how they are marked.
//
// A [Picture] is a JPEG with the few numbers that it is compared by; the pixels
// of the screen are not kept. [ReadRaw], [ReadGzip] and [ReadPNG] make one from a
// stream while it arrives, a few rows at a time: rows are averaged to target
// pixels, converted to luma and chroma, and every 16 target rows go through the
// DCT into the JPEG. [ReadJPEG] has to hold the picture.
//
// All of a process's pictures are made in a few buffer sets, one more than
// processors (see pool). A stream takes a set when its first pixels have arrived
// and gives it back when it is complete, broken, or makes no progress, so that
// a phone that stalls takes nothing from the others.
//
// The loops over pixels are marked go:norace: with the race detector they would
// take ten times as long. Who works on a set is watched in what calls them, which
// counts the set's rows.
//
// What a phone sends is untrusted: sides, bytes and times have bounds, lengths
// and checksums are verified, and a stream that is not exactly what it says is
// an error, never a picture.
package frame
