// Package pdffont finds the fonts that a PDF uses and does not carry.
//
// A composite font (Type 0), the kind that Chinese, Japanese and Korean text is set in, means nothing without the font
// file: MuPDF as it is linked here has no such fonts, draws nothing or other characters and makes wrong text. [Scan] reads
// the structure of the file itself, without its cross-reference tables: it looks for each object, the last of a number
// counts, and reads object streams. Simple fonts are left out: they have substitutes.
//
// Everything is bounded; a file that is beyond a bound or makes no sense gives an error, and then nothing is known.
package pdffont
