package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// askMount sends a request to a mount's socket and returns the last answer;
// those before it go to progress, which may be nil. ctx ends the talk.
func askMount(ctx context.Context, socket string, q controlRequest, progress func(controlReply)) (last controlReply, err error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return last, fmt.Errorf("reach the mount: %w", err)
	}
	defer dir.Close()
	c, err := net.DialUnix("unix", nil, socketAddress(dir, filepath.Base(socket)))
	if err != nil {
		return last, fmt.Errorf("reach the mount by %s: %w", socket, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return last, fmt.Errorf("ask the mount: %w", err)
	}
	in := json.NewDecoder(c)
	for !last.Done {
		if q.Op != "warm" { // that may take long
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				return last, fmt.Errorf("ask the mount: %w", err)
			}
		}
		last = controlReply{}
		if err := in.Decode(&last); err != nil {
			return last, errors.Join(ctx.Err(), fmt.Errorf("the mount does not answer: %w", err))
		}
		if progress != nil && !last.Done {
			progress(last)
		}
	}
	if last.Error != "" {
		return last, errors.New(last.Error)
	}
	return last, nil
}
