package android

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"phonerack/usb/phonesim/android/toybox"
)

func id(c *call) int {
	for _, a := range c.args {
		if strings.Contains(a, "u") {
			if strings.Contains(a, "n") {
				return whoami(c)
			}
			c.printf("%d\n", uidShell)
			return 0
		}
	}
	groups := "2000(shell),1004(input),1007(log),1011(adb),1015(sdcard_rw),1028(sdcard_r),3001(net_bt_admin),3002(net_bt)," +
		"3003(inet),3006(net_bw_stats),3009(readproc)"
	if c.release.version >= 9 {
		groups += ",3011(uhid)"
	}
	c.printf("uid=2000(shell) gid=2000(shell) groups=%s context=u:r:shell:s0\n", groups)
	return 0
}

func whoami(c *call) int {
	c.printf("shell\n")
	return 0
}

func uname(c *call) int {
	fields := map[byte]string{'s': "Linux", 'n': "localhost", 'r': c.release.kernel, 'v': "#1 SMP PREEMPT Thu Feb 1 00:00:00 UTC 2024", 'm': "aarch64"}
	want := "s"
	if len(c.args) > 0 {
		want = strings.TrimLeft(c.args[0], "-")
	}
	if strings.Contains(want, "a") {
		want = "snrvm"
	}
	var out []string
	for _, f := range []byte("snrvm") {
		if strings.IndexByte(want, f) >= 0 {
			out = append(out, fields[f])
		}
	}
	if strings.Contains(c.arg(0), "a") && c.release.version >= 11 {
		out = append(out, "Toybox")
	}
	c.printf("%s\n", strings.Join(out, " "))
	return 0
}

func uptimeCommand(c *call) int {
	up := c.uptime()
	text := fmt.Sprintf("%d min", int(up.Minutes()))
	if up >= time.Hour {
		text = fmt.Sprintf("%2d:%02d", int(up.Hours())%24, int(up.Minutes())%60)
	}
	if days := int(up.Hours()) / 24; days > 0 {
		text = fmt.Sprintf("%d days, %s", days, text)
	}
	c.printf(" %s up %s,  0 users,  load average: 1.00, 1.00, 1.00\n", c.now().In(c.config.Zone).Format("15:04:05"), text)
	return 0
}

// process is a line of ps.
type process struct {
	user      string
	pid, ppid int
	name      string
}

func (d *Device) processes() []process {
	list := []process{
		{"root", 1, 0, "init"},
		{"root", 412, 1, "zygote64"},
		{"system", 398, 1, "surfaceflinger"},
		{"shell", 620, 1, "adbd"},
		{"system", 801, 412, "system_server"},
	}
	if a, ok := d.find("com.android.systemui"); ok {
		list = append(list, process{toybox.UserName(a.uid), 1204, 412, a.name})
	}
	for _, pkg := range d.screen.Running() {
		if a, ok := d.find(pkg); ok {
			list = append(list, process{toybox.UserName(a.uid), d.pid(pkg), 412, pkg})
		}
	}
	list = append(list, d.helpers()...)
	return append(list, process{"shell", 4242, 620, "sh"})
}

func ps(c *call) int {
	all := c.release.version < 8
	format := ""
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; {
		case a == "-o" || a == "-p":
			i++
			if a == "-o" && i < len(c.args) {
				format = c.args[i]
			}
		case strings.HasPrefix(a, "-"):
			all = all || strings.ContainsAny(a, "Ae")
		}
	}
	list := c.processes()
	if !all {
		// Without -A, toybox shows the processes of the user on this terminal.
		list = list[len(list)-1:]
	}
	if format != "" {
		return c.psColumns(list, strings.Split(format, ","))
	}
	if c.release.version < 8 {
		c.printf("USER      PID   PPID  VSIZE  RSS   WCHAN              PC  NAME\n")
		for _, p := range list {
			c.printf("%-9s %-5d %-5d 98304  20480 SyS_epoll_ 7f8a3c2f44 S %s\n", p.user, p.pid, p.ppid, p.name)
		}
		return 0
	}
	c.printf("USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME                       \n")
	for _, p := range list {
		c.printf("%-12s %5d %5d %7d %6d %-16s %4d S %s\n", p.user, p.pid, p.ppid, 98304, 20480, "do_epoll_wait", 0, p.name)
	}
	return 0
}

func (c *call) psColumns(list []process, columns []string) int {
	row := func(p *process) {
		var out []string
		for _, col := range columns {
			col = strings.ToUpper(strings.TrimSpace(col))
			value := col
			if p != nil {
				value = map[string]string{
					"PID": strconv.Itoa(p.pid), "PPID": strconv.Itoa(p.ppid), "USER": p.user, "NAME": p.name, "ARGS": p.name, "CMD": p.name, "S": "S",
				}[col]
			}
			out = append(out, value)
		}
		c.printf("%s\n", strings.Join(out, " "))
	}
	row(nil)
	for i := range list {
		row(&list[i])
	}
	return 0
}

func pidof(c *call) int {
	var found []string
	for _, p := range c.processes() {
		for _, name := range c.args {
			if p.name == name {
				found = append(found, strconv.Itoa(p.pid))
			}
		}
	}
	if len(found) == 0 {
		return 1
	}
	c.printf("%s\n", strings.Join(found, " "))
	return 0
}

func kill(c *call) int {
	status := 0
	for _, a := range c.args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		exists := false
		for _, p := range c.processes() {
			exists = exists || strconv.Itoa(p.pid) == a || p.name == a
		}
		reason := "No such process"
		if exists {
			reason = "Operation not permitted"
		}
		c.errorf("%s: %s: %s\n", c.name, a, reason)
		status = 1
	}
	return status
}

func itoa(n int) string { return strconv.Itoa(n) }

func reboot(c *call) int {
	c.rebootTo(c.arg(0))
	return 0
}

func (c *call) rebootTo(target string) {
	if target == "-p" {
		target = "shutdown"
	}
	if c.config.Reboot != nil {
		c.config.Reboot(target)
	}
}
