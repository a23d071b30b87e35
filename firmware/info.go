package firmware

import (
	"context"
	"sync"

	"phonerack/firmware/action"
)

// Info implements action.Phone.
func (p readyPhone) Info(ctx context.Context) (action.PhoneInfo, error) {
	known := p.phone.Info()
	info := action.PhoneInfo{
		Slot: p.slot, Serial: p.serial, Model: known.Model, Android: known.Release,
		Width: known.Display.Width, Height: known.Display.Height, Ways: p.phone.Strategies(), Missing: map[string]string{},
	}
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards info.Missing
	)
	read := func(part string, fn func() error) {
		wg.Go(func() {
			if err := fn(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				info.Missing[part] = err.Error()
			}
		})
	}
	read("battery", func() error { return readInto(ctx, &info.Battery, p.phone.Battery) })
	read("thermal", func() error { return readInto(ctx, &info.Thermal, p.phone.Thermal) })
	read("storage", func() error { return readInto(ctx, &info.Storage, p.phone.Storage) })
	read("power", func() error { return readInto(ctx, &info.Power, p.phone.Power) })
	wg.Wait()
	if p.entry != nil {
		record := p.entry.Record()
		info.Remembered = &record
	}
	if len(info.Missing) == 0 {
		info.Missing = nil
	}
	return info, p.explain(ctx, "read", "", ctx.Err())
}

func readInto[T any](ctx context.Context, to **T, read func(context.Context) (T, error)) error {
	v, err := read(ctx)
	if err == nil {
		*to = &v
	}
	return err
}
