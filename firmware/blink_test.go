package firmware

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// keys notes what is pressed, and ends the caller's context at the first.
type keys struct {
	pressed []string
	end     context.CancelFunc
}

func (k *keys) Key(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k.pressed = append(k.pressed, name)
	k.end()
	return nil
}

func TestAScreenIsBrightAfterIdentifyWhateverEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k := &keys{end: cancel}
	if err := blinkOnce(ctx, k); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if want := []string{"sleep", "wakeup"}; !slices.Equal(k.pressed, want) {
		t.Errorf("pressed %v, want %v", k.pressed, want)
	}
}
