//go:build unix

package handover

import (
	"io"
	"os"
	"strconv"
	"syscall"
)

// How long the process that watches may take to say that it takes a call, and
// then to answer it, in seconds. The second is longer than agents wait for a
// hook.
const (
	toTake   = 1
	toAnswer = 600
)

// Ask hands a call to the process that watches a worktree, and waits for the
// answer. It is done false when there is none, it does not take the call, or it
// ended before it had answered: then the call has to go the long way. One that
// was taken is not given to anybody else while it may still be recorded.
func Ask(p Place, c Call) (answer []byte, done bool) {
	path, closePath, ok := Address(p.Socket())
	if !ok {
		return nil, false
	}
	defer closePath()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, false
	}
	conn := connection(fd)
	defer syscall.Close(fd)
	syscall.CloseOnExec(fd)
	if conn.patience(toTake) != nil || syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}) != nil {
		return nil, false
	}
	if conn.writeAll(c.Bytes()) != nil || !conn.taken() || conn.patience(toAnswer) != nil {
		return nil, false
	}
	if answer, err = readField(conn, PayloadMax); err != nil {
		return nil, false
	}
	return answer, true
}

// Address is a path under which a socket can be reached, which may be no longer
// than the kernel's structure for it. The function is called when it has been.
func Address(socket string) (path string, done func(), ok bool) {
	const longest = 100 // 108 on Linux, 104 elsewhere, a zero behind it
	if len(socket) <= longest {
		return socket, func() {}, true
	}
	at := len(socket) - 1
	for at > 0 && socket[at] != '/' {
		at--
	}
	dir, err := os.Open(socket[:at])
	if err != nil {
		return "", nil, false
	}
	path = "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + socket[at:]
	if _, err := os.Stat(path[:len(path)-len(socket[at:])]); err != nil { // there is no /proc
		dir.Close()
		return "", nil, false
	}
	return path, func() { dir.Close() }, true
}

// connection is a socket's descriptor.
type connection int

// taken tells whether the call is taken. After an answer that does not come in
// time it is made sure that none can come any more.
func (c connection) taken() bool {
	var b [1]byte
	n, err := c.Read(b[:])
	if err != nil && err != io.EOF {
		if syscall.Shutdown(int(c), syscall.SHUT_RD) != nil {
			return false
		}
		n, _ = c.Read(b[:]) // what came before
	}
	return n == 1 && b[0] == Taken
}

func (c connection) patience(seconds int64) error {
	tv := syscall.NsecToTimeval(seconds * 1e9)
	if err := syscall.SetsockoptTimeval(int(c), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &tv); err != nil {
		return err
	}
	return syscall.SetsockoptTimeval(int(c), syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &tv)
}

func (c connection) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(c), b)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// writeAll sends all of it. A process that has gone is an error, and no signal.
func (c connection) writeAll(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(int(c), b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
