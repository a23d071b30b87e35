package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// fields has each kind of field that is read directly.
type fields struct {
	A string `json:"a"`
	N int8   `json:"n"`
	U uint16 `json:"u,omitempty"`
	B bool
	R json.RawMessage `json:"r"`
	D []byte          `json:"d"`
	L []inner         `json:"l"`
	T []string        `json:"t"`
	inner
}

type inner struct {
	X string `json:"x"`
	Y int    `json:"y"`
}

// sameAsDecoder holds what is read directly to what the decoder reads, and tells whether it was.
func sameAsDecoder[T any](t *testing.T, raw []byte) bool {
	t.Helper()
	var got, want T
	if !direct(raw, &got) {
		return false
	}
	if err := decode(raw, &want); err != nil {
		t.Errorf("%T %.200q is taken, where the decoder says: %v", got, raw, err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("%.200q is %+v, by the decoder %+v", raw, got, want)
	}
	return true
}

// whole are texts that are read directly, partial ones that the decoder has to judge.
var (
	whole = []string{
		`{}`, ` { "a" : "b" , "n" : -128 } `, `{"u":65535,"B":true,"t":["","\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀"]}`, `{"x":"y","y":-0,"other":{"a":[1,2.5e-3,null,"\u0000"]}}`,
		`{"r":{"a":[true,false,null,0,-1.5E+3]},"l":[{"x":"1"},{"y":2}],"d":"aGVsbG8="}`, `{"r":null}`, `{"l":[],"t":[],"d":""}`, `{"r": [ 1 , {} ] }`,
		`{"a":"` + strings.Repeat("0123456789", 10) + `\n"}`, `{"r":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
	}
	partial = []string{
		``, `null`, `[]`, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"\`, `{"a":"\u12`, `{"a":1}`, `{"a":null}`, `{"n":128}`, `{"n":1.0}`, `{"n":01}`, `{"n":--1}`, `{"u":-1}`, `{"B":"true"}`,
		`{"A":"b"}`, `{"b":true}`, `{"a":"b","a":"c"}`, `{"a":"b","\u0061":"c"}`, `{"r":{"a":1,"a":2}}`, `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"\udc00\udc00"}`, `{"a":"\ud800\u0041"}`, "{\"a\":\"\xff\"}",
		"{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"d":"aGVsbG8"}`, `{"d":"aGVs\nbG8="}`, `{"l":[{}}`, `{"l":[,{}]}`, `{"l":[{},]}`, `{"a":"b",}`, `{} {}`, `{"r":[1,]}`, `{"r":.5}`, `{"r":1.}`, `{"r":1e}`,
		`{"r":nul}`, `{"r":` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `}`, `{"l":{}}`, `{a:1}`, `{"a" "b"}`,
	}
)

func TestWhatIsReadDirectlyIsWhatTheDecoderReads(t *testing.T) {
	for _, s := range whole {
		if !sameAsDecoder[fields](t, []byte(s)) {
			t.Errorf("%.200q is left to the decoder", s)
		}
	}
	for _, s := range partial {
		if sameAsDecoder[fields](t, []byte(s)) {
			t.Errorf("%.200q is not left to the decoder", s)
		}
	}
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, `"k%d":%d,`, i, i)
		sameAsDecoder[fields](t, []byte(`{"r":{`+many.String()+`"k3":0}}`))
		if !sameAsDecoder[fields](t, []byte(`{"r":{`+many.String()+`"last":0}}`)) {
			t.Errorf("an object of %d keys is left to the decoder", i+2)
		}
	}
}

func TestEachByteOfAStringIsLookedAt(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			text := []byte(`{"a":"` + strings.Repeat("x", 20) + `"}`)
			text[6+at] = byte(c)
			taken := sameAsDecoder[fields](t, text)
			if want := c >= ' ' && c < 0x80 && c != '"' && c != '\\'; taken != want {
				t.Fatalf("byte %#x at %d: taken is %t", c, at, taken)
			}
		}
	}
}

// TestFramesAreReadDirectly: else each frame would be read twice.
func TestFramesAreReadDirectly(t *testing.T) {
	for _, v := range []any{
		&Message{Attachments: []Attachment{{Name: "screen"}}, Body: json.RawMessage(`{}`)},
		&PlanRequest{Tools: []PlanTool{{InputSchema: json.RawMessage(`{}`)}}}, &PlanDecision{Arguments: json.RawMessage(`{}`)}, &PlanAccepted{},
	} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !direct(raw, reflect.New(reflect.TypeOf(v).Elem()).Interface()) {
			t.Errorf("%T is left to the decoder: %s", v, raw)
		}
	}
}

func TestTypesThatAreNotPlainAreLeftToTheDecoder(t *testing.T) {
	type node struct{ Next []node }
	type twice struct {
		inner
		Other string `json:"x"`
	}
	for _, v := range []any{
		new(any), new(map[string]string), new(float64), new(json.Number), new(*string), new([2]int), new(node), new(twice), new(Refusal),
		new(struct {
			N int `json:"n,string"`
		}),
	} {
		if readerOf(reflect.TypeOf(v).Elem()) != nil {
			t.Errorf("%T is read directly", v)
		}
	}
	var s fields
	if direct([]byte(`{}`), s) || direct([]byte(`{}`), (*fields)(nil)) {
		t.Error("what is no pointer was set")
	}
}

// FuzzDirect: what is read directly is what the decoder reads.
func FuzzDirect(f *testing.F) {
	for _, s := range append(whole, partial...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameAsDecoder[fields](t, raw)
		sameAsDecoder[Message](t, raw)
		sameAsDecoder[PlanRequest](t, raw)
	})
}

// BenchmarkUnmarshal reads a planner request of 20 tools and 10 KB of prompts.
func BenchmarkUnmarshal(b *testing.B) {
	req := PlanRequest{RequestID: "r-1", HostID: "r1", TaskID: "t1", Attempt: 1, UserPrompt: strings.Repeat("[17] edit \"Search\" at 24,180 to 1056,300\n", 240)}
	for i := range 20 {
		req.Tools = append(req.Tools, PlanTool{Name: fmt.Sprint("tool", i), Description: strings.Repeat("Does one thing. ", 6), InputSchema: json.RawMessage(
			`{"type":"object","properties":{"element":{"type":"integer","description":"index"},"text":{"type":"string"}},"required":["element"],"additionalProperties":false}`)})
	}
	raw, err := json.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func([]byte, any) error{"direct": Unmarshal, "decoder": decode} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var v PlanRequest
				if err := read(raw, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
