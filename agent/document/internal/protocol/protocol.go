// Package protocol is what a reader of documents and its child say to each other.
//
// The child gets the request as one JSON object on its standard input and the document as file descriptor 3, a regular
// file. It answers on its standard output with frames: a byte for the type, the length of the payload as four bytes, big
// endian, and the payload. All payloads but pictures are JSON.
//
//	stage document (stage page [stage picture [image]])* [stage metadata] [stage contents] end
//
// A stage says what the child is about to do, so that the reader knows what it died of; any number of them may stand
// anywhere. A refusal ends the answer early. The child is not trusted: the reader checks all of it.
package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// DocumentFD is the descriptor under which the child finds the document.
const DocumentFD = 3

// MaxFiles bounds the open files of a child: the four that it is given, and what the Go runtime needs.
const MaxFiles = 32

// MaxRequestBytes bounds a request: a pipe takes as much before anybody reads.
const MaxRequestBytes = 4096

// Request says what the child shall do, and within which limits.
type Request struct {
	First      int    `json:"first"` // from 1
	Last       int    `json:"last"`
	Text       bool   `json:"text"`
	Images     bool   `json:"images"`
	Links      bool   `json:"links"`
	Metadata   bool   `json:"metadata"`
	Contents   bool   `json:"contents"`
	PNG        bool   `json:"png"`
	MaxWidth   int    `json:"max_width"`   // pixels
	MaxHeight  int    `json:"max_height"`  // pixels
	ImageBytes int    `json:"image_bytes"` // of all pictures
	TextBytes  int    `json:"text_bytes"`  // of one page
	Password   []byte `json:"password,omitempty"`
	Limits     Limits `json:"limits"`
}

// Limits are those that the child sets on itself before it touches the document.
type Limits struct {
	Memory     uint64 `json:"memory"`      // bytes of address space beyond what the program needs
	CPUSeconds uint64 `json:"cpu_seconds"` // user and system time together
}

// Bounds of what a child may answer beside texts and pictures.
const (
	MaxLinks     = 200 // of a page
	MaxURI       = 2048
	MaxEntries   = 1000 // of a table of contents
	MaxTitle     = 300
	MaxField     = 256 // MuPDF's own bound of a piece of metadata
	MaxProblems  = 16  // of a page, and of the document
	MaxDetail    = 300
	MaxNoteBytes = 1 << 20 // a payload that is no page and no picture
)

// Type is the type of a frame.
type Type byte

// The types of frames.
const (
	StageFrame    Type = 'S'
	DocumentFrame Type = 'D'
	PageFrame     Type = 'P'
	PictureFrame  Type = 'G'
	ImageFrame    Type = 'I'
	MetadataFrame Type = 'M'
	ContentsFrame Type = 'C'
	RefusalFrame  Type = 'E'
	EndFrame      Type = 'Z'
)

// Step is what a child is about to do.
type Step string

// The steps in their order. Confined means that all limits are set and the document not yet touched.
const (
	Start       Step = "start" // never said: what comes before the first stage
	Confined    Step = "confined"
	Opening     Step = "opening"
	Counting    Step = "counting"
	ReadingPage Step = "page"
	Drawing     Step = "picture"
	Metadata    Step = "metadata"
	Contents    Step = "contents"
)

// Stage is the payload of a StageFrame.
type Stage struct {
	Step Step `json:"step"`
	Page int  `json:"page,omitempty"` // from 1, with ReadingPage and Drawing
}

// Document is the payload of a DocumentFrame.
type Document struct {
	Kind     string    `json:"kind"`
	Pages    int       `json:"pages"`
	Problems []Problem `json:"problems,omitempty"`
}

// Page is the payload of a PageFrame.
type Page struct {
	Number   int       `json:"number"`
	Width    float64   `json:"width"` // points
	Height   float64   `json:"height"`
	Text     string    `json:"text,omitempty"`
	Links    []string  `json:"links,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// Picture is the payload of a PictureFrame: what the next frame holds, or why there is none.
type Picture struct {
	Width    int       `json:"width,omitempty"` // pixels; 0 if there is no picture
	Height   int       `json:"height,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is something that a page or the document lacks.
type Problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// MetadataFields is the payload of a MetadataFrame.
type MetadataFields struct {
	Fields []Field `json:"fields"`
}

// Field is one piece of metadata.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ContentsEntries is the payload of a ContentsFrame.
type ContentsEntries struct {
	Entries []Entry `json:"entries"`
	Cut     bool    `json:"cut,omitempty"`
}

// Entry is one line of the table of contents.
type Entry struct {
	Level int    `json:"level"`
	Title string `json:"title"`
	Page  int    `json:"page,omitempty"`
	URI   string `json:"uri,omitempty"`
}

// Cause is why the child refuses.
type Cause string

// The causes that a child may give.
const (
	Unreadable    Cause = "unreadable"     // Detail: why
	NotSupported  Cause = "unsupported"    // Detail: the kind
	NeedsPassword Cause = "needs_password" // none was given
	WrongPassword Cause = "wrong_password"
	NoSuchPage    Cause = "no_page"    // the first page asked for lies behind the end
	NotConfined   Cause = "unconfined" // a limit could not be set
)

// Refusal is the payload of a RefusalFrame.
type Refusal struct {
	Cause  Cause  `json:"cause"`
	Detail string `json:"detail,omitempty"`
	Pages  int    `json:"pages,omitempty"` // with NoSuchPage: how many there are
}

// WriteFrame writes one frame.
func WriteFrame(w io.Writer, t Type, payload []byte) error {
	head := [5]byte{byte(t)}
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// WriteJSON writes one frame with v as JSON.
func WriteJSON(w io.Writer, t Type, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFrame(w, t, b)
}

// ErrTooLong is a frame above its bound.
var ErrTooLong = errors.New("a frame is longer than its bound")

// ReadFrame reads one frame. The bound of its payload depends on its type. Memory is taken for what arrives, not for what is
// promised.
// At the end of the stream, before a frame, the error is io.EOF.
func ReadFrame(r io.Reader, bound func(Type) int) (Type, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	t, n := Type(head[0]), binary.BigEndian.Uint32(head[1:])
	if int64(n) > int64(bound(t)) {
		return 0, nil, fmt.Errorf("%w: %q of %d bytes", ErrTooLong, head[0], n)
	}
	var payload bytes.Buffer
	payload.Grow(int(min(n, 64<<10)))
	if _, err := io.CopyN(&payload, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return t, payload.Bytes(), nil
}
