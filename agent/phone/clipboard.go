package phone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"phonerack/sync/wire"
)

// maxClipboard bounds a text for the clipboard, in bytes.
const maxClipboard = 64 << 10

// SetClipboard puts text on the phone's clipboard and reads it back. It goes
// through the helper while that runs. Android itself gives the shell no
// clipboard, though its command says nothing and succeeds: without the helper
// that command is believed only where it gives the text back. Else the error is a
// *wire.Refusal of code wire.ClipboardFailed.
func (c *Controls) SetClipboard(ctx context.Context, text string) error {
	if text == "" || len(text) > maxClipboard || !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("set clipboard: %d bytes that are no text of 1 to %d bytes: %w", len(text), maxClipboard, ErrBadArgument)
	}
	if h := c.phone.options.Helpers; h != nil && h.Running() {
		return c.clipboardByHelper(ctx, text)
	}
	const mark = "phonerack-clipboard"
	r, err := c.write(ctx, 0, "cmd clipboard set text "+quote(text)+" >/dev/null 2>&1; echo "+mark+"; cmd clipboard get text 2>/dev/null")
	if err != nil {
		return fmt.Errorf("set clipboard: %w", err)
	}
	_, got, _ := strings.Cut(strings.ReplaceAll(string(r.Stdout), "\r\n", "\n"), mark+"\n")
	if strings.TrimSuffix(got, "\n") != strings.ReplaceAll(text, "\r\n", "\n") {
		return noClipboard("Android gives the shell no clipboard, and no helper app runs")
	}
	return nil
}

func noClipboard(reason string) error {
	return wire.Refuse(wire.ClipboardFailed, map[string]any{"reason": reason}).Because(ErrNoClipboard)
}

func (c *Controls) clipboardByHelper(ctx context.Context, text string) error {
	var got string
	err := c.byHelper(ctx, 2*helperLead, func(ctx context.Context, h Helpers) error {
		if err := h.SetClipboard(ctx, text); err != nil {
			return err
		}
		var err error
		if got, err = h.Clipboard(ctx); err != nil {
			return fmt.Errorf("read it back: %w: %w", ErrUnknownOutcome, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("set clipboard: %w", err)
	case got != text:
		return noClipboard("the helper app did not put the text there")
	}
	return nil
}

// Clipboard returns the text on the phone's clipboard, which only the helper can
// read: since Android 10 an app has to be in front for that. Without it the error
// is a *wire.Refusal of code wire.ClipboardFailed.
func (p *Phone) Clipboard(ctx context.Context) (string, error) {
	h := p.options.Helpers
	if h == nil || !h.Running() {
		return "", noClipboard("Android gives the shell no clipboard, and no helper app runs")
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.WriteTimeout)
	defer cancel()
	text, err := h.Clipboard(ctx)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return "", fmt.Errorf("read clipboard: %w: %w", ctx.Err(), err)
	case err != nil:
		return "", fmt.Errorf("read clipboard: %w", err)
	case len(text) > maxClipboard:
		return "", fmt.Errorf("read clipboard: %d bytes: %w", len(text), ErrTooLarge)
	}
	return text, nil
}
