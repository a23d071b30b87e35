package adb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/usb/adb"
)

func TestParseBanner(t *testing.T) {
	samsung := strings.Split("sendrecv_v2_brotli,remount_shell,sendrecv_v2,abb_exec,fixed_push_mkdir,fixed_push_symlink_timestamp,abb,shell_v2,cmd,ls_v2,apex,stat_v2", ",")
	for _, test := range []struct {
		name, in string
		want     adb.Banner
	}{
		{
			"android 11", "device::ro.product.name=x1sxx;ro.product.model=SM-G980F;ro.product.device=x1s;features=" + strings.Join(samsung, ","),
			adb.Banner{Type: "device", Product: "x1sxx", Model: "SM-G980F", Device: "x1s", Features: samsung},
		},
		{
			"android 7, semicolon and NUL", "device::ro.product.name=sailfish;ro.product.model=Pixel;ro.product.device=sailfish;features=cmd,shell_v2;\x00",
			adb.Banner{Type: "device", Product: "sailfish", Model: "Pixel", Device: "sailfish", Features: []string{"cmd", "shell_v2"}},
		},
		{"old", "device::\x00", adb.Banner{Type: "device"}},
		{"recovery", "recovery::ro.product.model=Pixel;", adb.Banner{Type: "recovery", Model: "Pixel"}},
		{"sideload", "sideload::", adb.Banner{Type: "sideload"}},
		{"bootloader", "bootloader:ABC:\x00", adb.Banner{Type: "bootloader", Serial: "ABC"}},
		{"no colon", "device", adb.Banner{Type: "device"}},
		{"empty", "", adb.Banner{}},
		{"doubled and empty features", "device::features=a,,a,b,", adb.Banner{Type: "device", Features: []string{"a", "b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, adb.ParseBanner([]byte(test.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParseBanner(f *testing.F) {
	f.Add([]byte("device::ro.product.name=a;ro.product.model=b;features=c,d;\x00"))
	f.Add([]byte("::::;;==,,"))
	f.Add([]byte(strings.Repeat("features=", 500)))
	f.Fuzz(func(t *testing.T, b []byte) {
		banner := adb.ParseBanner(b)
		if len(banner.Features) > 128 {
			t.Fatalf("%d features", len(banner.Features))
		}
		if len(banner.Type)+len(banner.Model) > len(b) {
			t.Fatal("banner longer than its source")
		}
	})
}
