package dial

import (
	"crypto/ed25519"
	"runtime"
)

// What a login will need and can have before it waits for it.

// fillTables makes crypto/ed25519 compute its tables, once in a process: a millisecond that costs
// nothing while a server starts a process for us.
func fillTables() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	ed25519.Verify(key.Public().(ed25519.PublicKey), nil, ed25519.Sign(key, nil))
}

// growStack gives a goroutine the stack of a login at once. It would begin with
// 2 KiB and double four times, each time with more calls to move.
//
//go:noinline
func growStack() {
	var room [16 << 10]byte
	runtime.KeepAlive(&room)
}
