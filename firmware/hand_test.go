package firmware

import (
	"context"
	"errors"
	"image"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// screen is a phone with one field; while held is open it does not answer.
type screen struct{ held chan struct{} }

func (s screen) Tree(ctx context.Context) ([]byte, error) {
	select {
	case <-s.held:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return []byte(`<hierarchy rotation="0"><node text="hi" class="android.widget.Button" package="a.b" clickable="true" enabled="true" bounds="[0,0][90,90]"/></hierarchy>`), nil
}

func (screen) Screenshot(context.Context) (*frame.Picture, error) {
	return frame.Encode(image.NewGray(image.Rect(0, 0, 100, 100)), frame.Options{})
}

func (screen) State(context.Context) phone.State {
	return phone.State{Focus: phone.Focus{Package: "a.b"}, Display: phone.Display{Width: 100, Height: 100}}
}

func TestWaitingToLookEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := screen{held: make(chan struct{})}
		h := &hand{slot: 1, observer: perception.NewObserver(s, perception.Options{Timeout: time.Hour})}
		first := make(chan error, 1)
		go func() {
			_, err := h.observe(t.Context(), true)
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := h.observe(ctx, false); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("behind another look: %v after %v", err, time.Since(began))
		}
		if _, _, err := h.element(ctx, 1, 0); !wire.Is(err, wire.StaleElement) {
			t.Errorf("an element before the first look has ended: %v", err)
		}
		close(s.held)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if x, y, err := h.element(t.Context(), 1, 0); err != nil || x != 45 || y != 45 {
			t.Errorf("element: %d, %d, %v", x, y, err)
		}
		if h.last().Picture != nil {
			t.Error("the picture is kept")
		}
	})
}
