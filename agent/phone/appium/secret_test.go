package appium

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

const password = "Tr0ub4dor-and-3"

// wantDiscreet holds an error to one that says nothing of the password in either
// form, though it is of a kind that callers decide on.
func wantDiscreet(t *testing.T, err, is error) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("%v, want %v", err, is)
		return
	}
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(password))} {
		if strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("the error tells: %v", err)
		}
	}
}

func TestErrorsOfReadingTheClipboardDoNotQuoteIt(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte(password))
	for out, is := range map[string]error{
		`Broadcast completed: result=-1, data="` + data:                phone.ErrMalformed, // cut
		`Broadcast completed: result=-1, data="` + data + `!"`:         phone.ErrMalformed,
		`Broadcast completed: result=-1, data="` + data + `xxx"`:       phone.ErrMalformed,
		`Broadcast completed: result=-1, data="` + password + `"`:      phone.ErrMalformed,
		`Broadcast completed: result=1, data="` + data + `"`:           phone.ErrRejected,
		`Broadcast completed: result=0, data="` + data + `"`:           phone.ErrRejected,
		`java.lang.SecurityException: ` + password:                     phone.ErrMalformed,
		"Broadcast completed: result=-1, extras: Bundle[" + data + "]": phone.ErrMalformed,
	} {
		t.Run(out, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				f.answering = func(cmd string) (adb.Result, error, bool) {
					return adb.Result{Stdout: []byte(out + "\n")}, nil, cmd == askClip
				}
				h, _ := helperOf(t, f)
				_, err := h.Under(live()).Clipboard(t.Context())
				wantDiscreet(t, err, is)
			})
		})
	}
}

func TestErrorsOfSettingTheClipboardDoNotQuoteIt(t *testing.T) {
	for fails, is := range map[string]error{"quote": phone.ErrRejected, "nonsense": phone.ErrMalformed, "die": phone.ErrUnknownOutcome} {
		t.Run(fails, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				h := started(t, f)
				f.set(func() { f.behave.clipFails = fails })
				wantDiscreet(t, h.Under(live()).SetClipboard(t.Context(), password), is)
				if fails != "die" {
					return
				}
				// Its last words are known a moment later, to whoever asks next.
				time.Sleep(time.Second)
				_, err := h.run.call(t.Context(), request{method: "GET", path: "/status"})
				wantDiscreet(t, err, ErrServer)
			})
		})
	}
}

func TestErrorsOfTypingDoNotQuoteTheText(t *testing.T) {
	for said, is := range map[string]error{
		"java.lang.IllegalArgumentException: " + password: phone.ErrRejected,
		"java.lang.SecurityException: " + password:        phone.ErrRejected,
		"Error: no such key " + password:                  phone.ErrRejected,
	} {
		for name, text := range map[string]string{"at once": password, "in the middle": password + strings.Repeat(".", maxChunk) + password} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake().withApps()
					f.answering = func(cmd string) (adb.Result, error, bool) {
						refused := strings.HasPrefix(cmd, "input text ") && strings.HasSuffix(cmd, password+"'")
						return adb.Result{Stderr: []byte(said), ExitCode: 1}, nil, refused
					}
					h, _ := helperOf(t, f)
					want := is
					if text != password {
						want = phone.ErrPartlyTyped
					}
					wantDiscreet(t, h.Under(live()).Type(t.Context(), text), want)
					f.answering = nil
					atHome(t, f)
				})
			})
		}
	}
}
