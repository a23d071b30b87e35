package usbredir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrProtocol is wrapped by every error about what the other side sent.
var ErrProtocol = errors.New("usbredir: protocol error")

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

var le = binary.LittleEndian

// limits gives the least and the greatest length of a packet's body under caps.
func limits(t Type, caps Capabilities) (least, greatest int, err error) {
	exact := func(n int) (int, int, error) { return n, n, nil }
	switch t {
	case TypeHello:
		return 64, maxHello, nil
	case TypeDeviceConnect:
		if caps&CapConnectVersion != 0 {
			return exact(10)
		}
		return exact(8)
	case TypeDeviceDisconnect, TypeDisconnectAck, TypeReset, TypeGetConfiguration, TypeCancel:
		return exact(0)
	case TypeInterfaceInfo:
		return exact(4 + 4*endpoints)
	case TypeEndpointInfo:
		if caps&CapMaxPacketSize != 0 {
			return exact(5 * endpoints)
		}
		return exact(3 * endpoints)
	case TypeSetConfiguration, TypeGetAlternate:
		return exact(1)
	case TypeConfiguration, TypeSetAlternate:
		return exact(2)
	case TypeAlternate:
		return exact(3)
	case TypeControl:
		return 10, 10 + maxControlData, nil
	case TypeBulk:
		n := bulkHeader(caps)
		return n, n + MaxBulkData, nil
	}
	return 0, 0, protocolError("packet type %d was never offered", t)
}

func bulkHeader(caps Capabilities) int {
	if caps&Cap32BitBulkLength != 0 {
		return 10
	}
	return 8
}

// readPacket reads one packet whose header has an ID of idSize bytes.
func readPacket(r io.Reader, idSize int, caps Capabilities) (Packet, error) {
	var header [16]byte
	if _, err := io.ReadFull(r, header[:8+idSize]); err != nil {
		return Packet{}, err
	}
	id := uint64(le.Uint32(header[8:]))
	if idSize == 8 {
		id = le.Uint64(header[8:])
	}
	typ, length := Type(le.Uint32(header[:])), le.Uint32(header[4:])
	least, greatest, err := limits(typ, caps)
	if err != nil {
		return Packet{}, err
	}
	if length < uint32(least) || length > uint32(greatest) {
		return Packet{}, protocolError("packet of type %d has %d bytes", typ, length)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Packet{}, err
	}
	body, err := decode(typ, b, caps)
	return Packet{ID: id, Body: body}, err
}

// decode reads the body of a packet; limits has checked its length.
func decode(t Type, b []byte, caps Capabilities) (Body, error) {
	switch t {
	case TypeHello:
		return decodeHello(b)
	case TypeDeviceConnect:
		c := &DeviceConnect{
			Speed: Speed(b[0]), Class: b[1], Subclass: b[2], Protocol: b[3],
			Vendor: le.Uint16(b[4:]), Product: le.Uint16(b[6:]),
		}
		if len(b) == 10 {
			c.Version = le.Uint16(b[8:])
		}
		return c, nil
	case TypeDeviceDisconnect:
		return &DeviceDisconnect{}, nil
	case TypeDisconnectAck:
		return &DisconnectAck{}, nil
	case TypeReset:
		return &Reset{}, nil
	case TypeInterfaceInfo:
		return decodeInterfaces(b)
	case TypeEndpointInfo:
		return decodeEndpoints(b), nil
	case TypeSetConfiguration:
		return &SetConfiguration{Value: b[0]}, nil
	case TypeGetConfiguration:
		return &GetConfiguration{}, nil
	case TypeConfiguration:
		return &Configuration{Status: Status(b[0]), Value: b[1]}, nil
	case TypeSetAlternate:
		return &SetAlternate{Interface: b[0], Setting: b[1]}, nil
	case TypeGetAlternate:
		return &GetAlternate{Interface: b[0]}, nil
	case TypeAlternate:
		return &Alternate{Status: Status(b[0]), Interface: b[1], Setting: b[2]}, nil
	case TypeCancel:
		return &Cancel{}, nil
	case TypeControl:
		return decodeControl(b)
	default:
		return decodeBulk(b, caps)
	}
}

func decodeHello(b []byte) (*Hello, error) {
	version, _, ok := bytes.Cut(b[:64], []byte{0})
	if !ok {
		return nil, protocolError("the version in hello is not terminated")
	}
	if len(b)%4 != 0 {
		return nil, protocolError("hello has %d bytes", len(b))
	}
	h := &Hello{Version: string(version)}
	if len(b) > 64 {
		h.Capabilities = Capabilities(le.Uint32(b[64:]))
	}
	return h, nil
}

func decodeInterfaces(b []byte) (*InterfaceInfo, error) {
	n := le.Uint32(b)
	if n > endpoints {
		return nil, protocolError("%d interfaces", n)
	}
	info := &InterfaceInfo{}
	for i := range int(n) {
		info.Interfaces = append(info.Interfaces, Interface{
			Number: b[4+i], Class: b[4+endpoints+i], Subclass: b[4+2*endpoints+i], Protocol: b[4+3*endpoints+i],
		})
	}
	return info, nil
}

func decodeEndpoints(b []byte) *EndpointInfo {
	info := &EndpointInfo{}
	for i := range info.Endpoints {
		e := &info.Endpoints[i]
		e.Type, e.Interval, e.Interface = EndpointType(b[i]), b[endpoints+i], b[2*endpoints+i]
		if len(b) > 3*endpoints {
			e.MaxPacket = le.Uint16(b[3*endpoints+2*i:])
		}
	}
	return info
}

// decodeControl accepts data of exactly the stated length or, where the other side has the data, none.
func decodeControl(b []byte) (*Control, error) {
	c := &Control{
		Endpoint: b[0], Request: b[1], RequestType: b[2], Status: Status(b[3]),
		Value: le.Uint16(b[4:]), Index: le.Uint16(b[6:]), Length: le.Uint16(b[8:]),
	}
	if (c.Endpoint^c.RequestType)&0x80 != 0 {
		return nil, protocolError("control endpoint %02x with request type %02x", c.Endpoint, c.RequestType)
	}
	if data := b[10:]; len(data) > 0 {
		if len(data) != int(c.Length) {
			return nil, protocolError("control packet states %d bytes and has %d", c.Length, len(data))
		}
		c.Data = data
	}
	return c, nil
}

func decodeBulk(b []byte, caps Capabilities) (*Bulk, error) {
	p := &Bulk{Endpoint: b[0], Status: Status(b[1]), Length: int(le.Uint16(b[2:]))}
	if stream := le.Uint32(b[4:]); stream != 0 {
		return nil, protocolError("bulk stream %d was never offered", stream)
	}
	n := bulkHeader(caps)
	if n == 10 {
		p.Length |= int(le.Uint16(b[8:])) << 16
	}
	if p.Length > MaxBulkData {
		return nil, protocolError("bulk packet of %d bytes", p.Length)
	}
	if data := b[n:]; len(data) > 0 {
		if len(data) != p.Length {
			return nil, protocolError("bulk packet states %d bytes and has %d", p.Length, len(data))
		}
		p.Data = data
	}
	return p, nil
}

// appendPacket encodes p with an ID of idSize bytes.
func appendPacket(dst []byte, p Packet, idSize int, caps Capabilities) []byte {
	start := len(dst)
	dst = le.AppendUint32(dst, uint32(p.Body.Type()))
	dst = le.AppendUint32(dst, 0)
	if idSize == 8 {
		dst = le.AppendUint64(dst, p.ID)
	} else {
		dst = le.AppendUint32(dst, uint32(p.ID))
	}
	body := len(dst)
	dst = appendBody(dst, p.Body, caps)
	le.PutUint32(dst[start+4:], uint32(len(dst)-body))
	return dst
}

func appendBody(dst []byte, body Body, caps Capabilities) []byte {
	switch b := body.(type) {
	case *Hello:
		var version [64]byte
		copy(version[:63], b.Version)
		return le.AppendUint32(append(dst, version[:]...), uint32(b.Capabilities))
	case *DeviceConnect:
		dst = append(dst, byte(b.Speed), b.Class, b.Subclass, b.Protocol)
		dst = le.AppendUint16(le.AppendUint16(dst, b.Vendor), b.Product)
		if caps&CapConnectVersion != 0 {
			dst = le.AppendUint16(dst, b.Version)
		}
	case *InterfaceInfo:
		return appendInterfaces(dst, b)
	case *EndpointInfo:
		return appendEndpoints(dst, b, caps)
	case *SetConfiguration:
		dst = append(dst, b.Value)
	case *Configuration:
		dst = append(dst, byte(b.Status), b.Value)
	case *SetAlternate:
		dst = append(dst, b.Interface, b.Setting)
	case *GetAlternate:
		dst = append(dst, b.Interface)
	case *Alternate:
		dst = append(dst, byte(b.Status), b.Interface, b.Setting)
	case *Control:
		dst = append(dst, b.Endpoint, b.Request, b.RequestType, byte(b.Status))
		dst = le.AppendUint16(le.AppendUint16(le.AppendUint16(dst, b.Value), b.Index), b.Length)
		dst = append(dst, b.Data...)
	case *Bulk:
		dst = append(dst, b.Endpoint, byte(b.Status))
		dst = le.AppendUint16(dst, uint16(b.Length))
		dst = le.AppendUint32(dst, 0) // stream
		if caps&Cap32BitBulkLength != 0 {
			dst = le.AppendUint16(dst, uint16(b.Length>>16))
		}
		dst = append(dst, b.Data...)
	}
	return dst
}

func appendInterfaces(dst []byte, info *InterfaceInfo) []byte {
	var b [4 + 4*endpoints]byte
	le.PutUint32(b[:], uint32(len(info.Interfaces)))
	for i, n := range info.Interfaces {
		b[4+i], b[4+endpoints+i], b[4+2*endpoints+i], b[4+3*endpoints+i] = n.Number, n.Class, n.Subclass, n.Protocol
	}
	return append(dst, b[:]...)
}

func appendEndpoints(dst []byte, info *EndpointInfo, caps Capabilities) []byte {
	var b [5 * endpoints]byte
	for i, e := range info.Endpoints {
		b[i], b[endpoints+i], b[2*endpoints+i] = byte(e.Type), e.Interval, e.Interface
		le.PutUint16(b[3*endpoints+2*i:], e.MaxPacket)
	}
	if caps&CapMaxPacketSize == 0 {
		return append(dst, b[:3*endpoints]...)
	}
	return append(dst, b[:]...)
}
