package firmware

import (
	"context"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// How a field is read back after typing: letters may arrive late.
const (
	readBacks     = 3
	readBackPause = 300 * time.Millisecond
)

// Type implements action.Controls: phones lose and swap characters, and say nothing. It looks with eyes of its own, so
// that the elements that a person has before the eyes stay usable.
func (e explained) Type(ctx context.Context, text string) (string, error) {
	eyes := e.phone.eyes.View()
	typed := tools.Typed{Text: text}
	var field *perception.Element
	if scene, err := eyes.Observe(ctx, perception.Want{}); err == nil {
		field = tools.FocusedField(scene)
	}
	if err := e.controls.InputText(ctx, text); err != nil {
		return "", e.phone.explain(ctx, "type", "", err)
	}
	if field == nil {
		return tools.TextUnverified, nil
	}
	typed.Field = *field
	for range readBacks {
		scene, err := eyes.Observe(ctx, perception.Want{})
		if err != nil {
			return tools.TextUnverified, nil
		}
		if verdict := typed.Verdict(scene); verdict != tools.TextFailed {
			return verdict, nil
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return tools.TextUnverified, nil
		}
	}
	return "", wire.Refuse(wire.TextDiffers, map[string]any{"slot": e.phone.slot, "serial": e.phone.serial})
}
