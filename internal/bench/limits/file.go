//go:build linux

package limits

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sshpace/internal/record"
)

// FileRead measures how fast a file that was just written is read: out of the page cache and, where
// it is on a disk, from there.
func FileRead(ctx context.Context, path string) ([]record.Measurement, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cached, err := readAll(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("read a file: %w", err)
	}
	rates := []record.Measurement{own(record.FileCached, cached)}
	var fs unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || inMemory(fs) {
		return rates, nil
	}
	if err := f.Sync(); err != nil { // data that is not on the disk yet cannot be dropped from the cache
		return rates, nil
	}
	disk, err := readFile(ctx, f, diskBlock)
	if err != nil {
		return rates, err
	}
	if _, err := readAll(ctx, f); err != nil { // as it was
		return rates, err
	}
	return append(rates, own(record.FileDisk, disk)), nil
}

// diskBlock is the size of reads from a disk.
const diskBlock = 8 << 20

// inMemory reports whether a file system has no disk.
func inMemory(fs unix.Statfs_t) bool {
	kind := uint32(fs.Type) // of 32 or 64 bits
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}
