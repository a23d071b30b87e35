package firmware

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/sync/wire"
)

// What the page's source asks phones and the disk for.

// Picture implements status.Source. Looking needs no lease, and takes nothing away from a task that works there.
func (p *pageSource) Picture(ctx context.Context, slot int) (status.Picture, error) {
	s, ok := p.rack.slots[slot]
	if !ok {
		return status.Picture{}, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	}
	l, err := s.usable()
	if err != nil {
		return status.Picture{}, err
	}
	picture, err := l.phone.Screenshot(ctx)
	if err != nil {
		if err = (readyPhone{slot, l}).explain(ctx, "observe", "", err); ctx.Err() != nil {
			err = wire.Refuse(wire.PhoneTimeout, map[string]any{"slot": slot, "serial": l.serial, "what": "picture"}).Because(err)
		}
		return status.Picture{}, err
	}
	return status.Picture{JPEG: picture.JPEG, Width: picture.Size.X, Height: picture.Size.Y}, nil
}

// Tasks implements status.Source.
func (p *pageSource) Tasks(_ context.Context, most int) ([]action.TaskStatus, error) {
	return p.rack.Tasks(most)
}

const maxShownSteps = 2000 // of a trajectory: a task has 500 at most, and popups beside

// Steps implements status.Source. A trajectory that is damaged, or is being written, is told as far as it can be read.
func (p *pageSource) Steps(ctx context.Context, task string) ([]record.Step, error) {
	if _, err := p.rack.Task(task); err != nil {
		return nil, err
	}
	all := []record.Step{}
	for s, err := range record.Steps(p.rack.taskFolder(task), false) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // of an old task the trajectory is gone
			p.rack.log.Warn("a trajectory cannot be read to its end", "task", task, "err", err)
		}
		if err != nil || ctx.Err() != nil || len(all) == maxShownSteps {
			break
		}
		s.Scene = ""
		all = append(all, s)
	}
	return all, ctx.Err()
}

const maxStepPicture = 4 << 20 // bytes

// StepPicture implements status.Source.
func (p *pageSource) StepPicture(_ context.Context, task, name string) ([]byte, error) {
	if _, err := p.rack.Task(task); err != nil {
		return nil, err
	}
	f, err := os.OpenInRoot(p.rack.taskFolder(task), name)
	if err != nil {
		return nil, wire.Refuse(wire.PictureGone, nil).Because(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxStepPicture+1))
	if err != nil || len(raw) > maxStepPicture {
		return nil, wire.Refuse(wire.PictureGone, nil).Because(err)
	}
	return raw, nil
}

const maxBoardFile = 1 << 20 // bytes

// Attachments implements status.Source.
func (p *pageSource) Attachments(context.Context) map[string][]byte {
	r := p.rack
	all := map[string][]byte{"configuration.txt": r.config.Redacted()}
	if path := r.config.Rack.Board; path != "" {
		if raw, err := readFile(path, maxBoardFile); err == nil {
			all["board.toml"] = raw
		} else {
			all["board.txt"] = []byte(err.Error() + "\n")
		}
	}
	if raw, err := json.MarshalIndent(p.ledger(), "", " "); err == nil {
		all["health.json"] = raw
	}
	if r.logKept != nil {
		if text, err := r.logKept.Kept(); err == nil {
			all["log-kept.txt"] = []byte(text)
		}
	}
	return all
}

// readFile reads a file that is not larger than most.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// slotLedger is what recovery remembers of a slot.
type slotLedger struct {
	Slot int          `json:"slot"`
	Acts []action.Act `json:"acts"`
	Left string       `json:"left_alone,omitempty"` // why people have it left alone
}

func (p *pageSource) ledger() (all []slotLedger) {
	for _, st := range p.rack.care.keeper.All() {
		one := slotLedger{Slot: st.Slot, Acts: acted(p.rack.care.keeper.Ledger(st.Slot)), Left: p.rack.care.hands.of(st.Slot)}
		all = append(all, one)
	}
	return all
}

func acted(entries []health.Entry) []action.Act {
	all := []action.Act{}
	for _, e := range entries {
		all = append(all, action.Act{Act: e.Rung, Ago: e.Ago, Outcome: string(e.Outcome)})
	}
	return all
}
