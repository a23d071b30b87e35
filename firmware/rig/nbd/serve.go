package nbd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// The protocol is "fixed newstyle" with simple replies, as in
// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md; all numbers are big-endian.
const (
	magicServer  = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption  = 0x49484156454F5054 // "IHAVEOPT"
	magicReply   = 0x3e889045565a9
	magicRequest = 0x25609513
	magicSimple  = 0x67446698
)

// Flags of the handshake: both sides know options, and no zeroes follow the old export reply.
const (
	fixedNewstyle = 1 << 0
	noZeroes      = 1 << 1
)

// Options that are known; every other one is answered unsupported.
const (
	optionAbort = 2
	optionInfo  = 6
	optionGo    = 7
)

// Types of replies to an option.
const (
	replyAck         = 1
	replyInfo        = 3
	replyUnsupported = 1<<31 | 1
	replyInvalid     = 1<<31 | 3
)

const (
	infoExport    = 0
	infoBlockSize = 3
)

// Flags of the export.
const (
	hasFlags  = 1 << 0
	sendFlush = 1 << 2
	sendFUA   = 1 << 3
)

// Commands and their one flag.
const (
	commandRead       = 0
	commandWrite      = 1
	commandDisconnect = 2
	commandFlush      = 3

	flagFUA = 1 << 0
)

// Errors in replies are those of Linux.
const (
	errnoIO      = 5
	errnoInvalid = 22
)

const (
	maxOption  = 4 << 10  // bytes; a name may have 4096, which nobody here uses
	maxRequest = 32 << 20 // bytes, as the protocol recommends
)

// errProtocol says that the client does not speak the protocol.
var errProtocol = errors.New("nbd: unexpected")

// Serve offers the disk to those who connect to l, whatever export they ask for, until ctx ends; it closes l and waits for its
// connections. Once the disk is off it answers nothing more, and connections stay open: as a dead disk, not as a removed one.
func Serve(ctx context.Context, l net.Listener, d *Disk) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if conn != nil {
				conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("nbd: %w", err)
		}
		serving.Go(func() {
			defer conn.Close()
			hangUp := context.AfterFunc(ctx, func() { conn.Close() })
			defer hangUp()
			if err := serve(conn, d); errors.Is(err, ErrOff) {
				<-ctx.Done()
			}
		})
	}
}

// serve speaks with one client. The error says why it ended; io.EOF and nil are the client's own doing.
func serve(conn io.ReadWriter, d *Disk) error {
	r, w := bufio.NewReader(conn), bufio.NewWriter(conn)
	if err := negotiate(r, w, d.Size()); err != nil {
		return err
	}
	for {
		if err := answer(r, w, d); err != nil {
			return err
		}
	}
}

// put writes fixed-size values.
func put(w io.Writer, values ...any) error {
	for _, v := range values {
		if err := binary.Write(w, binary.BigEndian, v); err != nil {
			return err
		}
	}
	return nil
}

// negotiate ends with nil when the client has chosen the export.
func negotiate(r io.Reader, w *bufio.Writer, size int64) error {
	err := put(w, uint64(magicServer), uint64(magicOption), uint16(fixedNewstyle|noZeroes))
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	var flags uint32
	if err := binary.Read(r, binary.BigEndian, &flags); err != nil {
		return err
	}
	if flags&^(fixedNewstyle|noZeroes) != 0 || flags&fixedNewstyle == 0 {
		return fmt.Errorf("%w client flags %#x", errProtocol, flags)
	}
	for {
		var head struct {
			Magic          uint64
			Option, Length uint32
		}
		if err := binary.Read(r, binary.BigEndian, &head); err != nil {
			return err
		}
		if head.Magic != magicOption || head.Length > maxOption {
			return fmt.Errorf("%w option %d of %d bytes under %#x", errProtocol, head.Option, head.Length, head.Magic)
		}
		data := make([]byte, head.Length)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		chosen, err := option(w, head.Option, data, size)
		if err = errors.Join(err, w.Flush()); err != nil || chosen {
			return err
		}
	}
}

// option answers one option; chosen means that requests follow.
func option(w io.Writer, number uint32, data []byte, size int64) (chosen bool, err error) {
	reply := func(kind uint32, data ...any) error {
		length := 0
		for _, v := range data {
			length += binary.Size(v)
		}
		return put(w, append([]any{uint64(magicReply), number, kind, uint32(length)}, data...)...)
	}
	switch number {
	case optionInfo, optionGo:
		if !exportOK(data) {
			return false, reply(replyInvalid)
		}
		err = errors.Join(
			reply(replyInfo, uint16(infoExport), uint64(size), uint16(hasFlags|sendFlush|sendFUA)),
			reply(replyInfo, uint16(infoBlockSize), uint32(SectorSize), uint32(BlockSize), uint32(maxRequest)),
			reply(replyAck),
		)
		return number == optionGo, err
	case optionAbort:
		return false, errors.Join(reply(replyAck), io.EOF)
	default:
		return false, reply(replyUnsupported)
	}
}

// exportOK checks the form of what INFO and GO carry: a name, and a list of the information that is wanted.
func exportOK(data []byte) bool {
	if len(data) < 4 {
		return false
	}
	name := uint64(binary.BigEndian.Uint32(data))
	rest := uint64(len(data) - 4)
	if name+2 > rest {
		return false
	}
	wanted := uint64(binary.BigEndian.Uint16(data[4+name:]))
	return rest == name+2+2*wanted
}

// answer serves one request.
func answer(r io.Reader, w *bufio.Writer, d *Disk) error {
	var head struct {
		Magic          uint32
		Flags, Command uint16
		Cookie, Offset uint64
		Length         uint32
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil {
		return err
	}
	if head.Magic != magicRequest || head.Length > maxRequest {
		return fmt.Errorf("%w request %d of %d bytes under %#x", errProtocol, head.Command, head.Length, head.Magic)
	}
	var content []byte
	var err error
	switch head.Command {
	case commandRead:
		content = make([]byte, head.Length)
		_, err = d.ReadAt(content, int64(head.Offset))
	case commandWrite:
		data := make([]byte, head.Length)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		err = d.Write(data, int64(head.Offset), head.Flags&flagFUA != 0)
	case commandFlush:
		err = d.Flush()
	case commandDisconnect:
		return io.EOF
	default:
		err = errRange
	}
	number := uint32(0)
	switch {
	case errors.Is(err, ErrOff):
		return err
	case errors.Is(err, errRange):
		number, content = errnoInvalid, nil
	case err != nil:
		number, content = errnoIO, nil
	}
	err = put(w, uint32(magicSimple), number, head.Cookie)
	if err == nil {
		_, err = w.Write(content)
	}
	return errors.Join(err, w.Flush())
}
