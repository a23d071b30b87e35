package phone

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

func TestParseThermal(t *testing.T) {
	const cached = "Cached temperatures:\n\tTemperature{mValue=99.0, mType=0, mName=CPU0, mStatus=3}\n"
	const now = "Current temperatures from HAL:\n\tTemperature{mValue=41.2, mType=0, mName=CPU0, mStatus=0}\n\tTemperature{mValue=33.1, mType=3, mName=skin, mStatus=1}\n" +
		"\tTemperature{mValue=0.0, mType=2, mName=battery, mStatus=0}\n\tTemperature{mValue=-3.4028235E38, mType=9, mName=npu, mStatus=0}\n" +
		"\tTemperature{mValue=NaN, mType=1, mName=GPU0, mStatus=0}\n\tTemperature{mValue=36.0, mType=77, mName=odd, mStatus=0}\n" +
		"Current cooling devices from HAL:\n\tCoolingDevice{mValue=0, mType=2, mName=cpu0}\n"
	for name, c := range map[string]struct {
		out  string
		want Thermal
		err  error
	}{
		"as it is": {"IsStatusOverride: false\nThermal Status: 1\n" + cached + "HAL Ready: true\n" + now, Thermal{1, []Temperature{
			{"CPU0", "cpu", 41.2, 0}, {"skin", "skin", 33.1, 1}, {"odd", "other", 36, 0},
		}}, nil},
		"only what was told before": {"Thermal Status: 0\n" + cached + "HAL Ready: false\n", Thermal{0, []Temperature{{"CPU0", "cpu", 99, 3}}}, nil},
		"hardware that tells none":  {"Thermal Status: 0\n" + cached + "Current temperatures from HAL:\nCurrent cooling devices from HAL:\n", Thermal{0, []Temperature{{"CPU0", "cpu", 99, 3}}}, nil},
		"no sensor":                 {"Thermal Status: 2\n", Thermal{Status: 2}, nil},
		"no status":                 {cached, Thermal{}, ErrMalformed},
		"no service":                {"Can't find service: thermalservice\n", Thermal{}, ErrMalformed},
	} {
		got, err := parseThermal(c.out)
		if !reflect.DeepEqual(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	p, a := attached(t, phonetest.Handset{SDK: 28}, nil)
	if _, err := p.Thermal(t.Context()); !errors.Is(err, errors.ErrUnsupported) || len(a.Sent()) != 0 {
		t.Errorf("Android 9: %v", err)
	}
}

func TestParseStorage(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want Storage
		err  error
	}{
		"toybox":        {"Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/block/dm-5 114566460 60000000  54435388  53% /data\n", Storage{114566460 << 10, 54435388 << 10}, nil},
		"a long device": {"Filesystem                             1K-blocks    Used Available Use% Mounted on\r\n/dev/block/bootdevice/by-name/userdata\r\n  1000 400   600  40% /data\r\n", Storage{1000 << 10, 600 << 10}, nil},
		"full":          {"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 1000 1000 0 100% /data/user/0\n", Storage{1000 << 10, 0}, nil},
		"all of them":   {"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/a 7 7 0 100% /\n/dev/x 1000 1 999 1% /data\n/dev/y 1000 1 999 1% /storage/emulated\n", Storage{1000 << 10, 999 << 10}, nil},
		"none of them":  {"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/a 7 7 0 100% /\n/dev/y 1000 1 999 1% /cache\n", Storage{}, ErrMalformed},
		"old toolbox":   {"Filesystem               Size     Used     Free   Blksize\n/data                   25.0G     7.4G    17.6G   4096\n", Storage{}, ErrMalformed},
		"other units":   {"Filesystem 512-blocks Used Available Use% Mounted on\n/dev/x 1000 1 999 1% /data\n", Storage{}, ErrMalformed},
		"more is free than there is": {
			"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 1000 1 9999 1% /data\n", Storage{}, ErrMalformed,
		},
		"nothing": {"df: /data: Permission denied\n", Storage{}, ErrMalformed},
	} {
		if got, err := parseDF(c.out); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := parseStat("4096 1000 250\n"); err != nil || got != (Storage{4096000, 1024000}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "stat: No such file\n", "0 1 1\n", "9999999 9999999999999 1\n", "4096 10 11\n"} {
		if got, err := parseStat(out); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", out, got, err)
		}
	}
}

func TestStorageOfAnotherCommand(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{Stdout: "4096 1000 250\n"}, strings.HasPrefix(r.Command, "stat ")
	})
	for _, trips := range []int{2, 1} {
		a.Forget()
		if got, err := p.Storage(t.Context()); err != nil || got.Free != 1024000 || len(a.Sent()) != trips {
			t.Errorf("%+v, %v in %d round trips", got, err, len(a.Sent()))
		}
	}
	p, _ = attached(t, phonetest.Handset{}, nil)
	if _, err := p.Storage(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("no command answers: %v", err)
	}
}

func TestParsePower(t *testing.T) {
	for out, want := range map[string]Power{
		"  mWakefulness=Awake\n  mStayOn=true\nDisplay Power: state=ON\n":      {"Awake", true, true},
		"  mWakefulness=Asleep\r\n  mStayOn=false\r\nDisplay Power: state=OFF": {"Asleep", false, false},
		"  mWakefulness=Dozing\nDisplay Power: state=DOZE\n":                   {"Dozing", false, false},
		"  mWakefulness=Dreaming\n":                                            {"Dreaming", true, false},
	} {
		if got, err := parsePower(out); err != nil || got != want {
			t.Errorf("%q: %+v, %v", out, got, err)
		}
	}
	for _, out := range []string{"", "mWakefulness=Odd\n", "mWakefulnessChanging=true\n"} {
		if got, err := parsePower(out); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", out, got, err)
		}
	}
}
