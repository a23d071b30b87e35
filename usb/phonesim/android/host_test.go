package android

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing of the machine that runs the test may be read, changed or run from inside the phone.
func TestTheHostIsOutOfReach(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("host secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho host secret\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOST_VARIABLE", "host secret")
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(dir)
	p := newPhone(t, 14, nil)
	hostname, _ := os.Hostname()
	for _, cmd := range []string{
		"cat SECRET", "cat < SECRET", "read x < SECRET; echo $x", "echo $(<SECRET)", "echo $(cat SECRET)", ". SECRET", "source SECRET",
		"sh SECRET", "sh -c 'cat SECRET'", "exec cat SECRET", "ls DIR", "echo DIR/*", "cd DIR && pwd", "cd DIR; cat secret", "cat secret",
		"cat ~/secret", "echo ~/*", "cat $HOME/secret", "echo $HOST_VARIABLE", "env", "set", "export", "stat SECRET", "head SECRET", "md5sum SECRET",
		"cp SECRET /sdcard/x && cat /sdcard/x", "ln -s SECRET /data/local/tmp/l; cat /data/local/tmp/l", "grep -r secret DIR", "dd if=SECRET",
		"SCRIPT", "script", "./script", "command script", "exec script", "command -v script", "type script", "which script",
		"test -e SECRET && echo host secret", "[ -O SECRET ] && echo host secret", "[[ -r SECRET ]] && echo host secret", "pwd -P", "cd -P .; pwd",
		"cat /proc/self/environ", "cat /proc/1/environ", "cat /proc/mounts", "ls /proc/self/cwd/", "cat /proc/self/root/SECRET", "cat /dev/fd/0 /dev/fd/3",
		"cat <(cat SECRET)", "cat =(cat SECRET)", "echo x >(cat > SECRET)", "python3 -c 'print(1)'", "/usr/bin/env", "/bin/bash -c 'echo host secret'",
		"find / -name secret", "uiautomator dump SECRET", "screencap -p SECRET.png", "echo changed > SECRET", "echo changed >> SECRET", "rm SECRET",
		"rm -rf DIR", "mv SECRET /sdcard/y; cat /sdcard/y", "touch DIR/new", "mkdir -p DIR/new", "chmod 000 SECRET", "logcat -d", "getprop", "cat /etc/passwd",
		"cat /etc/hostname", "uname -n", "id", "whoami", "echo ~root ~nobody", "ulimit -a; umask 0; kill -9 1", "trap 'cat SECRET' EXIT", "xargs cat <<< SECRET",
		"timeout 1 cat SECRET", "nohup cat SECRET", "tar cf - DIR", "/proc/self/exe", "hostname",
	} {
		cmd = strings.NewReplacer("SECRET", secret, "SCRIPT", script, "DIR", dir).Replace(cmd)
		out, errOut, _ := p.sh(cmd)
		for _, leak := range []string{"host secret", "root:x:0", "go-build"} {
			if strings.Contains(out, leak) || strings.Contains(errOut, leak) {
				t.Errorf("%s: %q %q", cmd, out, errOut)
			}
		}
		if len(hostname) > 4 && strings.Contains(out, hostname) {
			t.Errorf("%s tells the host's name", cmd)
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "host secret" {
		t.Errorf("the file of the host: %q %v", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder of the host: %v %v", entries, err)
	}
}
