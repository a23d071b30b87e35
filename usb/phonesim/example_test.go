package phonesim_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// Example puts a phone together, lets our ADB host in over a byte stream, starts an app and pulls the cable.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	display, err := screen.New(screen.Config{Width: 720, Height: 1280, Density: 320})
	if err != nil {
		log.Fatal(err)
	}
	device, err := android.New(android.Config{Version: 11, Serial: "SIM0001", Screen: display})
	if err != nil {
		log.Fatal(err)
	}
	phone, err := phonesim.New(phonesim.Config{
		Serial: "SIM0001", Android: 11, System: device,
		Auth: phonesim.Auth{Required: true, AcceptAfter: 10 * time.Millisecond}, // somebody taps "allow"
	})
	if err != nil {
		log.Fatal(err)
	}

	hostEnd, phoneEnd := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- phone.ServeStream(ctx, phoneEnd) }()

	key, err := adb.NewKey()
	if err != nil {
		log.Fatal(err)
	}
	conn, err := adb.Connect(ctx, adb.NewStreamLink(hostEnd), adb.Options{Keys: []*adb.Key{key}})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	release, err := conn.Shell(ctx, "getprop ro.build.version.release")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Android %s", release.Stdout)
	if _, err := conn.Shell(ctx, "am start -W -n com.phonerack.shop/.MainActivity"); err != nil {
		log.Fatal(err)
	}
	app, activity := display.Focus()
	fmt.Println("in front:", app, activity)

	phone.Unplug()
	<-conn.Done()
	fmt.Println("the host sees:", errors.Is(conn.Err(), adb.ErrDisconnected), "the phone:", <-served)
	fmt.Println("rules broken by the host:", len(phone.Violations()))

	// Output:
	// Android 11
	// in front: com.phonerack.shop .MainActivity
	// the host sees: true the phone: phonesim: unplugged
	// rules broken by the host: 0
}
