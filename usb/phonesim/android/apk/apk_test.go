package apk_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
)

func sample() apk.Manifest {
	return apk.Manifest{
		Package: "com.example.app", VersionCode: 1234567, VersionName: "1.2.3-β", MinSDK: 21, TargetSDK: 34, Label: "Example", Debuggable: true,
		Permissions: []string{"android.permission.CAMERA", "android.permission.INTERNET"},
		Activities: []apk.Component{
			{Name: "com.example.app.Other"},
			{Name: "com.example.app.Main", Actions: []string{"android.intent.action.MAIN"}, Categories: []string{"android.intent.category.LAUNCHER"}},
		},
		Services: []apk.Component{
			{Name: "com.example.app.Keys", Permission: "android.permission.BIND_INPUT_METHOD", Actions: []string{"android.view.InputMethod"}},
		},
		Instrumenting: []apk.Instrumentation{{Name: "androidx.test.runner.AndroidJUnitRunner", Target: "com.example.target"}},
	}
}

func TestManifestIsRead(t *testing.T) {
	want := sample()
	file := apktest.Build(want)
	got, err := apk.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Launcher() != "com.example.app.Main" || len(got.InputMethods()) != 1 {
		t.Errorf("launcher %q, keyboards %q", got.Launcher(), got.InputMethods())
	}
}

func TestShortClassNamesAreCompleted(t *testing.T) {
	m := sample()
	m.Activities = []apk.Component{{Name: ".Short"}, {Name: "Bare"}}
	got, err := apk.Parse(apktest.Manifest(m))
	if err != nil {
		t.Fatal(err)
	}
	if got.Activities[0].Name != "com.example.app.Short" || got.Activities[1].Name != "com.example.app.Bare" {
		t.Errorf("activities %+v", got.Activities)
	}
}

func TestWhatIsNoPackageIsRefused(t *testing.T) {
	whole := apktest.Build(sample())
	for name, file := range map[string][]byte{"empty": nil, "text": []byte("hello"), "cut off": whole[:len(whole)/2], "no manifest": []byte("PK\x05\x06" + strings.Repeat("\x00", 18))} {
		if _, err := apk.Read(bytes.NewReader(file), int64(len(file))); !errors.Is(err, apk.ErrNotAPK) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "single", "com.1x", "com..x", "com.a/b"} {
		m := sample()
		m.Package = name
		if _, err := apk.Parse(apktest.Manifest(m)); err == nil {
			t.Errorf("%q was taken for a package", name)
		}
	}
	doc := apktest.Manifest(sample())
	for n := range len(doc) {
		if _, err := apk.Parse(doc[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were taken", n, len(doc))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(apktest.Manifest(sample()))
	f.Add(apktest.Manifest(apk.Manifest{Package: "a.b"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := apk.Parse(data)
		if (m == nil) == (err == nil) {
			t.Errorf("%v, %v", m, err)
		}
	})
}
