package knownhosts_test

import (
	"fmt"

	"sshpace/internal/ssh/knownhosts"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBI7HDtFkSxGiTIEhnKNoKp0U+hzXGDKZxQgrDfmzVzJ"

func ExampleParse() {
	line, ok, err := knownhosts.Parse("*.example.org,!old.example.org "+key+" of the fleet", 1)
	fmt.Println(ok, err)
	fmt.Println(line.Covers("web1.example.org"), line.Covers("old.example.org"))
	public, comment, err := line.Key()
	fmt.Println(knownhosts.Fingerprint(public))
	fmt.Println(comment, err)
	// Output:
	// true <nil>
	// true false
	// ssh-ed25519 SHA256:TJsQEmYONzSTP7u3U6vq8/6VRgNyJFq497ttWF8zVsY
	// of the fleet <nil>
}

// A line that ssh passes over, and why.
func ExampleParse_mistake() {
	_, ok, err := knownhosts.Parse("web1", 7)
	fmt.Println(ok, err)
	// Output: false no key after the host name
}

// A port other than 22 is part of the name.
func ExampleHostPort() {
	fmt.Println(knownhosts.HostPort("Web1", 22), knownhosts.HostPort("web1", 2222))
	fmt.Println(knownhosts.SplitHostPort("[web1]:2222"))
	// Output:
	// web1 [web1]:2222
	// web1 2222
}

// A hashed name tells nobody which host it is, but can be asked for one.
func ExampleHashName() {
	hidden := knownhosts.HashName("web1")
	line, _, _ := knownhosts.Parse(hidden+" "+key, 1)
	fmt.Println(line.Hashed(), line.HashOf("web1"), line.HashOf("web2"))
	// Output: true true false
}
