package android

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"
	"time"
)

func push(p *phone, name string, mode fs.FileMode, content []byte) error {
	w, err := p.CreateFile(name, mode, p.clock.Now())
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

func TestSyncFiles(t *testing.T) {
	p := newPhone(t, 14, nil)
	if err := push(p, "/data/local/tmp/new/tool", 0o755, []byte("echo tool $1\n")); err != nil {
		t.Fatal(err)
	}
	if out := p.ok("/data/local/tmp/new/tool run; cd /data/local/tmp/new && ./tool again"); out != "tool run\ntool again\n" {
		t.Errorf("%q", out)
	}
	push(p, "/sdcard/tool", 0o755, []byte("echo x\n"))
	if _, errOut, status := p.sh("/sdcard/tool"); status != 126 || errOut != "/system/bin/sh: /sdcard/tool: can't execute: Permission denied\n" {
		t.Errorf("%q %d", errOut, status)
	}
	w, err := p.CreateFile("/sdcard/late", 0o644, p.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1_600_000_000, 0)
	w.(interface{ SetModTime(time.Time) }).SetModTime(old)
	w.Close()
	if info, err := p.Stat("/sdcard/late"); err != nil || !info.ModTime().Equal(old) || info.Size() != 0 {
		t.Errorf("%v %v", info, err)
	}
	push(p, "/data/local/tmp/link", fs.ModeSymlink|0o777, []byte("new/tool"))
	if out := p.ok("readlink /data/local/tmp/link; cat /data/local/tmp/link"); out != "new/tool\necho tool $1\n" {
		t.Errorf("%q", out)
	}
	r, err := p.OpenFile("/sdcard/tool")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(r); string(b) != "echo x\n" {
		t.Errorf("%q", b)
	}
	r.Close()
	list, err := p.ReadDir("/sdcard/")
	if err != nil || len(list) < 8 {
		t.Errorf("%v %v", list, err)
	}
	for _, tt := range []struct {
		err, want error
	}{
		{push(p, "/system/x", 0o644, nil), syscall.EROFS},
		{push(p, "/data/x", 0o644, nil), fs.ErrPermission},
		{push(p, "/sdcard", 0o644, nil), syscall.EISDIR},
		{func() error { _, err := p.OpenFile("/sdcard"); return err }(), syscall.EISDIR},
		{func() error { _, err := p.OpenFile("/none"); return err }(), fs.ErrNotExist},
		{func() error { _, err := p.ReadDir("/data/data"); return err }(), fs.ErrPermission},
		{func() error { _, err := p.Stat("/data/misc/x/y"); return err }(), fs.ErrNotExist},
		{push(p, "/sdcard/huge", 0o644, bytes.Repeat([]byte("x"), 65<<20)), syscall.ENOSPC},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%v, want %v", tt.err, tt.want)
		}
	}
}
