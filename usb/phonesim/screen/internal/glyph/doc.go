// Package glyph turns text into positioned glyphs and glyphs into masks.
//
// Latin and Arabic fonts are embedded. The Chinese font is large and is read from the machine when the
// first Han character appears; where it is missing, Check says which package has it. A character that no
// font has is an error of Check, never a box on the screen.
package glyph
