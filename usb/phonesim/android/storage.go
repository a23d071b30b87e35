package android

import (
	"fmt"
	"strings"
)

// volume is a line of df. Lengths are bytes.
type volume struct {
	device      string
	total, used int64
	point       string
}

func (d *Device) volumes() []volume {
	used, capacity := d.files.Usage()
	data := "/dev/block/dm-3"
	if d.release.version >= 10 {
		data = "/dev/block/by-name/userdata"
	}
	return []volume{
		{"/dev/block/dm-0", 2 << 30, 2 << 30, "/"},
		{"tmpfs", 1 << 30, 1 << 20, "/dev"},
		{data, capacity, used, "/data"},
		{"/dev/fuse", capacity, used, "/storage/emulated"},
	}
}

// volumeOf finds the line for a path, "" for none.
func (d *Device) volumeOf(p string) (volume, bool) {
	p, err := d.shell.Resolve(p)
	if err != nil {
		return volume{}, false
	}
	var best volume
	for _, v := range d.volumes() {
		if (p == v.point || strings.HasPrefix(p, strings.TrimSuffix(v.point, "/")+"/")) && len(v.point) > len(best.point) {
			best = v
		}
	}
	if best.point == "/data" && d.release.version >= 11 {
		best.point = "/data/user/0" // the last of the places where it is mounted
	}
	return best, true
}

// df tells how full the file systems are: all, or those that paths lie on.
func df(c *call) int {
	human, status := false, 0
	var rows []volume
	paths := 0
	for _, a := range c.args {
		if strings.HasPrefix(a, "-") {
			human = human || strings.Contains(a, "h")
			continue
		}
		paths++
		if v, ok := c.volumeOf(c.abs(a)); ok {
			rows = append(rows, v)
		} else {
			c.errorf("df: %s: No such file or directory\n", a)
			status = 1
		}
	}
	if paths == 0 {
		rows = c.volumes()
	}
	if len(rows) > 0 {
		c.dfTable(rows, human)
	}
	return status
}

// dfTable prints as wide as the longest name wants.
func (c *call) dfTable(rows []volume, human bool) {
	show, title := func(n int64) string { return fmt.Sprint(n / 1024) }, "1K-blocks"
	if human {
		show, title = humanSize, "Size"
	}
	cells := [][]string{{"Filesystem", title, "Used", "Available", "Use%", "Mounted on"}}
	if human {
		cells[0][3] = "Avail"
	}
	for _, r := range rows {
		percent := int64(0)
		if r.total > 0 {
			percent = (r.used*100 + r.total - 1) / r.total
		}
		cells = append(cells, []string{r.device, show(r.total), show(r.used), show(r.total - r.used), fmt.Sprint(percent) + "%", r.point})
	}
	width := make([]int, 5)
	for _, row := range cells {
		for i := range width {
			width[i] = max(width[i], len(row[i]))
		}
	}
	for _, row := range cells {
		c.printf("%-*s %*s %*s %*s %*s %s\n", width[0], row[0], width[1], row[1], width[2], row[2], width[3], row[3], width[4], row[4], row[5])
	}
}

// humanSize is a number of bytes as toybox abbreviates it: at most three digits, one of them behind the point if the
// first stands alone.
func humanSize(n int64) string {
	f := float64(n)
	for _, unit := range []string{"", "K", "M", "G"} {
		if f < 1000 || unit == "G" {
			if f < 10 && unit != "" {
				return fmt.Sprintf("%.1f%s", f, unit)
			}
			return fmt.Sprintf("%.0f%s", f, unit)
		}
		f /= 1024
	}
	return ""
}

// dumpDiskStats tells of the same in the words of its service.
func dumpDiskStats(c *call, _ []string) int {
	used, capacity := c.files.Usage()
	c.printf("Latency: 1ms [512B Data Write]\n")
	if c.release.version >= 9 {
		c.printf("Recent Disk Write Speed (kB/s) = 29155\n")
	}
	free := func(name string, total, used int64) {
		percent := int64(0)
		if total > 0 {
			percent = (total - used) * 100 / total
		}
		c.printf("%s-Free: %dK / %dK total = %d%% free\n", name, (total-used)/1024, total/1024, percent)
	}
	free("Data", capacity, used)
	free("Cache", capacity, used)
	free("System", 2<<30, 2<<30)
	if c.release.version >= 9 {
		c.printf("Metadata-Free: 10840K / 11088K total = 97%% free\n")
	}
	c.printf("File-based Encryption: true\n")
	if c.release.version >= 8 {
		c.printf("App Size: %d\nApp Data Size: 0\nApp Cache Size: 0\nPhotos Size: 0\nVideos Size: 0\nAudio Size: 0\nDownloads Size: 0\nSystem Size: %d\nOther Size: 0\n",
			used, int64(2)<<30)
	}
	return 0
}
