package blobstore

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// The benchmarks answer the question up to which size contents belong in packs: run
//
//	go test -run - -bench 'Store|Read' ./blobstore
//
// and compare pack with whole at each size.
var benchSizes = []int{4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10}

const benchBytes = 64 << 20 // stored by one pass

// cpuTime is what this process has used of the processors, in ns: other than the clock it is the
// same on a busy machine.
func cpuTime(b *testing.B) int64 {
	var u unix.Rusage
	check(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

func eachKind(b *testing.B, run func(b *testing.B, size int, o Options)) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("pack/%dKiB", size>>10), func(b *testing.B) { run(b, size, Options{Limit: size}) })
		b.Run(fmt.Sprintf("whole/%dKiB", size>>10), func(b *testing.B) { run(b, size, Options{Limit: 1}) })
	}
}

// fillStore stores 64 MiB in contents of one size, with one barrier at the end.
func fillStore(b *testing.B, dir string, size int, o Options) (*Store, []Record) {
	b.Helper()
	check(b, Create(dir, o))
	s, err := Open(dir, o)
	check(b, err)
	tab := newTable()
	batch, err := s.Begin(tab.index, tab.packEnd)
	check(b, err)
	f, err := os.CreateTemp("", "bole-bench")
	check(b, err)
	defer os.Remove(f.Name())
	defer f.Close()
	data := content(1, size)
	for i := range benchBytes / size {
		binary.LittleEndian.PutUint64(data, uint64(i))
		_, err := f.WriteAt(data, 0)
		check(b, err)
		_, _, err = batch.PutFile(f, f.Name())
		check(b, err)
	}
	recs, _, err := batch.Sync()
	check(b, err)
	check(b, batch.Close())
	return s, recs
}

func BenchmarkStore(b *testing.B) {
	eachKind(b, func(b *testing.B, size int, o Options) {
		b.SetBytes(benchBytes)
		var u Usage
		cpu := int64(0)
		for b.Loop() {
			start := cpuTime(b)
			dir := filepath.Join(b.TempDir(), "contents")
			s, _ := fillStore(b, dir, size, o)
			b.StopTimer()
			cpu += cpuTime(b) - start
			var err error
			u, err = s.Usage()
			check(b, err)
			check(b, s.Close())
			check(b, os.RemoveAll(dir))
			b.StartTimer()
		}
		b.ReportMetric(float64(cpu)/1e6/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(u.PackAllocated+u.WholeAllocated)/benchBytes, "disk/byte")
	})
}

// BenchmarkReadFirstPage reads the first 4 KiB of each content once, as a program that looks at
// file types does: from a pack that means the whole content is read and hashed.
func BenchmarkReadFirstPage(b *testing.B) { benchRead(b, 4<<10) }

// BenchmarkReadAll reads each content as a whole, once.
func BenchmarkReadAll(b *testing.B) { benchRead(b, 1<<20) }

func benchRead(b *testing.B, want int) {
	eachKind(b, func(b *testing.B, size int, o Options) {
		s, recs := fillStore(b, filepath.Join(b.TempDir(), "contents"), size, o)
		buf := make([]byte, MaxRecord+RecordHeader)
		n, start := 0, cpuTime(b)
		for b.Loop() {
			if n == len(recs) {
				// Each round is by a process that has read nothing yet; the bytes are in the page
				// cache.
				check(b, s.Close())
				var err error
				s, err = Open(s.dir, o)
				check(b, err)
				n = 0
			}
			readStart(b, s, recs[n].Hash, recs[n].Location, buf[:min(want, size)])
			n++
		}
		b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
		check(b, s.Close())
	})
}

func readStart(b *testing.B, s *Store, h merkle.Hash, loc Location, buf []byte) {
	if loc.Pack != 0 {
		_, err := s.ReadSmall(h, loc, buf)
		check(b, err)
		return
	}
	f, err := s.Whole(h)
	check(b, err)
	_, err = f.File().ReadAt(buf, 0)
	check(b, err)
	f.Release()
}
