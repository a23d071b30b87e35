package firmware

import (
	"context"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
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
	look := func(ctx context.Context) (*perception.Scene, error) { return eyes.Observe(ctx, perception.Want{}) }
	verdict, _, err := tools.ReadBack(ctx, tools.Env{Controls: e.controls, Look: look, Slot: e.phone.slot, Serial: e.phone.serial}, typed)
	if err != nil || verdict != tools.TextFailed {
		return verdict, nil
	}
	return "", wire.Refuse(wire.TextDiffers, map[string]any{"slot": e.phone.slot, "serial": e.phone.serial})
}
