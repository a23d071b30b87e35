// Package document makes text and pictures of documents: PDF, EPUB, XPS, CBZ, SVG and images.
//
// A [Reader] reads one document at a call of [Reader.Read], in a process of its own that is started for it and gone when
// the call returns. That process (package render, the sub-command `rackd render-document`) runs MuPDF, which ends the
// whole process on some files and never ends on others; it has limits on memory, processor time, files and wall clock
// time, no environment and no way to the network. This package never parses a document itself: what the child answers is
// untrusted too, bounded and checked.
//
// What goes wrong is a *wire.Refusal, one sentence long. A page that can be read in part only says so in
// [Page.Problems]; no page is silently blank.
//
// [Document.Text] renders a document as lines for a planner. No text of a document can forge one of them.
package document
