package render

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/gen2brain/go-fitz"

	"phonerack/agent/document"
	"phonerack/agent/document/internal/protocol"
)

// storeBytes bounds what MuPDF keeps for later: fonts, decoded pictures.
const storeBytes = 64 << 20

// testedMuPDF is the version whose table of functions authenticate knows.
const testedMuPDF = "1.28.0"

// formats are what MuPDF calls the kinds, or how its names begin. It looks at the content too and may see something else
// than kindOf did.
var formats = map[document.Kind][]string{
	document.PDF: {"PDF"}, document.EPUB: {"EPUB"}, document.XPS: {"XPS"}, document.SVG: {"SVG"},
	document.CBZ: {"zip", "cbz", "CBZ"},
	document.PNG: {"Image"}, document.JPEG: {"Image"}, document.GIF: {"Image"}, document.JP2: {"Image"},
	document.BMP: {"BMP", "Image"}, document.TIFF: {"TIFF", "Image"},
}

// open opens the document. It is never closed: the process ends with it.
func open(text []byte, kind document.Kind, password []byte) (*fitz.Document, error) {
	fitz.MaxStore = storeBytes
	f, err := fitz.NewFromMemory(text)
	if errors.Is(err, fitz.ErrNeedsPassword) {
		if len(password) == 0 {
			return nil, refuse(protocol.NeedsPassword, "")
		}
		ok, err := authenticate(f, password)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, refuse(protocol.WrongPassword, "")
		}
	} else if err != nil {
		return nil, refuse(protocol.Unreadable, "it is damaged, or not the "+string(kind)+" that it begins as")
	}
	format := cString(f.Metadata()["format"])
	for _, prefix := range formats[kind] {
		if strings.HasPrefix(format, prefix) {
			return f, nil
		}
	}
	return nil, refuse(protocol.NotSupported, fmt.Sprintf("a file of the kind %q", format))
}

// authenticate gives a password to an open document. go-fitz has no call for it: this is MuPDF's own, found as the fourth
// field of struct fz_document (mupdf/fitz/document.h: int refs; drop_document; needs_password; authenticate_password),
// which takes a context, the document and a C string and returns 0 for a wrong password.
func authenticate(f *fitz.Document, password []byte) (bool, error) {
	if fitz.FzVersion != testedMuPDF {
		return false, fmt.Errorf("passwords are not tested with MuPDF %s", fitz.FzVersion)
	}
	v := reflect.ValueOf(f).Elem()
	ctx, doc := v.FieldByName("ctx").UnsafePointer(), v.FieldByName("doc").UnsafePointer()
	call := *(*uintptr)(unsafe.Add(doc, 3*unsafe.Sizeof(uintptr(0))))
	secret := append(password[:len(password):len(password)], 0)
	ok, _, _ := purego.SyscallN(call, uintptr(ctx), uintptr(doc), uintptr(unsafe.Pointer(&secret[0])))
	return int32(ok) != 0, nil
}

// cString is what stands before the first NUL: go-fitz gives metadata with all of the C buffer.
func cString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}
