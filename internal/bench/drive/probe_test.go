package drive

import (
	blockcipher "crypto/aes"
	"crypto/cipher"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe that holds a page, as those of a user who has too many of them do, does
// not stop the probe.
func TestProbeWithASmallPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if size, err := unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil || size != os.Getpagesize() {
		t.Fatalf("pipe of %d bytes, %v", size, err)
	}
	block, err := blockcipher.NewCipher(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := newWork(seal, int(read.Fd()), int(write.Fd())).run(); err != nil {
		t.Error(err)
	}
}
