package toybox

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"phonerack/usb/phonesim/android/memfs"
)

func attr(info fs.FileInfo) *memfs.Attr {
	if a, ok := info.Sys().(*memfs.Attr); ok {
		return a
	}
	return &memfs.Attr{}
}

// UserName is the name of a user or group number of Android.
func UserName(id int) string {
	switch id {
	case 0:
		return "root"
	case 1000:
		return "system"
	case 1015:
		return "sdcard_rw"
	case 1023:
		return "media_rw"
	case 2000:
		return "shell"
	case 3009:
		return "readproc"
	case 9997:
		return "everybody"
	}
	if id >= 10000 {
		return fmt.Sprintf("u%d_a%d", id/100000, id%100000-10000)
	}
	return strconv.Itoa(id)
}

// modeString is the first column of ls -l.
func modeString(m fs.FileMode) string {
	kind := byte('-')
	switch {
	case m.IsDir():
		kind = 'd'
	case m&fs.ModeSymlink != 0:
		kind = 'l'
	case m&fs.ModeCharDevice != 0:
		kind = 'c'
	case m&fs.ModeDevice != 0:
		kind = 'b'
	}
	return string(kind) + m.Perm().String()[1:]
}

// lister holds the options of one ls.
type lister struct {
	e      *Env
	opts   map[byte]string
	status int
}

func list(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("1aAldRtrShnisFZkpCmx")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	l := &lister{e: e, opts: opts}
	var files, dirs []fs.FileInfo
	paths := map[fs.FileInfo]string{}
	for _, p := range args {
		info, err := e.Files.Lstat(e.abs(p))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && !has(opts, 'd') && !has(opts, 'l') {
			if to, terr := e.Files.Stat(e.abs(p)); terr == nil && to.IsDir() {
				info = to
			}
		}
		if err != nil {
			l.status = e.failPath(p, err)
			continue
		}
		named := renamed{info, p}
		paths[named] = p
		if info.IsDir() && !has(opts, 'd') {
			dirs = append(dirs, named)
			continue
		}
		files = append(files, named)
	}
	l.print(files)
	for i, d := range dirs {
		title := len(args) > 1 || has(opts, 'R')
		if i > 0 || len(files) > 0 {
			e.printf("\n")
		}
		l.folder(ctx, paths[d], title, 0)
	}
	return l.status
}

// renamed is a file under the name that the user gave.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

func (l *lister) folder(ctx context.Context, p string, title bool, depth int) {
	if title {
		l.e.printf("%s:\n", p)
	}
	infos, err := l.e.Files.ReadDir(l.e.abs(p))
	if err != nil {
		l.status = l.e.failPath(p, err)
		return
	}
	shown := infos[:0:0]
	if has(l.opts, 'a') {
		for _, n := range []string{".", ".."} {
			if i, err := l.e.Files.Stat(l.e.abs(p + "/" + n)); err == nil {
				shown = append(shown, renamed{i, n})
			}
		}
	}
	for _, i := range infos {
		if !strings.HasPrefix(i.Name(), ".") || has(l.opts, 'a') || has(l.opts, 'A') {
			shown = append(shown, i)
		}
	}
	if has(l.opts, 'l') || has(l.opts, 's') {
		total := int64(0)
		for _, i := range shown {
			total += attr(i).Blocks / 2
		}
		l.e.printf("total %d\n", total)
	}
	l.print(shown)
	if !has(l.opts, 'R') || depth > maxTree {
		return
	}
	for _, i := range shown {
		if i.IsDir() && i.Name() != "." && i.Name() != ".." && ctx.Err() == nil {
			l.e.printf("\n")
			l.folder(ctx, below(p, i.Name()), true, depth+1)
		}
	}
}

func (l *lister) print(infos []fs.FileInfo) {
	switch {
	case has(l.opts, 't'):
		slices.SortStableFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	case has(l.opts, 'S'):
		slices.SortStableFunc(infos, func(a, b fs.FileInfo) int { return cmp.Compare(b.Size(), a.Size()) })
	}
	if has(l.opts, 'r') {
		slices.Reverse(infos)
	}
	if has(l.opts, 'l') || has(l.opts, 'n') {
		l.long(infos)
		return
	}
	for _, i := range infos {
		if has(l.opts, 'i') {
			l.e.printf("%d ", attr(i).Inode)
		}
		l.e.printf("%s%s\n", i.Name(), l.mark(i))
	}
}

// mark is the sign that -F and -p put after a name.
func (l *lister) mark(i fs.FileInfo) string {
	switch {
	case i.IsDir() && (has(l.opts, 'F') || has(l.opts, 'p')):
		return "/"
	case i.Mode()&0o111 != 0 && i.Mode().IsRegular() && has(l.opts, 'F'):
		return "*"
	}
	return ""
}

func (l *lister) long(infos []fs.FileInfo) {
	rows := make([][5]string, len(infos))
	var width [5]int
	for i, info := range infos {
		a := attr(info)
		size := strconv.FormatInt(info.Size(), 10)
		if has(l.opts, 'h') {
			size = human(info.Size())
		}
		if info.Mode()&fs.ModeCharDevice != 0 {
			size = "1,   3"
		}
		rows[i] = [5]string{modeString(info.Mode()), strconv.Itoa(a.Links), UserName(a.UID), UserName(a.GID), size}
		if has(l.opts, 'n') {
			rows[i][2], rows[i][3] = strconv.Itoa(a.UID), strconv.Itoa(a.GID)
		}
		for c, text := range rows[i] {
			width[c] = max(width[c], len(text))
		}
	}
	for i, info := range infos {
		r := rows[i]
		name := info.Name()
		if t := attr(info).Target; info.Mode()&fs.ModeSymlink != 0 {
			name += " -> " + t
		}
		l.e.printf("%s %*s %-*s %-*s %*s %s %s\n", r[0], width[1], r[1], width[2], r[2], width[3], r[3], width[4], r[4],
			info.ModTime().In(l.e.Zone).Format("2006-01-02 15:04"), name+l.mark(info))
	}
}

// human writes sizes as toybox's -h does.
func human(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	f := float64(n)
	for _, unit := range "KMGT" {
		f /= 1024
		if f < 10 {
			return fmt.Sprintf("%.1f%c", f, unit)
		}
		if f < 1024 {
			return fmt.Sprintf("%.0f%c", f, unit)
		}
	}
	return fmt.Sprintf("%.0fP", f/1024)
}

func du(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("skhmacd:")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	status := 0
	for _, p := range args {
		total, err := e.tree(ctx, e.abs(p), 0, func(dir string, size int64) {
			if !has(opts, 's') && dir != e.abs(p) {
				e.printf("%d\t%s\n", size/1024, dir)
			}
		})
		if err != nil {
			status = e.failPath(p, err)
			continue
		}
		size := strconv.FormatInt(total/1024, 10)
		if has(opts, 'h') {
			size = human(total)
		}
		e.printf("%s\t%s\n", size, p)
	}
	return status
}

// tree sums the space of what is below p; done is called for each folder.
func (e *Env) tree(ctx context.Context, p string, depth int, done func(dir string, size int64)) (int64, error) {
	info, err := e.Files.Lstat(p)
	if err != nil {
		return 0, err
	}
	total := attr(info).Blocks * 512
	if !info.IsDir() || depth > maxTree || ctx.Err() != nil {
		return total, ctx.Err()
	}
	total += 4096
	infos, err := e.Files.ReadDir(p)
	if err != nil {
		return 0, err
	}
	for _, c := range infos {
		n, err := e.tree(ctx, path.Join(p, c.Name()), depth+1, done)
		if err != nil {
			continue
		}
		total += n
	}
	done(p, total)
	return total, nil
}
