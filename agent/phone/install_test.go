package phone

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// packageManager is the stream of an installation.
type packageManager struct {
	says   string // behind all that was written
	most   int    // bytes that it takes; 0: all
	silent bool   // it never answers

	once   sync.Once
	closed chan struct{}
	took   bytes.Buffer
}

func (m *packageManager) Write(p []byte) (int, error) {
	if m.most > 0 && m.took.Len()+len(p) > m.most {
		return 0, adb.ErrStreamClosed
	}
	return m.took.Write(p)
}

func (m *packageManager) Read(p []byte) (int, error) {
	if m.silent {
		<-m.closed
		return 0, net.ErrClosed
	}
	if m.says == "" {
		return 0, io.EOF
	}
	n := copy(p, m.says)
	m.says = m.says[n:]
	return n, nil
}

func (m *packageManager) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// installing is a phone whose package manager is m.
func installing(t *testing.T, m *packageManager) (*Phone, *[]string) {
	t.Helper()
	m.closed = make(chan struct{})
	p, _ := attached(t, phonetest.Handset{}, nil)
	var commands []string
	p.conn.feature = func(name string) bool { return name == "cmd" }
	p.conn.exec = func(_ context.Context, cmd string) (io.ReadWriteCloser, error) {
		commands = append(commands, cmd)
		return m, nil
	}
	return p, &commands
}

func TestInstall(t *testing.T) {
	apk := bytes.Repeat([]byte("PK"), 300_000)
	for name, c := range map[string]struct {
		m    *packageManager
		apk  io.Reader
		err  error
		code wire.Code
		says string // in the error
	}{
		"done":                            {&packageManager{says: "Success\n"}, nil, nil, "", ""},
		"done, CRLF":                      {&packageManager{says: "Success\r\n"}, nil, nil, "", ""},
		"behind a warning":                {&packageManager{says: "WARNING: linker: x\nSuccess\n"}, nil, nil, "", ""},
		"refused":                         {&packageManager{says: "Failure [INSTALL_FAILED_OLDER_SDK: Failed parse]\n"}, nil, ErrNotInstalled, wire.InstallFailed, "INSTALL_FAILED_OLDER_SDK: Failed parse"},
		"refused in the middle":           {&packageManager{says: "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]\n", most: 300_000}, nil, ErrNotInstalled, wire.InstallFailed, "INSUFFICIENT_STORAGE"},
		"no reason":                       {&packageManager{says: "Failure\n"}, nil, ErrNotInstalled, wire.InstallFailed, ""},
		"Report22, a switch of the maker": {&packageManager{says: "Failure [INSTALL_FAILED_USER_RESTRICTED: Install canceled by user]\n"}, nil, ErrDeviceSetup, wire.PhoneSetup, "Install via USB"},
		"no room, Android 12":             {&packageManager{says: "\nException occurred while executing 'install':\nandroid.os.ParcelableException: java.io.IOException: Requested internal only, but not enough space\n\tat x\n"}, nil, ErrNotInstalled, wire.InstallFailed, "not enough space"},
		"no answer":                       {&packageManager{}, nil, ErrUnknownOutcome, "", ""},
		"an answer in other words":        {&packageManager{says: "Succeeded, I think\n"}, nil, ErrUnknownOutcome, "", "Succeeded, I think"},
		"success and failure":             {&packageManager{says: "Success\nFailure [X]\n"}, nil, ErrUnknownOutcome, "", ""},
		"success within a line":           {&packageManager{says: "no Success\n"}, nil, ErrUnknownOutcome, "", ""},
		"closed in the middle":            {&packageManager{most: 300_000}, nil, ErrRejected, "", "before the whole APK was sent"},
		"an APK that ends early":          {&packageManager{says: "Success\n"}, bytes.NewReader(apk[:1000]), ErrBadArgument, "", "1000 bytes, not 600000"},
		"an APK that cannot be read":      {&packageManager{says: "Success\n"}, io.MultiReader(bytes.NewReader(apk[:1000]), iotest.ErrReader(errLost)), errLost, "", ""},
		"an APK that is longer":           {&packageManager{says: "Success\n"}, io.MultiReader(bytes.NewReader(apk), strings.NewReader("more")), nil, "", ""},
		"a flood":                         {&packageManager{says: strings.Repeat("x", maxVerdict+1)}, nil, ErrUnknownOutcome, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, commands := installing(t, c.m)
			if c.apk == nil {
				c.apk = bytes.NewReader(apk)
			}
			fence := &lease{left: 1}
			err := p.Under(fence).Install(t.Context(), c.apk, int64(len(apk)))
			if !errors.Is(err, c.err) || c.code != "" && !wire.Is(err, c.code) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, ErrUnknownOutcome) != (c.err == ErrUnknownOutcome) {
				t.Errorf("unknown: %v", err)
			}
			if fence.left != 0 || !slices.Equal(*commands, []string{"cmd package install -r -S 600000"}) {
				t.Errorf("sent %q", *commands)
			}
			if err == nil && !bytes.Equal(c.m.took.Bytes(), apk) {
				t.Errorf("the phone got %d bytes", c.m.took.Len())
			}
		})
	}
}

func TestInstallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &packageManager{silent: true}
		p, _ := installing(t, m)
		start := time.Now()
		err := p.Under(forever()).Install(t.Context(), strings.NewReader("PK"), 2)
		if !errors.Is(err, ErrUnknownOutcome) || time.Since(start) > installTime+p.options.WriteTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		p, commands := installing(t, &packageManager{})
		for _, size := range []int64{0, -1, maxAPK + 1} {
			if err := p.Under(forever()).Install(t.Context(), strings.NewReader("PK"), size); !errors.Is(err, ErrBadArgument) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		if err := p.Under(&lease{}).Install(t.Context(), strings.NewReader("PK"), 2); !wire.Is(err, wire.NotLeased) || *commands != nil {
			t.Errorf("without a lease: %v, sent %q", err, *commands)
		}
	})
}

// Phones without the feature "cmd" get a file first.
func TestInstallByWayOfAFile(t *testing.T) {
	for name, c := range map[string]struct {
		reply phonetest.Reply
		left  int // writes that the fence allows
		apk   string
		err   error
	}{
		"done":                   {phonetest.Reply{Stdout: "\tpkg: /data/local/tmp/x.apk\nSuccess\n"}, 2, "PK34", nil},
		"refused":                {phonetest.Reply{Stdout: "Failure [INSTALL_FAILED_DEXOPT]\r\n"}, 2, "PK34", ErrNotInstalled},
		"lost":                   {phonetest.Reply{Err: adb.ErrDisconnected}, 2, "PK34", ErrUnknownOutcome},
		"the lease ends":         {phonetest.Reply{}, 1, "PK34", wire.Refuse(wire.NotLeased, nil)},
		"no lease":               {phonetest.Reply{}, 0, "PK34", wire.Refuse(wire.NotLeased, nil)},
		"an APK that ends early": {phonetest.Reply{}, 1, "PK", ErrBadArgument},
	} {
		p, a := attached(t, phonetest.Handset{SDK: 24}, replies("pm install", c.reply))
		err := p.Under(&lease{left: c.left}).Install(t.Context(), strings.NewReader(c.apk), 4)
		if refusal, ok := errors.AsType[*wire.Refusal](c.err); ok && !wire.Is(err, refusal.Code) || !ok && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		sent := commands(a)
		if c.left == 0 && len(sent) != 0 {
			t.Errorf("%s: sent %q", name, sent)
			continue
		}
		file := ""
		for _, cmd := range sent {
			for word := range strings.FieldsSeq(cmd) {
				if strings.HasPrefix(word, tempStem) {
					file = strings.TrimSuffix(word, ";")
				}
			}
			if !strings.Contains(cmd, "rm -f "+file) {
				t.Errorf("%s: sent %q", name, cmd)
			}
		}
		if c.left > 0 && (file == "" || len(a.Files().Get(file)) != len(c.apk)) {
			t.Errorf("%s: file %q", name, file)
		}
	}
}

func TestUninstall(t *testing.T) {
	for said, want := range map[string]error{
		"Success\n":                                errNone,
		"Failure [not installed for 0]\n":          ErrAppMissing,
		"Failure [DELETE_FAILED_INTERNAL_ERROR]\n": ErrRejected,
		"":                     ErrUnknownOutcome,
		"Failure - not sure\n": ErrUnknownOutcome,
		"java.lang.SecurityException: Neither user 2000 nor current process has android.permission.DELETE_PACKAGES.\n": ErrRejected,
	} {
		p, _ := attached(t, phonetest.Handset{}, replies("pm uninstall", phonetest.Reply{Stdout: said}))
		if err := p.Under(forever()).Uninstall(t.Context(), "com.shop"); !errors.Is(err, want) && (err != nil || want != errNone) {
			t.Errorf("%q: %v", said, err)
		}
	}
	p, a := attached(t, phonetest.Handset{}, nil)
	for _, pkg := range []string{"", "shop", "com.shop; reboot", "-k", strings.Repeat("a.b", 100)} {
		if err := p.Under(forever()).Uninstall(t.Context(), pkg); !errors.Is(err, ErrBadArgument) || len(a.Sent()) != 0 {
			t.Errorf("%.20q: %v", pkg, err)
		}
	}
}

// errNone stands for success in tables.
var errNone = errors.New("none")

func TestReport22_PermissionsThatAMakerForbids(t *testing.T) {
	const mark = "phonerack-permissions\n"
	const line = "      android.permission.CAMERA: granted="
	for name, c := range map[string]struct {
		stdout, stderr string
		grant, revoke  error
	}{
		"granted":               {mark + line + "true, flags=[ USER_SENSITIVE_WHEN_GRANTED]\n", "", nil, ErrRejected},
		"not granted":           {mark + line + "false, flags=[ RESTRICTION_INSTALLER_EXEMPT]\n", "", ErrRejected, nil},
		"one of two users":      {mark + line + "false\n" + line + "true\n", "", nil, nil},
		"another permission":    {mark + "      x.android.permission.CAMERA: granted=true\n", "", ErrRejected, ErrRejected},
		"a form not known":      {mark, "", nil, nil},
		"MIUI, ColorOS":         {"java.lang.SecurityException: grantRuntimePermission: Neither user 2000 nor current process has android.permission.GRANT_RUNTIME_PERMISSIONS.\n" + mark, "", ErrDeviceSetup, ErrDeviceSetup},
		"in the way of 7":       {"Operation not allowed: java.lang.SecurityException: Neither user 2000 nor current process has android.permission.REVOKE_RUNTIME_PERMISSIONS.\n" + mark, "", ErrDeviceSetup, ErrDeviceSetup},
		"restricted settings":   {"Error: controlled by restricted setting\n" + mark, "", ErrDeviceSetup, ErrDeviceSetup},
		"not asked for":         {"java.lang.SecurityException: Package com.shop has not requested permission\n" + mark, "", ErrRejected, ErrRejected},
		"an unknown app":        {"java.lang.IllegalArgumentException: Unknown package: com.shop\n" + mark, "", ErrAppMissing, ErrAppMissing},
		"an unknown one":        {"java.lang.IllegalArgumentException: Unknown permission: x\n" + mark, "", ErrRejected, ErrRejected},
		"no usable dump at all": {mark + "Can't find service: package\n", "", nil, nil},
	} {
		p, _ := attached(t, phonetest.Handset{}, replies("pm ", phonetest.Reply{Stdout: c.stdout, Stderr: c.stderr, Exit: 1}))
		if err := p.Under(forever()).Grant(t.Context(), "com.shop", camera); !errors.Is(err, c.grant) {
			t.Errorf("%s: grant: %v", name, err)
		} else if c.grant == ErrDeviceSetup && !wire.Is(err, wire.PhoneSetup) {
			t.Errorf("%s: no setting is named: %v", name, err)
		}
		if err := p.Under(forever()).Revoke(t.Context(), "com.shop", camera); !errors.Is(err, c.revoke) {
			t.Errorf("%s: revoke: %v", name, err)
		}
	}
	p, a := attached(t, phonetest.Handset{}, nil)
	for _, bad := range [][2]string{{"shop", camera}, {"com.shop", "CAMERA"}, {"com.shop", camera + "; reboot"}, {"com.shop", ""}, {"-x", camera}} {
		if err := p.Under(forever()).Grant(t.Context(), bad[0], bad[1]); !errors.Is(err, ErrBadArgument) || len(a.Sent()) != 0 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
