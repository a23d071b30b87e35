package perception

import (
	"context"
	"errors"
	"image"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a Source of fixed answers.
type source struct {
	trees    []string // one after the other, the last for ever
	treeErr  error
	focus    string
	focusErr error
	err      error // of display and keyboard
	image    *frame.Picture
	imageErr error
	hang     bool
	asked    int // trees
}

func (s *source) Tree(ctx context.Context) ([]byte, error) {
	s.asked++
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.treeErr != nil {
		return nil, s.treeErr
	}
	tree := s.trees[0]
	if len(s.trees) > 1 {
		s.trees = s.trees[1:]
	}
	return []byte(tree), nil
}

func (s *source) Screenshot(context.Context) (*frame.Picture, error) { return s.image, s.imageErr }

func (s *source) State(context.Context) phone.State {
	state := phone.State{
		Focus: phone.Focus{Package: s.focus, Activity: ".Main"}, FocusErr: s.focusErr,
		DisplayErr: s.err, KeyboardErr: s.err,
	}
	if s.err == nil {
		state.Display, state.Keyboard = phone.Display{Width: 100, Height: 200, Rotation: 1}, phone.Keyboard{Shown: true}
	}
	return state
}

const (
	shop = `<hierarchy rotation="0"><node text="Buy" class="android.widget.Button" package="com.shop" clickable="true" bounds="[0,0][90,90]"/></hierarchy>`
	chat = `<hierarchy rotation="0"><node text="Send" class="android.widget.Button" package="com.chat" clickable="true" bounds="[0,0][90,90]"/></hierarchy>`
)

var errBroken = errors.New("broken")

func TestObserveNumbersScenesAndOutdatesThem(t *testing.T) {
	src := &source{trees: []string{shop}, focus: "com.shop"}
	o := NewObserver(src, Options{Now: func() time.Time { return time.Unix(1, 0) }})
	first, err := o.Observe(t.Context(), Want{})
	if err != nil {
		t.Fatal(err)
	}
	if first.Generation != 1 || first.Package != "com.shop" || first.Activity != ".Main" || first.Width != 100 ||
		first.Rotation != 1 || !first.Keyboard || first.Missing != nil || first.Picture != nil || !first.At.Equal(time.Unix(1, 0)) {
		t.Errorf("got %+v", first)
	}
	if e, err := first.Find(1, 0); err != nil || e.Text != "Buy" {
		t.Errorf("got %+v, %v", e, err)
	}
	second, err := o.Observe(t.Context(), Want{})
	if err != nil || second.Generation != 2 || second.Hash != first.Hash {
		t.Fatalf("got %v, %v", second, err)
	}
	if _, err := first.Find(1, 0); !errors.Is(err, ErrStale) {
		t.Errorf("the older scene gives %v", err)
	}

	src.treeErr = errBroken
	if _, err := o.Observe(t.Context(), Want{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if _, err := second.Find(2, 0); !errors.Is(err, ErrStale) {
		t.Errorf("after a failed observation the scene gives %v", err)
	}
	src.treeErr = nil
	if third, err := o.Observe(t.Context(), Want{}); err != nil || third.Generation != 4 || o.Generation() != 4 {
		t.Errorf("got %v, %v", third, err)
	}
}

func TestObserveNamesWhatIsMissing(t *testing.T) {
	picture, dark := &frame.Picture{Source: image.Pt(50, 60)}, &frame.Picture{Source: image.Pt(50, 60), Black: true}
	for name, c := range map[string]struct {
		src     source
		missing []string
	}{
		"all there":      {source{trees: []string{shop}, focus: "com.shop", image: picture}, nil},
		"no focus":       {source{trees: []string{shop}, focusErr: errBroken, image: picture}, []string{PartFocus}},
		"no rest":        {source{trees: []string{shop}, focus: "com.shop", err: errBroken, image: picture}, []string{PartDisplay, PartKeyboard}},
		"no image":       {source{trees: []string{shop}, focus: "com.shop", imageErr: errBroken}, []string{PartImage}},
		"forbidden":      {source{trees: []string{shop}, focus: "com.shop", image: dark}, []string{PartImage}},
		"dark and alone": {source{treeErr: phone.ErrNotIdle, focus: "com.shop", image: dark}, []string{PartElements}},
		"only the image": {source{treeErr: phone.ErrNotIdle, focus: "com.shop", image: picture}, []string{PartElements}},
		"broken tree":    {source{trees: []string{"<hierarchy"}, focus: "com.shop", image: picture}, []string{PartElements}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewObserver(&c.src, Options{}).Observe(t.Context(), Want{Image: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Missing, c.missing) {
				t.Errorf("missing %q, want %q", s.Missing, c.missing)
			}
			if s.Package != "com.shop" || s.Width == 0 || s.Height == 0 {
				t.Errorf("got %+v", s)
			}
			if s.Keyboard == slices.Contains(c.missing, PartKeyboard) {
				t.Error("the keyboard is guessed")
			}
		})
	}
}

func TestObserveFailsWithoutElementsAndImage(t *testing.T) {
	src := &source{treeErr: phone.ErrNotIdle, imageErr: errBroken}
	if s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{Image: true}); s != nil || !errors.Is(err, phone.ErrNotIdle) {
		t.Errorf("got %v, %v", s, err)
	}
	src = &source{trees: []string{"<html>"}}
	if s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{}); s != nil || !errors.Is(err, ErrNoHierarchy) {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestObserveReadsOnceMoreWhenTheAppChanged(t *testing.T) {
	src := &source{trees: []string{shop, chat}, focus: "com.chat"}
	s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{})
	if err != nil || s.Elements[0].Text != "Send" || src.asked != 2 {
		t.Errorf("got %v after %d trees, %v", s, src.asked, err)
	}
	src = &source{trees: []string{shop}, focus: "com.chat"}
	if s, err = NewObserver(src, Options{}).Observe(t.Context(), Want{}); err != nil || src.asked != 2 {
		t.Errorf("got %v after %d trees, %v", s, src.asked, err)
	}
}

func TestObserveEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := NewObserver(&source{hang: true}, Options{Timeout: 5 * time.Second}).Observe(t.Context(), Want{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestPicturePoint(t *testing.T) {
	s := &Scene{Width: 1080, Height: 2400, Picture: &frame.Picture{Size: image.Pt(540, 1200)}}
	if p := s.PicturePoint(image.Pt(1000, 200)); p != image.Pt(500, 100) {
		t.Errorf("got %v", p)
	}
	s.Picture = nil
	if p := s.PicturePoint(image.Pt(3, 4)); p != image.Pt(3, 4) {
		t.Errorf("got %v", p)
	}
}
