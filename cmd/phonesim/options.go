package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/uia2"
	"phonerack/usb/phonesim/screen"
)

const description = "A simulated Android phone. It is plugged in while it runs: as a USB device of a virtual machine (--redir), or for ADB over a socket (--listen)."

// options are the flags.
type options struct {
	Listen string `help:"Serve ADB at an address: HOST:PORT, or the path of a unix socket (unix:PATH, or with a slash). Not with --adbd." placeholder:"ADDRESS"`
	Redir  string `help:"Plug into QEMU's usb-redir device whose chardev listens at this unix socket." placeholder:"PATH"`
	Adbd   string `help:"Put the real adbd at this address behind the USB device." placeholder:"HOST:PORT"`

	Serial     string        `default:"SIM0001" help:"Serial number."`
	SerialForm string        `enum:"string,absent,empty,garbage,stalled" default:"string" help:"Form of the USB serial number: ${enum}."`
	Model      string        `default:"Sim Phone" help:"Model, as the phone names it."`
	Android    int           `enum:"7,8,9,10,11,12,14,15" default:"14" help:"Version of Android: ${enum}."`
	HighSpeed  bool          `help:"Be a device of 480 Mbit/s with packets of 512 bytes; not behind QEMU's own hub."`
	ZeroPacket string        `enum:"required,optional,forbidden" default:"required" help:"How zero-length packets are taken: ${enum}."`
	Reboot     time.Duration `default:"2s" help:"How long a reboot takes."`

	Language string `enum:"en,ar,zh" default:"en" help:"Language of the screen: ${enum}."`
	Size     size   `default:"1080x2400" help:"Pixels of the screen (${default})." placeholder:"WxH"`
	Density  int    `default:"420" help:"Dots per inch of the screen."`
	Seed     int64  `placeholder:"N" help:"What is random on the screen follows from this number."`

	Locked bool   `help:"Start at the lock screen, and lock whenever the screen goes off."`
	PIN    string `name:"pin" help:"PIN of the lock screen; none: a swipe up opens it." placeholder:"DIGITS"`

	Auth string        `enum:"off,keys,accept,always" default:"off" help:"Whom to let in: everybody (off), known keys (keys); the user accepts others after a while, once (accept) or for ever (always)."`
	Keys string        `type:"existingfile" help:"File of known public keys, one a line as in adbkey.pub." placeholder:"FILE"`
	Wait time.Duration `default:"3s" help:"How long the user takes to accept a key."`

	Fault   faults        `embed:"" prefix:"fault-" group:"Faults of the link"`
	Wrong   androidFaults `embed:"" prefix:"android-" group:"Faults of the Android"`
	Verbose bool          `short:"v" help:"Log what the phone does, not only what hosts do wrong."`
}

// faults are the flags of phonesim.Faults.
type faults struct {
	UnplugAfterOut int64         `help:"Unplug after so many bytes to the phone." placeholder:"BYTES"`
	UnplugAfterIn  int64         `help:"Unplug after so many bytes from the phone." placeholder:"BYTES"`
	Out            string        `enum:"none,stall,ioerror,timeout,babble" default:"none" help:"How transfers to the phone fail: ${enum}."`
	In             string        `enum:"none,stall,ioerror,timeout,babble" default:"none" help:"How transfers from the phone fail: ${enum}."`
	Count          int           `help:"How many transfers fail; 0 is all." placeholder:"N"`
	DropOkay       bool          `help:"Send no OKAY for what is written to streams."`
	DelayOkay      time.Duration `help:"Send those OKAYs late." placeholder:"TIME"`
	Stale          int           `help:"Frames of an earlier connection that wait for the host." placeholder:"N"`
	Hang           bool          `help:"Take everything and answer nothing."`
	Corrupt        string        `enum:"none,garbage,magic,oversize" default:"none" help:"Spoil one frame: ${enum}."`
	CorruptAfter   int           `help:"So many good frames come before it." placeholder:"N"`
	Unauthorized   bool          `help:"Reject every key."`
	Latency        time.Duration `help:"Delay whatever the phone sends." placeholder:"TIME"`
	Rate           int64         `help:"Bytes a second from the phone; 0 is no limit." placeholder:"N"`
}

// androidFaults are the flags of android.Faults.
type androidFaults struct {
	Dump            string        `enum:"ok,null,noidle,silent,cut" default:"ok" help:"How dumps of the screen fail: ${enum}."`
	DumpRate        float64       `help:"How often they do, 0 to 1; 0 is always." placeholder:"RATE"`
	SlowTree        time.Duration `help:"Dumps take so much longer." placeholder:"TIME"`
	NeverIdle       bool          `help:"An animation without an end."`
	DropText        float64       `help:"How often a typed character is lost, 0 to 1." placeholder:"RATE"`
	SwapText        float64       `help:"How often it changes places with the next." placeholder:"RATE"`
	DropFirst       bool          `help:"The first character of each text is lost."`
	SwapFirst       bool          `help:"The first two change places."`
	Composing       bool          `help:"The keyboard holds letters until a space or ENTER."`
	Capitalize      bool          `help:"The first letter of a sentence becomes a capital."`
	Autocorrect     bool          `help:"Some words are corrected."`
	TextDelay       time.Duration `help:"Text arrives over so much time." placeholder:"TIME"`
	InjectDenied    bool          `help:"All input is refused."`
	InstallDenied   bool          `help:"No package can be installed."`
	GrantDenied     bool          `help:"Permissions cannot be granted."`
	ClipboardLie    bool          `help:"The clipboard command says nothing."`
	SettingsDenied  bool          `help:"Settings cannot be changed."`
	Black           bool          `help:"Screenshots are black."`
	Truncate        int           `help:"Screenshots are cut after so many bytes." placeholder:"BYTES"`
	DisplayWarning  bool          `help:"Screenshots come with a warning."`
	StorageFull     bool          `help:"No write of new space succeeds."`
	ServerSlowStart time.Duration `help:"The UiAutomator2 server listens so much later." placeholder:"TIME"`
	ServerCrash     bool          `help:"It ends at the first request."`
	ServerHang      bool          `help:"It answers nothing."`
	ServerStale     bool          `help:"It answers old trees."`
	ServerError     string        `enum:"none,notconnected,staleobject,deadobject" default:"none" help:"It answers trees with an error: ${enum}."`
	NullFocus       bool          `help:"No window has the focus."`
}

// size is a flag like 1080x2400.
type size struct{ width, height int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *size) UnmarshalText(text []byte) error {
	var rest string
	if n, _ := fmt.Sscanf(string(text)+" end", "%dx%d %s", &s.width, &s.height, &rest); n != 3 || rest != "end" || s.width <= 0 || s.height <= 0 {
		return fmt.Errorf("%q is not a size like 1080x2400", text)
	}
	return nil
}

// AfterApply is called by kong; it refuses what cannot be together.
func (o *options) AfterApply() error {
	switch {
	case o.Listen == "" && o.Redir == "":
		return errors.New("give --redir or --listen, or both")
	case o.Listen != "" && o.Adbd != "":
		return errors.New("--adbd is for --redir: an adb client reaches adbd without it")
	}
	return nil
}

var (
	serialForms = map[string]phonesim.SerialForm{
		"string": phonesim.SerialString, "absent": phonesim.SerialAbsent, "empty": phonesim.SerialEmpty,
		"garbage": phonesim.SerialGarbage, "stalled": phonesim.SerialStalled,
	}
	zeroPackets = map[string]phonesim.ZeroPackets{
		"required": phonesim.ZeroPacketsRequired, "optional": phonesim.ZeroPacketsOptional, "forbidden": phonesim.ZeroPacketsForbidden,
	}
	transferErrors = map[string]phonesim.TransferError{
		"none": phonesim.NoError, "stall": phonesim.Stall, "ioerror": phonesim.IOError, "timeout": phonesim.Timeout, "babble": phonesim.Babble,
	}
	dumpFailures = map[string]android.DumpFailure{
		"ok": android.DumpOK, "null": android.DumpNullRoot, "noidle": android.DumpNoIdle, "silent": android.DumpSilent, "cut": android.DumpCutOff,
	}
	serverErrors = map[string]uia2.ErrorKind{
		"none": uia2.NoError, "notconnected": uia2.NotConnected, "staleobject": uia2.StaleObject, "deadobject": uia2.DeadObject,
	}
	corruptions = map[string]phonesim.Corruption{
		"none": phonesim.NoCorruption, "garbage": phonesim.Garbage, "magic": phonesim.WrongMagic, "oversize": phonesim.Oversize,
	}
)

// phone builds what the flags describe.
func (o *options) phone(stderr io.Writer) (*phonesim.Phone, error) {
	level := slog.LevelWarn
	if o.Verbose {
		level = slog.LevelDebug
	}
	c := phonesim.Config{
		Serial: o.Serial, Android: o.Android, HighSpeed: o.HighSpeed, ZeroPackets: zeroPackets[o.ZeroPacket],
		USB:         phonesim.USB{Product: o.Model, Serial: serialForms[o.SerialForm]},
		RebootDelay: o.Reboot,
		Faults:      o.Fault.faults(),
		Logger:      slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	}
	if o.Adbd != "" {
		return phonesim.NewBridge(c, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", o.Adbd)
		})
	}
	var err error
	if c.Auth, err = o.auth(); err != nil {
		return nil, err
	}
	display, err := screen.New(screen.Config{
		Width: o.Size.width, Height: o.Size.height, Density: o.Density, Language: o.Language, Seed: o.Seed,
	})
	if err != nil {
		return nil, err
	}
	var p *phonesim.Phone
	device, err := android.New(android.Config{
		Version: o.Android, Serial: o.Serial, Model: o.Model, Screen: display, Seed: uint64(o.Seed), Latency: 1,
		Faults: o.Wrong.faults(), Locked: o.Locked || o.PIN != "", PIN: o.PIN,
		Reboot: func(target string) {
			if target == "shutdown" {
				p.Unplug()
			} else {
				p.Reboot(target)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	c.System, c.OnReboot = device, func(string) { device.Restart() }
	p, err = phonesim.New(c)
	return p, err
}

func (o *options) auth() (phonesim.Auth, error) {
	a := phonesim.Auth{Required: o.Auth != "off"}
	if o.Auth == "accept" || o.Auth == "always" {
		a.AcceptAfter, a.AcceptAlways = o.Wait, o.Auth == "always"
	}
	if o.Keys == "" {
		return a, nil
	}
	text, err := os.ReadFile(o.Keys)
	if err != nil {
		return a, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			a.Keys = append(a.Keys, line)
		}
	}
	return a, nil
}

func (f faults) faults() phonesim.Faults {
	return phonesim.Faults{
		UnplugAfterOut: f.UnplugAfterOut, UnplugAfterIn: f.UnplugAfterIn,
		FailOut: transferErrors[f.Out], FailIn: transferErrors[f.In], FailCount: f.Count,
		DropOKAY: f.DropOkay, DelayOKAY: f.DelayOkay, StaleFrames: f.Stale, Hang: f.Hang,
		Corrupt: corruptions[f.Corrupt], CorruptAfter: f.CorruptAfter, Unauthorized: f.Unauthorized,
		Latency: f.Latency, BytesPerSecond: f.Rate,
	}
}

func (f androidFaults) faults() android.Faults {
	return android.Faults{
		Dump: dumpFailures[f.Dump], DumpRate: f.DumpRate, SlowTree: f.SlowTree, NeverIdle: f.NeverIdle,
		DropText: f.DropText, SwapText: f.SwapText, DropFirst: f.DropFirst, SwapFirst: f.SwapFirst, Composing: f.Composing,
		Capitalize: f.Capitalize, Autocorrect: f.Autocorrect, TextDelay: f.TextDelay,
		InjectDenied: f.InjectDenied, InstallDenied: f.InstallDenied, GrantDenied: f.GrantDenied, ClipboardLie: f.ClipboardLie, SettingsDenied: f.SettingsDenied,
		Black: f.Black, Truncate: f.Truncate, DisplayWarning: f.DisplayWarning, StorageFull: f.StorageFull, NullFocus: f.NullFocus,
		Server: uia2.Faults{
			SlowStart: f.ServerSlowStart, Crash: f.ServerCrash, Hang: f.ServerHang, Stale: f.ServerStale, Error: serverErrors[f.ServerError],
		},
	}
}
