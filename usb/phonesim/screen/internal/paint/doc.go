// Package paint draws the shapes of a phone's screen on an RGBA image: rectangles with round corners,
// borders, shadows, gradients and the pictures that apps declare.
package paint
