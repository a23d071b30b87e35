package usblink

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/gousb"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// device is an open handle and the context it belongs to.
type device struct {
	*gousb.Device
	context  *sharedContext
	contexts *contexts
}

// at tells whether libusb's device is the one that d describes.
func at(d bus.Device) func(*gousb.DeviceDesc) bool {
	return func(desc *gousb.DeviceDesc) bool {
		return desc.Bus == d.Bus && desc.Address == d.Address && samePath(desc, d.Path)
	}
}

// samePath compares libusb's port numbers with a sysfs name, "1-1.2".
func samePath(desc *gousb.DeviceDesc, path string) bool {
	if path == "" {
		return true
	}
	ports := make([]string, len(desc.Path))
	for i, port := range desc.Path {
		ports[i] = strconv.Itoa(port)
	}
	return path == strconv.Itoa(desc.Bus)+"-"+strings.Join(ports, ".")
}

func (d *device) close() error {
	return errors.Join(d.Device.Close(), d.contexts.give(d.context))
}

// openEndpoints opens a phone and claims its ADB interface.
func (cs *contexts) openEndpoints(d bus.Device) (*endpoints, error) {
	dev, err := cs.openDevice(at(d))
	if err != nil {
		return nil, err
	}
	ep, err := claim(dev, d)
	if err != nil {
		_ = dev.close()
		return nil, err
	}
	return ep, nil
}

func claim(dev *device, d bus.Device) (*endpoints, error) {
	// gousb would switch to a configuration that is not active, which resets
	// every function of the phone.
	active, err := dev.ActiveConfigNum()
	if err != nil {
		return nil, mapError(err)
	}
	if active != d.Config {
		return nil, fmt.Errorf("%w: configuration %d is active, not %d", ErrGone, active, d.Config)
	}
	config, err := dev.Config(active)
	if err != nil {
		return nil, mapError(err)
	}
	interfaces, alternate, err := reshape(config.Desc.Interfaces, d)
	if err != nil {
		return nil, errors.Join(err, config.Close())
	}
	config.Desc.Interfaces = interfaces
	claimed, err := config.Interface(d.Interface, alternate)
	if err != nil {
		return nil, errors.Join(mapError(err), config.Close())
	}
	in, inErr := claimed.InEndpoint(int(d.In & 0x0f))
	out, outErr := claimed.OutEndpoint(int(d.Out & 0x0f))
	release := func() error {
		claimed.Close()
		return errors.Join(config.Close(), dev.close())
	}
	if err := errors.Join(inErr, outErr); err != nil {
		claimed.Close()
		return nil, errors.Join(mapError(err), config.Close())
	}
	return newEndpoints(in, out, release), nil
}

// reshape returns the configuration's interfaces as gousb needs to see them:
// it takes the interface's number for its index, and sends SET_INTERFACE when
// it sees more than one setting. So the interface is put at its number's index,
// and with alternate setting 0, which a configured device is in already, it is
// shown as the only one.
func reshape(interfaces []gousb.InterfaceDesc, d bus.Device) ([]gousb.InterfaceDesc, int, error) {
	at := slices.IndexFunc(interfaces, func(i gousb.InterfaceDesc) bool { return i.Number == d.Interface })
	if at < 0 || d.Interface < 0 || d.Interface > 255 {
		return nil, 0, fmt.Errorf("%w: no interface %d", ErrDescriptor, d.Interface)
	}
	desc := interfaces[at]
	setting := slices.IndexFunc(desc.AltSettings, func(s gousb.InterfaceSetting) bool {
		return speaksADB(s) && bulk(s, d.In, gousb.EndpointDirectionIn) && bulk(s, d.Out, gousb.EndpointDirectionOut)
	})
	if setting < 0 {
		return nil, 0, fmt.Errorf("%w: interface %d has no ADB endpoints 0x%02x and 0x%02x", ErrDescriptor, d.Interface, d.In, d.Out)
	}
	alternate := desc.AltSettings[setting].Alternate
	if alternate == 0 {
		desc.AltSettings = []gousb.InterfaceSetting{desc.AltSettings[setting]}
	}
	shaped := make([]gousb.InterfaceDesc, d.Interface+1)
	for i := range shaped {
		shaped[i].Number = -1
	}
	shaped[d.Interface] = desc
	return shaped, alternate, nil
}

// speaksADB recognises ADB's interface, and that of the xHCI debug capability.
func speaksADB(s gousb.InterfaceSetting) bool {
	return s.Class == 0xff && s.SubClass == 0x42 && s.Protocol == 0x01 ||
		s.Class == 0xdc && s.SubClass == 0x02 && s.Protocol == 0x01
}

func bulk(s gousb.InterfaceSetting, address byte, direction gousb.EndpointDirection) bool {
	ep, ok := s.Endpoints[gousb.EndpointAddress(address)]
	return ok && ep.Direction == direction && ep.TransferType == gousb.TransferTypeBulk
}

// resetDevice resets the port. No configuration may be claimed by this handle,
// or gousb refuses.
func (cs *contexts) resetDevice(d bus.Device) error {
	dev, err := cs.openDevice(at(d))
	if err != nil {
		return err
	}
	// Not found: the device came back different, which is what was wanted.
	err = mapError(dev.Reset())
	if errors.Is(err, ErrGone) {
		err = nil
	}
	return errors.Join(err, dev.close())
}

var _ adb.Endpoints = (*endpoints)(nil)
