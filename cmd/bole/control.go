package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bole/snapshot"
)

// A connection to a mount's socket carries one request, a JSON object, and its
// answers, one JSON object a line; the last one has done set.

// controlRequest is what a client asks for.
type controlRequest struct {
	Op    string   `json:"op"` // stats, warm, stop
	Paths [][]byte `json:"paths,omitempty"`
}

// controlReply is an answer. Files and Bytes are the progress of warm.
type controlReply struct {
	Done  bool        `json:"done,omitempty"`
	Error string      `json:"error,omitempty"`
	Files uint64      `json:"files,omitempty"`
	Bytes uint64      `json:"bytes,omitempty"`
	Stats *mountStats `json:"stats,omitempty"`
}

// mountStats are what a mount has done.
type mountStats struct {
	Requests      map[string]uint64 `json:"requests"`       // by kind, since the mount began
	RequestsSince map[string]uint64 `json:"requests_since"` // since the last time somebody asked
	BytesRead     uint64            `json:"bytes_read"`
	Pushed        uint64            `json:"pushed"` // contents given to the kernel unasked
	PushedBytes   uint64            `json:"pushed_bytes"`
	Rows          int               `json:"rows"` // directories that the kernel holds
}

// patience is how long either side waits for the other's next words, except
// for the answer to warm.
const patience = 5 * time.Second

// controlServer answers on a mount's socket.
type controlServer struct {
	l    *net.UnixListener
	dir  *os.File // of the socket, for names that are longer than a socket address
	name string

	mu   sync.Mutex
	last map[string]uint64 // requests at the last stats
}

// socketAddress names a file in an open directory in few bytes.
func socketAddress(dir *os.File, name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)}
}

// listenControl makes the socket and names it in info.
func listenControl(r *snapshot.Repo, info *snapshot.LeaseInfo) (*controlServer, error) {
	dirName, err := r.RunDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(dirName)
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	name := info.ID + ".sock"
	l, err := net.ListenUnix("unix", socketAddress(dir, name))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make control socket in %s: %w", dirName, err), dir.Close())
	}
	l.SetUnlinkOnClose(false) // close does it
	s := &controlServer{l: l, dir: dir, name: name}
	info.Socket = filepath.Join(dirName, name)
	if err := os.Chmod(info.Socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("make control socket: %w", err), s.close())
	}
	return s, nil
}

func (s *controlServer) close() error {
	err := unix.Unlinkat(int(s.dir.Fd()), s.name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err != nil {
		err = fmt.Errorf("remove control socket %s: %w", s.name, err)
	}
	return errors.Join(err, s.l.Close(), s.dir.Close())
}

// serve answers until the socket is closed.
func (s *controlServer) serve(d *mountDaemon) {
	for {
		c, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Warnf("control socket: %v", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors: they come back
			continue
		}
		go func() {
			defer c.Close()
			if err := s.answer(d, c); err != nil {
				d.log.Warnf("control socket: %v", err)
			}
		}()
	}
}

func (s *controlServer) answer(d *mountDaemon, c *net.UnixConn) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := mayControl(c); err != nil {
		return err
	}
	var q controlRequest
	if err := json.NewDecoder(c).Decode(&q); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	out := json.NewEncoder(c)
	switch q.Op {
	case "stats":
		return out.Encode(controlReply{Done: true, Stats: s.stats(d)})
	case "warm":
		return warmMount(d, c, q.Paths)
	case "stop":
		select {
		case d.stop <- struct{}{}:
		default: // one is waiting already
		}
		return out.Encode(controlReply{Done: true})
	}
	return out.Encode(controlReply{Done: true, Error: fmt.Sprintf("unknown request %q", q.Op)})
}

// mayControl lets in the daemon's own user and root.
func mayControl(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return fmt.Errorf("ask who is there: %w", err)
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("user %d was turned away", cred.Uid)
	}
	return nil
}

func (s *controlServer) stats(d *mountDaemon) *mountStats {
	st := d.srv.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	since := map[string]uint64{}
	for kind, n := range st.Requests {
		if n -= s.last[kind]; n > 0 {
			since[kind] = n
		}
	}
	s.last = st.Requests
	return &mountStats{Requests: st.Requests, RequestsSince: since, BytesRead: st.BytesRead,
		Pushed: st.Pushed, PushedBytes: st.PushedBytes, Rows: st.Rows}
}

// warmMount warms paths for as long as the client stays.
func warmMount(d *mountDaemon, c *net.UnixConn, paths [][]byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, c) // the client says nothing more: this ends when it goes
		cancel()
	}()
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = string(p)
	}
	out := json.NewEncoder(c)
	last := controlReply{}
	told := time.Now()
	err := d.srv.Warm(ctx, names, func(files, bytes uint64) {
		last.Files, last.Bytes = files, bytes
		if time.Since(told) >= 100*time.Millisecond {
			told = time.Now()
			_ = out.Encode(last) // a client that went away ends ctx
		}
	})
	last.Done = true
	if err != nil {
		last.Error = err.Error()
	}
	if ctx.Err() != nil {
		return nil
	}
	return out.Encode(last)
}
