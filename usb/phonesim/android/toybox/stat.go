package toybox

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

func stat(_ context.Context, e *Env) int {
	opts, args, ok := e.options("c:fLt")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		return e.fail("Needs 1 argument")
	}
	status := 0
	for _, p := range args {
		look := e.Files.Lstat
		if has(opts, 'L') {
			look = e.Files.Stat
		}
		info, err := look(e.abs(p))
		if err != nil {
			status = e.fail("'%s': %s", p, Reason(err))
			continue
		}
		format := opts['c']
		if format == "" {
			format = "  File: %N\n  Size: %s\t Blocks: %b\t IO Blocks: 4096\t%F\n" +
				"Device: fd00h/64768d\t Inode: %i\t Links: %h\n" +
				"Access: (%a/%A)\tUid: (%u/%U)\tGid: (%g/%G)\n" +
				"Access: %y\nModify: %y\nChange: %y"
		}
		e.printf("%s\n", e.statFormat(format, p, info))
	}
	return status
}

func (e *Env) statFormat(format, p string, info fs.FileInfo) string {
	var b strings.Builder
	a := attr(info)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch format[i] {
		case 'a':
			fmt.Fprintf(&b, "%o", info.Mode().Perm())
		case 'A':
			b.WriteString(modeString(info.Mode()))
		case 'b':
			fmt.Fprint(&b, a.Blocks)
		case 'B':
			b.WriteString("512")
		case 'f':
			fmt.Fprintf(&b, "%x", unixMode(info.Mode()))
		case 'F':
			b.WriteString(kindName(info))
		case 'g':
			fmt.Fprint(&b, a.GID)
		case 'G':
			b.WriteString(UserName(a.GID))
		case 'h':
			fmt.Fprint(&b, a.Links)
		case 'i':
			fmt.Fprint(&b, a.Inode)
		case 'n':
			b.WriteString(p)
		case 'N':
			b.WriteString(p)
			if a.Target != "" {
				fmt.Fprintf(&b, " -> '%s'", a.Target)
			}
		case 's':
			fmt.Fprint(&b, info.Size())
		case 'u':
			fmt.Fprint(&b, a.UID)
		case 'U':
			b.WriteString(UserName(a.UID))
		case 'X', 'Y', 'Z':
			fmt.Fprint(&b, info.ModTime().Unix())
		case 'x', 'y', 'z':
			b.WriteString(info.ModTime().In(e.Zone).Format("2006-01-02 15:04:05.000000000 -0700"))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + format[i:i+1])
		}
	}
	return b.String()
}

// unixMode is st_mode.
func unixMode(m fs.FileMode) uint32 {
	kind := uint32(0o100000)
	switch {
	case m.IsDir():
		kind = 0o040000
	case m&fs.ModeSymlink != 0:
		kind = 0o120000
	case m&fs.ModeCharDevice != 0:
		kind = 0o020000
	}
	return kind | uint32(m.Perm())
}

func kindName(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeCharDevice != 0:
		return "character device"
	case info.Size() == 0:
		return "regular empty file"
	}
	return "regular file"
}
