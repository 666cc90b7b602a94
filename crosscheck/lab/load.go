//go:build linux

package lab

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// load is what is copied to every host: a file, or a directory with files of the same size.
type load struct {
	files int
	size  int64
}

// parseLoad reads 100M or 1000x10K; powers of ten.
func parseLoad(text string) (load, error) {
	l := load{files: 1}
	size := text
	if count, rest, found := strings.Cut(text, "x"); found {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return l, fmt.Errorf("what is copied: %q: no number of files", text)
		}
		l.files, size = n, rest
	}
	unit := int64(1)
	for i, letter := range "KMG" {
		if number, found := strings.CutSuffix(size, string(letter)); found {
			size = number
			for range i + 1 {
				unit *= 1000
			}
		}
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 1 {
		return l, fmt.Errorf("what is copied: %q: no size", text)
	}
	l.size = n * unit
	return l, nil
}

// make writes random content, which no compression makes smaller.
func (l load) make(path string) error {
	if l.files == 1 {
		return randomFile(path, l.size)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	for i := range l.files {
		if err := randomFile(filepath.Join(path, fmt.Sprintf("file%d", i)), l.size); err != nil {
			return err
		}
	}
	return nil
}

func randomFile(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	// In pieces: the peak memory of a program that is measured includes ours at its start.
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// arrived makes sure that every host has everything, and takes it away again.
func (l *Lab) arrived(hosts []string) error {
	for _, h := range hosts {
		var files int
		var size int64
		dir := filepath.Join(l.Path("hosts"), h)
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files++
				size += info.Size()
			}
			return err
		})
		if err == nil && (files != l.load.files || size != int64(l.load.files)*l.load.size) {
			err = fmt.Errorf("%s has %d files and %d bytes", h, files, size)
		}
		if err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// inDirectory is the script that sshd runs for every session: it begins in a directory of the
// address that was connected to, so that hosts that share a disk do not share files.
const inDirectory = `#!/bin/sh
set -- $SSH_CONNECTION
here=${0%/*}/hosts/$3
[ -d "$here" ] || mkdir -p "$here"
cd "$here" || exit
case "$SSH_ORIGINAL_COMMAND" in *sftp-server) exec $SSH_ORIGINAL_COMMAND;; esac
exec sh -c "$SSH_ORIGINAL_COMMAND"
`
