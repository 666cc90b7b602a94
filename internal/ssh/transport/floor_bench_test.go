package transport_test

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/mlkem"
	"crypto/rand"
	"testing"
)

// BenchmarkFloor is what the computations of a client's login alone cost that no client can do
// without: its half of the key exchange, the host key's signature, and its own.
func BenchmarkFloor(b *testing.B) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	hash := make([]byte, 32)
	request := make([]byte, 200)
	signature := ed25519.Sign(private, hash)
	curve := ecdh.X25519()
	server, err := curve.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	elliptic := func() {
		ours, err := curve.GenerateKey(rand.Reader)
		if err == nil {
			_, err = ours.ECDH(server.PublicKey())
		}
		if err != nil || !ed25519.Verify(public, hash, signature) {
			b.Fatal(err)
		}
		ed25519.Sign(private, request)
	}
	b.Run(exchanges[0], func(b *testing.B) {
		for b.Loop() {
			elliptic()
		}
	})
	b.Run(exchanges[1], func(b *testing.B) {
		for b.Loop() {
			elliptic()
			ours, err := mlkem.GenerateKey768()
			if err != nil {
				b.Fatal(err)
			}
			text := make([]byte, mlkem.CiphertextSize768)
			if _, err := ours.Decapsulate(text); err != nil {
				b.Fatal(err)
			}
			ours.EncapsulationKey().Bytes()
		}
	})
}
