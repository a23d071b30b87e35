package phonesim

import (
	"context"
	"sync"

	"phonerack/usb/phonesim/usbredir"
)

// function is the ADB function of a configured device: a backend and its link over the bulk endpoints. It
// lives from one SET_CONFIGURATION to the next or to a reset, like the files of a daemon's USB function.
type function struct {
	device  *usbDevice
	backend backend
	cancel  context.CancelFunc

	mu      sync.Mutex // guards stopped, and is held while something is queued
	stopped bool       // what is queued from now on is from the past
}

// queue implements link: header and payload are transfers of their own.
func (f *function) queue(m message, sent func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopped {
		header, payload := f.device.phone.faults.frame(m)
		f.device.in.send(sent, header, payload)
	}
}

// dropQueued implements link.
func (f *function) dropQueued() { f.device.in.drop() }

// end implements link.
func (f *function) end(err error) { f.device.plug.end(err) }

// setConfiguration selects a configuration and starts the function anew.
func (d *usbDevice) setConfiguration(value uint8) (usbredir.Status, error) {
	if value > 1 {
		return usbredir.StatusStall, nil
	}
	d.stopFunction()
	d.configuration = value
	if value == 0 {
		return usbredir.StatusSuccess, nil
	}
	f := &function{device: d}
	ctx, cancel := context.WithCancel(d.plug.ctx)
	b, err := d.phone.backend(ctx, f)
	if err != nil {
		cancel()
		return usbredir.StatusIOError, err
	}
	f.backend, f.cancel = b, cancel
	d.function = f
	return usbredir.StatusSuccess, nil
}

// stopFunction ends the function, if there is one, with everything under way; unplug waits for it.
func (d *usbDevice) stopFunction() {
	if err := d.out.reset(); err != nil {
		d.phone.recordError(err)
	}
	f := d.function
	if f == nil {
		return
	}
	d.function = nil
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	d.in.drop()
	f.cancel()
	d.work.Go(f.backend.wait)
}

// reset is a reset of the port: the device is as it was when it was plugged in.
func (d *usbDevice) reset() {
	d.phone.log.Debug("host resets the port")
	d.stopFunction()
	d.configuration = 0
	d.out.halted = false
	d.in.setHalt(false)
}

// unplug ends everything.
func (d *usbDevice) unplug() {
	d.stopFunction()
	d.work.Wait()
}

// bulkOut takes a bulk write. The status is the host's to know before the phone acts on the data.
func (d *usbDevice) bulkOut(b []byte, reply func(usbredir.Status)) error {
	if d.function == nil || d.out.halted {
		reply(usbredir.StatusStall)
		return nil
	}
	if failure := d.phone.faults.transfer(true); failure != NoError {
		d.out.halted = failure == Stall
		reply(failure.status())
		return nil
	}
	pass, ends := d.phone.faults.pass(true, len(b))
	if pass < len(b) {
		reply(usbredir.StatusIOError)
		return ErrUnplugged
	}
	reply(usbredir.StatusSuccess)
	if !d.phone.Faults().Hang {
		m, err := d.out.write(b, d.function.backend.limit())
		if err != nil {
			return err
		}
		if m != nil {
			if err := d.function.backend.receive(*m); err != nil {
				return err
			}
		}
	}
	if ends {
		return ErrUnplugged
	}
	return nil
}
