package perception

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a Source of fixed answers.
type source struct {
	trees    []string // one after the other, the last for ever
	treeErr  error
	focus    string
	focusErr error
	err      error // of the rest
	image    *frame.Picture
	imageErr error
	lock     phone.Lock
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
		DisplayErr: s.err, KeyboardErr: s.err, WindowsErr: s.err, LockErr: s.err, Lock: s.lock,
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

// The tree of an app that is no longer in front is not shown for want of a newer
// one.
func TestReport09_TheTreeOfAnotherAppIsNoScene(t *testing.T) {
	src := &source{trees: []string{shop, "ERROR: could not get idle state."}, focus: "com.chat"}
	if s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{}); s != nil || !errors.Is(err, ErrNoHierarchy) {
		t.Errorf("got %v, %v", s, err)
	}
	src = &source{trees: []string{shop, "ERROR: could not get idle state."}, focus: "com.chat", image: &frame.Picture{Size: image.Pt(9, 9), Source: image.Pt(9, 9)}}
	if s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{Image: true}); err != nil || s.NoTree != NoTreeUnreadable || len(s.Elements) != 0 {
		t.Errorf("got %v, %v", s, err)
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

// Two people who look at one phone: each keeps its elements until it looks again
// itself, and the phone is asked one thing at a time.
func TestViewsShareThePhoneAndKeepTheirScenes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowSource{source: source{trees: []string{shop}, focus: "com.shop"}}
		task := NewObserver(src, Options{})
		person := task.View()
		mine, err := task.Observe(t.Context(), Want{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := person.Observe(t.Context(), Want{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if src.most != 1 {
			t.Errorf("%d dumps at once", src.most)
		}
		if _, err := mine.Find(mine.Generation, 0); err != nil {
			t.Errorf("another's look outdates the scene: %v", err)
		}
		if person.Generation() != 4 || task.Generation() != 1 {
			t.Errorf("generations %d and %d", person.Generation(), task.Generation())
		}
		next, err := task.Observe(t.Context(), Want{})
		if err != nil || next.Generation != 5 {
			t.Errorf("got %v, %v", next, err)
		}
		if _, err := mine.Find(mine.Generation, 0); !errors.Is(err, ErrStale) {
			t.Errorf("the older scene gives %v", err)
		}
	})
}

// Who waits for another's look waits within its own bounds.
func TestAWaitingViewEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewObserver(&source{hang: true}, Options{Timeout: time.Minute})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := o.Observe(t.Context(), Want{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		view := o.View()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := view.Observe(ctx, Want{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if view.Generation() != 0 {
			t.Error("an observation that never began has a generation")
		}
		wg.Wait()
	})
}

// slowSource counts the dumps that run at once.
type slowSource struct {
	source
	now, most int
}

func (s *slowSource) Tree(ctx context.Context) ([]byte, error) {
	s.now++
	s.most = max(s.most, s.now)
	time.Sleep(time.Second)
	s.now--
	return s.source.Tree(ctx)
}

func TestReport09_AFailedLookLeavesNothingToActOn(t *testing.T) {
	src := &source{trees: []string{shop}, focus: "com.shop"}
	o := NewObserver(src, Options{})
	s, err := o.Observe(t.Context(), Want{})
	if err != nil {
		t.Fatal(err)
	}
	src.treeErr = errBroken
	if again, err := o.Observe(t.Context(), Want{}); again != nil || err == nil {
		t.Fatalf("got %v, %v", again, err)
	}
	if _, err := s.Find(s.Generation, 0); !wire.Is(err, wire.StaleElement) {
		t.Errorf("the old element gives %v", err)
	}
}

func TestReport21_ABlackPictureIsASecureApp(t *testing.T) {
	dark := &frame.Picture{Source: image.Pt(100, 200), Size: image.Pt(50, 100), Black: true}
	for name, c := range map[string]struct {
		src     source
		secure  bool
		picture bool
	}{
		"with a tree":    {source{trees: []string{shop}, focus: "com.shop", image: dark, lock: phone.Lock{Awake: true}}, true, false},
		"without a tree": {source{treeErr: errBroken, focus: "com.shop", image: dark, lock: phone.Lock{Awake: true}}, true, true},
		"asleep":         {source{trees: []string{shop}, focus: "com.shop", image: dark}, false, false},
		"not known":      {source{trees: []string{shop}, focus: "com.shop", image: dark, err: errBroken}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewObserver(&c.src, Options{}).Observe(t.Context(), Want{Image: true})
			if err != nil {
				t.Fatal(err)
			}
			if s.Secure != c.secure || (s.Picture != nil) != c.picture || strings.Contains(s.Prompt(), " secure") != c.secure {
				t.Errorf("secure %t, picture %v: %s", s.Secure, s.Picture, s.Prompt())
			}
			if _, err := s.ScreenPoint(1, 1); !wire.Is(err, wire.PointRefused) {
				t.Errorf("a point of a black picture gives %v", err)
			}
		})
	}
}

func TestAnImageIsTakenOnlyWhereTheTreeSaysLittle(t *testing.T) {
	const game = `<hierarchy rotation="1"><node class="android.widget.FrameLayout" package="com.game" bounds="[0,0][100,200]">` +
		`<node class="android.view.SurfaceView" package="com.game" bounds="[0,0][100,200]"/></node></hierarchy>`
	picture := &frame.Picture{Source: image.Pt(100, 200), Size: image.Pt(50, 100)}
	for name, c := range map[string]struct {
		src    source
		noTree string
	}{
		"elements":   {source{trees: []string{shop}, focus: "com.shop", image: picture}, ""},
		"drawn":      {source{trees: []string{game}, focus: "com.game", image: picture}, NoTreeDrawn},
		"unreadable": {source{treeErr: phone.ErrNotIdle, focus: "com.game", image: picture}, NoTreeUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewObserver(&c.src, Options{})
			s, err := o.Observe(t.Context(), Want{ImageIfThin: true})
			if err != nil {
				t.Fatal(err)
			}
			if s.NoTree != c.noTree || (s.Picture != nil) != (c.noTree != "") {
				t.Errorf("no tree %q, picture %v", s.NoTree, s.Picture)
			}
			p, err := s.ScreenPoint(49, 99)
			if c.noTree == "" {
				if !wire.Is(err, wire.PointRefused) {
					t.Errorf("a screen with elements takes the point: %v, %v", p, err)
				}
				return
			}
			if err != nil || p != image.Pt(99, 199) {
				t.Errorf("the last pixel is %v, %v", p, err)
			}
			for _, out := range []image.Point{{-1, 0}, {0, -1}, {50, 0}, {0, 100}} {
				if p, err := s.ScreenPoint(out.X, out.Y); !wire.Is(err, wire.PointRefused) {
					t.Errorf("%v gives %v, %v", out, p, err)
				}
			}
			if _, err := o.Observe(t.Context(), Want{ImageIfThin: true}); err != nil {
				t.Fatal(err)
			}
			if p, err := s.ScreenPoint(1, 1); !wire.Is(err, wire.PointRefused) {
				t.Errorf("a point of the scene before gives %v, %v", p, err)
			}
		})
	}
}

func TestPartsTellHowFreshTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowSource{source: source{trees: []string{shop}, focus: "com.shop", err: errBroken, image: &frame.Picture{Size: image.Pt(9, 9)}}}
		start := time.Now()
		s, err := NewObserver(src, Options{}).Observe(t.Context(), Want{Image: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range s.Parts {
			got = append(got, fmt.Sprintf("%s %s %v", p.Name, p.At.Sub(start), p.Err))
		}
		if want := []string{
			"elements 1s <nil>", "focus 1s <nil>", "display 1s broken", "keyboard 1s broken", "image 1s <nil>", "windows 1s broken", "lock 1s broken",
		}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
