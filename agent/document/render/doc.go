// Package render is the child that reads one document, for package document: the only user of go-fitz, and so of MuPDF.
//
// [Main] takes the request from the standard input, puts limits on its own process ([confine]), maps the document, finds
// its kind, opens it and answers on the standard output, frame by frame. Before each step that may end the process it says
// which one it is: MuPDF calls exit(1) for errors that its Go binding does not catch, takes any time and any memory that
// a file asks for, and may be made to do worse. Nothing here recovers from that; the parent does.
//
// go-fitz has traps that this package goes round:
//   - failed opens leak, warnings are dropped, Bound cuts fractions off, pictures whose page does not start at the origin
//     are copied from outside their memory, and metadata comes with the rest of a C buffer;
//   - it has no call for passwords: package render calls MuPDF's own function through the document's table of functions,
//     which is why the version is checked ([authenticate]);
//   - no font for Chinese, Japanese or Korean is linked: see package pdffont.
package render
