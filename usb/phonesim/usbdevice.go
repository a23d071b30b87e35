package phonesim

import (
	"encoding/binary"
	"sync"
	"unicode/utf16"

	"phonerack/usb/phonesim/usbredir"
)

// The phone's two bulk endpoints and its one interface, which is that of ADB.
const (
	endpointOut = 0x01
	endpointIn  = 0x81

	adbClass    = 0xff
	adbSubclass = 0x42
	adbProtocol = 0x01

	packetFull    = 64  // bytes in a bulk packet at full speed
	packetHigh    = 512 // and at high speed
	packetControl = 64

	deviceVersion = 0x0440
)

// Standard requests and descriptor types (USB 2.0, tables 9-4 and 9-5).
const (
	getStatus        = 0
	clearFeature     = 1
	setFeature       = 3
	getDescriptor    = 6
	getConfiguration = 8

	deviceDescriptor     = 1
	configDescriptor     = 2
	stringDescriptor     = 3
	interfaceDescriptor  = 4
	endpointDescriptor   = 5
	qualifierDescriptor  = 6
	otherSpeedDescriptor = 7

	featureEndpointHalt = 0

	requestIn         = 0x80
	requestMask       = 0x60 // zero for standard requests
	recipientMask     = 0x1f
	recipientEndpoint = 2
)

// Indices of the string descriptors.
const (
	stringLanguages = iota
	stringManufacturer
	stringProduct
	stringSerial
	stringInterface
)

// usbDevice is the phone as the bus sees it while it is plugged in.
type usbDevice struct {
	phone *Phone
	plug  *plug
	in    *inEndpoint
	out   *outEndpoint
	work  sync.WaitGroup // functions that have been stopped and not ended

	// What follows belongs to the goroutine that serves the bus.
	configuration uint8
	function      *function // nil while the device is not configured
}

func newUSBDevice(p *Phone, s *plug, complete func(inCompletion)) *usbDevice {
	size := packetFull
	if p.config.HighSpeed {
		size = packetHigh
	}
	return &usbDevice{
		phone: p, plug: s,
		in:  &inEndpoint{phone: p, packet: size, complete: complete, unplug: s.end},
		out: &outEndpoint{packet: size, zero: p.config.ZeroPackets},
	}
}

func (d *usbDevice) connectInfo() *usbredir.DeviceConnect {
	u := d.phone.config.USB
	speed := usbredir.SpeedFull
	if d.phone.config.HighSpeed {
		speed = usbredir.SpeedHigh
	}
	return &usbredir.DeviceConnect{Speed: speed, Vendor: u.VendorID, Product: u.ProductID, Version: deviceVersion}
}

func (d *usbDevice) interfaceInfo() *usbredir.InterfaceInfo {
	return &usbredir.InterfaceInfo{Interfaces: []usbredir.Interface{
		{Number: 0, Class: adbClass, Subclass: adbSubclass, Protocol: adbProtocol},
	}}
}

func (d *usbDevice) endpointInfo() *usbredir.EndpointInfo {
	info := &usbredir.EndpointInfo{}
	for i := range info.Endpoints {
		info.Endpoints[i].Type = usbredir.NoEndpoint
	}
	control := usbredir.Endpoint{Type: usbredir.EndpointControl, MaxPacket: packetControl}
	bulk := usbredir.Endpoint{Type: usbredir.EndpointBulk, MaxPacket: uint16(d.in.packet)}
	info.Endpoints[0], info.Endpoints[16] = control, control
	info.Endpoints[endpointOut], info.Endpoints[16+endpointIn&0xf] = bulk, bulk
	return info
}

// control answers a control request but those that usbredir has packets of its own for. It returns false for a stall.
func (d *usbDevice) control(c *usbredir.Control) ([]byte, bool) {
	if c.RequestType&requestMask != 0 {
		return nil, false
	}
	in := c.RequestType&requestIn != 0
	endpoint := c.RequestType&recipientMask == recipientEndpoint
	switch {
	case in && c.Request == getDescriptor:
		return d.descriptor(uint8(c.Value>>8), uint8(c.Value))
	case in && c.Request == getConfiguration:
		return []byte{d.configuration}, true
	case in && c.Request == getStatus:
		status := make([]byte, 2)
		if endpoint && d.halted(c.Index) {
			status[0] = 1
		}
		return status, true
	case !in && c.Request == clearFeature && endpoint && c.Value == featureEndpointHalt:
		d.phone.log.Debug("host clears a halt", "endpoint", c.Index)
		if !d.halted(c.Index) {
			d.phone.record(violationf(RuleClearHalt, "endpoint %02x is not halted", c.Index))
		}
		d.setHalt(c.Index, false)
		return nil, true
	case !in && c.Request == setFeature && endpoint && c.Value == featureEndpointHalt:
		d.setHalt(c.Index, true)
		return nil, true
	}
	return nil, false
}

func (d *usbDevice) halted(endpoint uint16) bool {
	switch endpoint {
	case endpointIn:
		return d.in.isHalted()
	case endpointOut:
		return d.out.halted
	}
	return false
}

func (d *usbDevice) setHalt(endpoint uint16, halt bool) {
	switch endpoint {
	case endpointIn:
		d.in.setHalt(halt)
	case endpointOut:
		d.out.halted = halt
	}
}

func (d *usbDevice) descriptor(kind, index uint8) ([]byte, bool) {
	switch kind {
	case deviceDescriptor:
		return d.deviceDescriptor(), true
	case configDescriptor:
		return d.configDescriptor(configDescriptor, d.in.packet), index == 0
	case stringDescriptor:
		return d.stringDescriptor(index)
	case qualifierDescriptor:
		return []byte{10, qualifierDescriptor, 0, 2, 0, 0, 0, packetControl, 1, 0}, d.phone.config.HighSpeed
	case otherSpeedDescriptor:
		return d.configDescriptor(otherSpeedDescriptor, packetFull), d.phone.config.HighSpeed && index == 0
	}
	return nil, false
}

func (d *usbDevice) deviceDescriptor() []byte {
	u := d.phone.config.USB
	b := []byte{18, deviceDescriptor, 0, 2, 0, 0, 0, packetControl}
	b = binary.LittleEndian.AppendUint16(b, u.VendorID)
	b = binary.LittleEndian.AppendUint16(b, u.ProductID)
	b = binary.LittleEndian.AppendUint16(b, deviceVersion)
	serial := byte(stringSerial)
	if u.Serial == SerialAbsent {
		serial = 0
	}
	return append(b, stringManufacturer, stringProduct, serial, 1)
}

func (d *usbDevice) configDescriptor(kind byte, packet int) []byte {
	lo, hi := byte(packet), byte(packet>>8)
	return []byte{
		9, kind, 32, 0, 1, 1, 0, 0x80, 250, // one interface, bus-powered, 500 mA
		9, interfaceDescriptor, 0, 0, 2, adbClass, adbSubclass, adbProtocol, stringInterface,
		7, endpointDescriptor, endpointIn, 2, lo, hi, 0,
		7, endpointDescriptor, endpointOut, 2, lo, hi, 0,
	}
}

func (d *usbDevice) stringDescriptor(index uint8) ([]byte, bool) {
	u := d.phone.config.USB
	switch index {
	case stringLanguages:
		return []byte{4, stringDescriptor, 0x09, 0x04}, true // English (United States)
	case stringManufacturer:
		return encodeString(utf16.Encode([]rune(u.Manufacturer))), true
	case stringProduct:
		return encodeString(utf16.Encode([]rune(u.Product))), true
	case stringInterface:
		return encodeString(utf16.Encode([]rune("ADB Interface"))), true
	case stringSerial:
		switch u.Serial {
		case SerialString:
			return encodeString(utf16.Encode([]rune(d.phone.config.Serial))), true
		case SerialEmpty:
			return encodeString(nil), true
		case SerialGarbage:
			return encodeString([]uint16{0x0001, '?', 0xd800, 0xffff, '\n', '/', 0xdc00, 0x202e, 0}), true
		}
	}
	return nil, false
}

// encodeString builds a string descriptor; it has room for 126 code units.
func encodeString(units []uint16) []byte {
	units = units[:min(len(units), 126)]
	b := []byte{byte(2 + 2*len(units)), stringDescriptor}
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}
