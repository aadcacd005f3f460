package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"bole/snapshot"
)

// controlled is a control socket without a mount behind it.
func controlled(t *testing.T) (*mountDaemon, string) {
	t.Helper()
	// A folder whose name alone is longer than a socket address may be.
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := snapshot.Init(root, snapshot.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := snapshot.Open(root, snapshot.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &mountDaemon{stop: make(chan struct{}, 1), log: &daemonLog{Logger: logrus.New()}}
	d.log.SetOutput(io.Discard)
	d.info.ID = "test"
	if d.control, err = listenControl(r, &d.info); err != nil {
		t.Fatal(err)
	}
	return d, d.info.Socket
}

func TestControlSocket(t *testing.T) {
	d, socket := controlled(t)
	fi, err := os.Lstat(socket)
	if err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("%v, %v", fi, err)
	}
	served := make(chan struct{})
	go func() {
		d.control.serve(d)
		close(served)
	}()
	for range 3 { // more than one waits for nobody
		if _, err := askMount(context.Background(), socket, controlRequest{Op: "stop"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.stop) != 1 {
		t.Errorf("%d wishes to stop", len(d.stop))
	}
	_, err = askMount(context.Background(), socket, controlRequest{Op: "dance"}, nil)
	if err == nil || err.Error() != `unknown request "dance"` {
		t.Errorf("%v", err)
	}
	if err := d.control.close(); err != nil {
		t.Error(err)
	}
	<-served
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
	if _, err := askMount(context.Background(), socket, controlRequest{Op: "stop"}, nil); err == nil {
		t.Error("a closed socket answers")
	}
}

// A client that talks nonsense or nothing harms nobody.
func TestControlSocketNonsense(t *testing.T) {
	d, socket := controlled(t)
	go d.control.serve(d)
	defer d.control.close()
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, words := range []string{"", "{", "[]", `{"op":7}`, strings.Repeat("\x00", 1<<16)} {
		c, err := net.DialUnix("unix", nil, socketAddress(dir, filepath.Base(socket)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(words)) // the server may have hung up by then
		if err := c.CloseWrite(); err != nil && !strings.Contains(err.Error(), "not connected") {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if b, err := io.ReadAll(c); len(b) > 0 || os.IsTimeout(err) {
			t.Errorf("%q is answered by %q, %v", words, b, err)
		}
		c.Close()
	}
	if _, err := askMount(context.Background(), socket, controlRequest{Op: "stop"}, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A mount that does not answer is given up when the context ends, and for any
// request but warm after a while.
func TestAskMountGivesUp(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var q controlRequest
		if json.NewDecoder(c).Decode(&q) == nil {
			_ = json.NewEncoder(c).Encode(controlReply{Files: 7})
		}
		_, _ = io.Copy(io.Discard, c)
	}()
	var seen uint64
	_, err = askMount(ctx, filepath.Join(dir, "s"), controlRequest{Op: "warm"}, func(r controlReply) {
		seen = r.Files
		cancel()
	})
	if err == nil || ctx.Err() == nil || seen != 7 {
		t.Errorf("%v after %d files", err, seen)
	}
}
