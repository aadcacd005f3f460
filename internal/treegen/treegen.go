// Package treegen makes directory trees on disk for tests and benchmarks: the
// same call makes the same names, bytes, modes and modification times on every
// machine whose umask is 022.
//
// It owns the shape of those trees and nothing else: it never reads what it
// wrote, never removes anything and knows nothing of repositories. Each
// function may use two goroutines while it runs and leaves none behind; a
// directory must not be handed to two calls at once.
package treegen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// workers is how many directories are filled at once: creating files is bound
// by the file system's journal, which more do not help.
const workers = 2

// The benchmark tree: 20 directories with 20 in each with 12 in each, and 10
// files in every one of them.
const (
	// BenchDirs is the number of directories that Bench makes, the root not counted.
	BenchDirs = 20 + 20*20 + 20*20*12
	// BenchFiles is the number of files that Bench makes.
	BenchFiles = BenchDirs * benchFilesPerDir
	// BenchBytes is the number of bytes in all files that Bench makes.
	BenchBytes = BenchFiles * 1024

	benchFilesPerDir = 10
)

// epoch is the time of the first file; others follow by one second and some
// nanoseconds each.
var epoch = time.Date(2020, time.February, 3, 4, 5, 6, 789, time.UTC)

// Bench makes the benchmark tree in dir, which may exist: 5,220 directories on
// three levels and 52,200 files of 992 to 1,056 bytes that nothing compresses,
// 53,452,800 bytes together, no two alike.
func Bench(dir string) error {
	var dirs []string
	for a := range 20 {
		top := fmt.Sprintf("class_%02d", a)
		dirs = append(dirs, top)
		for b := range 20 {
			group := fmt.Sprintf("%s/group_%02d", top, b)
			dirs = append(dirs, group)
			for c := range 12 {
				dirs = append(dirs, fmt.Sprintf("%s/set_%02d", group, c))
			}
		}
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("make benchmark tree: %w", err)
		}
	}
	var g errgroup.Group
	g.SetLimit(workers)
	for i, d := range dirs {
		g.Go(func() error { return benchDir(filepath.Join(dir, d), i*benchFilesPerDir) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make benchmark tree: %w", err)
	}
	for i := len(dirs) - 1; i >= 0; i-- { // children before parents: a new child moves the parent's time
		if err := setTime(filepath.Join(dir, dirs[i]), i); err != nil {
			return fmt.Errorf("make benchmark tree: %w", err)
		}
	}
	return nil
}

// benchDir fills one directory with the files from number first on.
func benchDir(dir string, first int) error {
	buf := make([]byte, 1024+32)
	for i := first; i < first+benchFilesPerDir; i++ {
		// Sizes go up and down around 1,024 and add up to it over each pair of files.
		size := 1024 + (i/2)%33
		if i%2 == 1 {
			size = 1024 - (i/2)%33
		}
		fill(buf[:size], uint64(i))
		if err := writeFile(filepath.Join(dir, fmt.Sprintf("sample_%05d.bin", i)), buf[:size], i); err != nil {
			return err
		}
	}
	return nil
}

// Flat puts files number 0 to n-1 into dir itself, which may exist. Each holds
// size bytes; from 8 bytes on no two are alike.
func Flat(dir string, n, size int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make flat directory: %w", err)
	}
	if err := files(dir, 0, n, size); err != nil {
		return fmt.Errorf("make flat directory: %w", err)
	}
	return nil
}

// spanFiles is how many files Span puts into one directory.
const spanFiles = 1000

// Span makes the files number from to to-1 of an endless tree of empty files,
// 1,000 to a directory and 1,000 directories to a directory, so that a large
// tree can be grown step by step. Both numbers must be multiples of 1,000.
func Span(dir string, from, to int) error {
	if from%spanFiles != 0 || to%spanFiles != 0 || from > to {
		return fmt.Errorf("make span %d to %d: not whole directories of %d files", from, to, spanFiles)
	}
	var g errgroup.Group
	g.SetLimit(workers)
	for first := from; first < to; first += spanFiles {
		number := first / spanFiles
		sub := filepath.Join(dir, fmt.Sprintf("part_%03d/%03d", number/1000, number%1000))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return fmt.Errorf("make span: %w", err)
		}
		g.Go(func() error { return files(sub, first, first+spanFiles, 0) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make span: %w", err)
	}
	return nil
}

// files creates the files number from to to-1 in dir.
func files(dir string, from, to, size int) error {
	buf := make([]byte, size)
	for i := from; i < to; i++ {
		fill(buf, uint64(i))
		if err := writeFile(filepath.Join(dir, fmt.Sprintf("file_%07d", i)), buf, i); err != nil {
			return err
		}
	}
	return nil
}

// Large writes one file of size bytes that nothing compresses. Another seed
// gives other bytes in every block of 4 KiB.
func Large(path string, size int64, seed uint64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("make large file: %w", err)
	}
	defer f.Close()
	rng := rand.NewPCG(seed, 1)
	buf := make([]byte, 1<<20)
	for written := int64(0); written < size; {
		block := buf[:min(int64(len(buf)), size-written)]
		fillFrom(block, rng)
		if _, err := f.Write(block); err != nil {
			return fmt.Errorf("make large file: %w", err)
		}
		written += int64(len(block))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("make large file: %w", err)
	}
	return nil
}

// writeFile creates a file and gives it the time of number i.
func writeFile(path string, data []byte, i int) error {
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	return setTime(path, i)
}

// setTime gives a path the modification time of number i.
func setTime(path string, i int) error {
	t := epoch.Add(time.Duration(i) * (time.Second + 1237*time.Nanosecond))
	return os.Chtimes(path, t, t)
}

// fill writes the bytes that belong to a seed.
func fill(buf []byte, seed uint64) {
	var rng rand.PCG
	rng.Seed(seed, 0)
	fillFrom(buf, &rng)
}

// fillFrom writes the next bytes of rng, little endian.
func fillFrom(buf []byte, rng *rand.PCG) {
	for len(buf) >= 8 {
		binary.LittleEndian.PutUint64(buf, rng.Uint64())
		buf = buf[8:]
	}
	if len(buf) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], rng.Uint64())
		copy(buf, last[:])
	}
}
