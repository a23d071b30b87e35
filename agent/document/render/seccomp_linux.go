package render

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls that reading a document never needs once it is mapped: whoever takes the process over by a
// hostile file finds no network, no files, no other process and no program to start. They fail with EPERM.
var denied = append([]uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT,
	unix.SYS_MKNODAT, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE,
	unix.SYS_FTRUNCATE, unix.SYS_SETXATTR, unix.SYS_FSETXATTR, unix.SYS_UTIMENSAT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD,
	unix.SYS_SETRLIMIT, unix.SYS_PRLIMIT64,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
	unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_CAPSET,
}, deniedHere...)

// Offsets in struct seccomp_data (linux/seccomp.h) of what the filter looks at. Both machines are little endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
)

// filterSystemCalls sets the filter for all threads of this process, those to come included.
func filterSystemCalls() error {
	program := filter()
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	if thread != 0 {
		return unix.ESRCH // that thread has a filter of its own
	}
	return nil
}

// filter is the program in classic BPF. Threads may be made, processes not: clone is looked at, and clone3, whose flags
// lie in memory, fails as in an old kernel, upon which the C library uses clone.
func filter() []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	give := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	// test runs the next instruction if the comparison holds, else skips n of them.
	test := func(compare uint16, k uint32, n uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, Jf: n, K: k}
	}
	eperm := uint32(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	p := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: auditArch},
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(dataNumber),
		test(unix.BPF_JGE, firstForeign, 1), // the x32 calls of amd64
		give(unix.SECCOMP_RET_KILL_PROCESS),
		test(unix.BPF_JEQ, unix.SYS_CLONE3, 1),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
	}
	for _, n := range denied {
		p = append(p, test(unix.BPF_JEQ, n, 1), give(eperm))
	}
	return append(p,
		test(unix.BPF_JEQ, unix.SYS_CLONE, 4),
		load(dataArg0),
		test(unix.BPF_JSET, unix.CLONE_THREAD, 1),
		give(unix.SECCOMP_RET_ALLOW),
		give(eperm),
		give(unix.SECCOMP_RET_ALLOW),
	)
}
