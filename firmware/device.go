package firmware

import (
	"context"
	"strconv"
	"time"

	"phonerack/agent/runner/record"
)

const deviceTimeout = 10 * time.Second

// device is what a trajectory tells of its phone: enough to build a simulated one like it. What cannot be read is left
// out.
func (t *task) device() record.Phone {
	p := t.live.phone
	info := p.Info()
	d := record.Phone{
		Name: info.Model + " " + t.live.serial, Serial: t.live.serial, Manufacturer: info.Manufacturer, Model: info.Model,
		Android: info.Release, SDK: info.SDK, Build: info.Build, Locale: info.Locale,
		Width: info.Display.Width, Height: info.Display.Height, Rotation: info.Display.Rotation, Density: info.Display.Density,
	}
	ctx, cancel := context.WithTimeout(t.ctx, deviceTimeout)
	defer cancel()
	installed, err := p.Installed(ctx, false)
	if err != nil {
		if t.ctx.Err() == nil { // else the task is over
			t.log.Warn("the phone's apps could not be listed for the trajectory", "err", err)
		}
		return d
	}
	d.Apps = map[string]string{}
	for _, a := range installed {
		d.Apps[a.Name] = ""
		if a.Version != 0 {
			d.Apps[a.Name] = strconv.FormatInt(a.Version, 10)
		}
	}
	return d
}
