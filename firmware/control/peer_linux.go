package control

import (
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"phonerack/firmware/action"
)

// peer asks the kernel who is at the other end. Whoever may open the socket is an operator.
func peer(conn net.Conn) (action.Actor, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return action.Actor{}, fmt.Errorf("control: %T is no unix connection", conn)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return action.Actor{}, err
	}
	var credentials *unix.Ucred
	var optErr error
	if err := raw.Control(func(fd uintptr) {
		credentials, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return action.Actor{}, err
	}
	if optErr != nil {
		return action.Actor{}, fmt.Errorf("control: SO_PEERCRED: %w", optErr)
	}
	return action.Actor{Name: userName(credentials.Uid), Role: action.Operator, Via: "socket"}, nil
}

// userName is the login name, or the number for a user that the board does not know.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "user " + number
}
