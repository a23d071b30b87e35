package usbredir

import "fmt"

// Type is the kind of a packet, the first word of its header.
type Type uint32

// The packet types of a device with control and bulk endpoints.
const (
	TypeHello            Type = 0
	TypeDeviceConnect    Type = 1
	TypeDeviceDisconnect Type = 2
	TypeReset            Type = 3
	TypeInterfaceInfo    Type = 4
	TypeEndpointInfo     Type = 5
	TypeSetConfiguration Type = 6
	TypeGetConfiguration Type = 7
	TypeConfiguration    Type = 8 // configuration_status
	TypeSetAlternate     Type = 9
	TypeGetAlternate     Type = 10
	TypeAlternate        Type = 11 // alt_setting_status
	TypeCancel           Type = 21 // cancel_data_packet
	TypeDisconnectAck    Type = 24
	TypeControl          Type = 100
	TypeBulk             Type = 101
)

// Status is how a request ended.
type Status uint8

// The statuses of the protocol.
const (
	StatusSuccess   Status = 0
	StatusCancelled Status = 1
	StatusInvalid   Status = 2
	StatusIOError   Status = 3
	StatusStall     Status = 4
	StatusTimeout   Status = 5
	StatusBabble    Status = 6
)

var statusNames = [...]string{"success", "cancelled", "invalid", "I/O error", "stall", "timeout", "babble"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Capabilities is the set of protocol extensions that one side offers, one bit each.
type Capabilities uint32

// The capabilities that this package knows.
const (
	CapConnectVersion  Capabilities = 1 << 1 // device_connect carries the device's version
	CapDisconnectAck   Capabilities = 1 << 3 // device_disconnect is acknowledged
	CapMaxPacketSize   Capabilities = 1 << 4 // ep_info carries wMaxPacketSize
	Cap64BitIDs        Capabilities = 1 << 5 // headers are 16 bytes
	Cap32BitBulkLength Capabilities = 1 << 6 // bulk lengths have a high half
)

// Offered is what a Conn says in its hello. QEMU wants the last three of a device behind an xHCI port.
const Offered = CapConnectVersion | CapDisconnectAck | CapMaxPacketSize | Cap64BitIDs | Cap32BitBulkLength

// MaxBulkData bounds the data of one bulk packet in bytes: ADB's largest payload is 1 MiB.
const MaxBulkData = 4 << 20

const (
	maxControlData = 65535
	maxHello       = 64 + 4*8 // room for capabilities that are still to be invented
	endpoints      = 32
)

// Speed is the speed of a device on the bus.
type Speed uint8

// The speeds of USB 2.
const (
	SpeedLow  Speed = 0 // 1.5 Mbit/s
	SpeedFull Speed = 1 // 12 Mbit/s
	SpeedHigh Speed = 2 // 480 Mbit/s
)

// EndpointType says what an endpoint is for.
type EndpointType uint8

// Types of endpoints; NoEndpoint marks the unused entries of EndpointInfo.
const (
	EndpointControl EndpointType = 0
	EndpointBulk    EndpointType = 2
	NoEndpoint      EndpointType = 255
)
