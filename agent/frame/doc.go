// Package frame holds pictures of screens: how they are made of what a phone
// sends, how they are compared, and how they are marked.
//
// A [Picture] is a JPEG with the few numbers that it is compared by; the pixels
// of the screen are not kept.
package frame
