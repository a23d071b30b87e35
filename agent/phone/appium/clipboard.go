package appium

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// maxClip bounds a text for the clipboard in bytes. The server takes requests of
// 64 KiB, and the text goes in base64.
const maxClip = 32 << 10

// From Android 10 on only the app in front and the input method may read the
// clipboard.
const sdkPrivateClip = 29

const askClip = "am broadcast --include-stopped-packages -n " + settingsID + "/.receivers.ClipboardReceiver -a io.appium.settings.clipboard.get"

var clipData = regexp.MustCompile(`(?m)^Broadcast completed: result=(-?\d+)(, data="([A-Za-z0-9+/=]*)")?(?:, extras: .*)?$`)

// setClipboard puts text into the clipboard through the server. That the server
// says so is no proof: read it back where it matters.
func (h *Helper) setClipboard(ctx context.Context, f phone.Fence, text string) error {
	refuse := func(reason string, cause error) error {
		return wire.Refuse(wire.ClipboardFailed, map[string]any{"reason": reason}).Because(cause)
	}
	switch {
	case !utf8.ValidString(text):
		return refuse("the text is not valid UTF-8", phone.ErrBadArgument)
	case len(text) > maxClip:
		return refuse(fmt.Sprintf("the text is longer than %d bytes", maxClip), phone.ErrBadArgument)
	case h.run == nil:
		return refuse("its helper app is not running", ErrNotRunning)
	}
	if err := ask(ctx, f); err != nil {
		return err
	}
	h.run.secret.Store(true)
	_, err := h.run.call(ctx, request{
		method: http.MethodPost, path: h.run.session + "/appium/device/set_clipboard",
		body: map[string]string{
			"content": base64.StdEncoding.EncodeToString([]byte(text)), "contentType": "plaintext", "label": "text",
		},
	})
	var answer *serverError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer), errors.Is(err, adb.ErrRefused):
		return fmt.Errorf("%w: %w", phone.ErrRejected, discreet(err))
	}
	return fmt.Errorf("%w: %w", phone.ErrUnknownOutcome, discreet(err))
}

// clipboard reads the clipboard through the receiver of Appium Settings.
func (h *Helper) clipboard(ctx context.Context, f phone.Fence) (text string, err error) {
	get := func() error {
		text, err = h.broadcastClip(ctx)
		return err
	}
	sdk, err := h.sdk(ctx)
	if err != nil {
		return "", err
	}
	if sdk < sdkPrivateClip {
		err = get()
	} else {
		err = h.withIME(ctx, f, get)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// broadcastClip asks the receiver. am exits with 0 whoever received it, or
// nobody: only result -1 (RESULT_OK) with its data is an answer.
func (h *Helper) broadcastClip(ctx context.Context) (string, error) {
	out, err := h.conn.read(ctx, askClip)
	if err != nil {
		return "", err
	}
	return parseClip(out)
}

// parseClip reads what am printed. None of it is in an error: it may be what was
// copied.
func parseClip(out string) (string, error) {
	m := clipData.FindStringSubmatch(out)
	switch {
	case m == nil:
		return "", fmt.Errorf("%d bytes without a result of the receiver: %w", len(out), phone.ErrMalformed)
	case m[1] == "-1" && m[2] == "":
		return "", fmt.Errorf("a result without data: %w", phone.ErrMalformed)
	case m[1] == "0" && m[2] == "":
		return "", fmt.Errorf("nobody answers for the clipboard: %w", ErrNotInstalled)
	case m[1] != "-1":
		return "", fmt.Errorf("the receiver reports a failure: %w", phone.ErrRejected)
	}
	b, err := base64.StdEncoding.DecodeString(m[3])
	if err != nil {
		return "", fmt.Errorf("data of %d bytes that is no base64: %w", len(m[3]), phone.ErrMalformed)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}
