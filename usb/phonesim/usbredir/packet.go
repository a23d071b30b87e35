package usbredir

// Body is the part of a packet after its header: a pointer to one of the types of this file.
type Body interface {
	// Type tells which packet type the body belongs to.
	Type() Type
}

// Packet is one message. ID pairs a reply with its request; packets without a reply have ID 0.
type Packet struct {
	ID   uint64
	Body Body
}

// Hello opens a connection.
type Hello struct {
	Version      string // free text, at most 63 bytes
	Capabilities Capabilities
}

// DeviceConnect says that a device is plugged in.
type DeviceConnect struct {
	Speed                     Speed
	Class, Subclass, Protocol uint8
	Vendor, Product, Version  uint16
}

// DeviceDisconnect says that the device is gone.
type DeviceDisconnect struct{}

// DisconnectAck answers DeviceDisconnect: no packet for the old device follows it.
type DisconnectAck struct{}

// Reset is a reset of the device's port.
type Reset struct{}

// Interface is one entry of InterfaceInfo.
type Interface struct {
	Number, Class, Subclass, Protocol uint8
}

// InterfaceInfo lists the interfaces of the active configuration, at most 32.
type InterfaceInfo struct {
	Interfaces []Interface
}

// Endpoint is one entry of EndpointInfo.
type Endpoint struct {
	Type      EndpointType
	Interval  uint8
	Interface uint8
	MaxPacket uint16
}

// EndpointInfo describes all possible endpoints: OUT endpoint n at n, IN endpoint n at n+16.
type EndpointInfo struct {
	Endpoints [endpoints]Endpoint
}

// SetConfiguration asks for a configuration; Configuration answers it.
type SetConfiguration struct {
	Value uint8
}

// GetConfiguration asks for the active configuration; Configuration answers it.
type GetConfiguration struct{}

// Configuration is the configuration that is active.
type Configuration struct {
	Status Status
	Value  uint8
}

// SetAlternate asks for an alternate setting; Alternate answers it.
type SetAlternate struct {
	Interface, Setting uint8
}

// GetAlternate asks for the active alternate setting; Alternate answers it.
type GetAlternate struct {
	Interface uint8
}

// Alternate is the alternate setting that is active.
type Alternate struct {
	Status             Status
	Interface, Setting uint8
}

// Cancel asks to end the data packet with the same ID early.
type Cancel struct{}

// Control is a control transfer, request and reply alike. Length is what is asked for or what was moved;
// Data is there in a request to the device and in a reply from it.
type Control struct {
	Endpoint    uint8
	Request     uint8
	RequestType uint8
	Status      Status
	Value       uint16
	Index       uint16
	Length      uint16
	Data        []byte
}

// Bulk is a bulk transfer, request and reply alike. Data is there in a request to an OUT endpoint
// and in a reply from an IN endpoint (bit 7 of Endpoint); Length is its length, or what is asked for.
type Bulk struct {
	Endpoint uint8
	Status   Status
	Length   int
	Data     []byte
}

// Type implements Body.
func (*Hello) Type() Type { return TypeHello }

// Type implements Body.
func (*DeviceConnect) Type() Type { return TypeDeviceConnect }

// Type implements Body.
func (*DeviceDisconnect) Type() Type { return TypeDeviceDisconnect }

// Type implements Body.
func (*DisconnectAck) Type() Type { return TypeDisconnectAck }

// Type implements Body.
func (*Reset) Type() Type { return TypeReset }

// Type implements Body.
func (*InterfaceInfo) Type() Type { return TypeInterfaceInfo }

// Type implements Body.
func (*EndpointInfo) Type() Type { return TypeEndpointInfo }

// Type implements Body.
func (*SetConfiguration) Type() Type { return TypeSetConfiguration }

// Type implements Body.
func (*GetConfiguration) Type() Type { return TypeGetConfiguration }

// Type implements Body.
func (*Configuration) Type() Type { return TypeConfiguration }

// Type implements Body.
func (*SetAlternate) Type() Type { return TypeSetAlternate }

// Type implements Body.
func (*GetAlternate) Type() Type { return TypeGetAlternate }

// Type implements Body.
func (*Alternate) Type() Type { return TypeAlternate }

// Type implements Body.
func (*Cancel) Type() Type { return TypeCancel }

// Type implements Body.
func (*Control) Type() Type { return TypeControl }

// Type implements Body.
func (*Bulk) Type() Type { return TypeBulk }
