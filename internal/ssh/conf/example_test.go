package conf_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

const example = `
Host gate
  Port 2222

Host web*
  HostName %h.example.org
  User deploy
  ProxyJump gate

Host *
  User nobody
  ServerAliveInterval 1m
`

// read reads a configuration as ssh -F would.
func read(text string) (*conf.Config, error) {
	dir, err := os.MkdirTemp("", "conf")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	system := conf.System{Home: dir, User: "me", UID: os.Getuid()}
	return conf.Load(context.Background(), conf.Params{Flags: conf.Flags{Config: file}, System: system})
}

// The first value that is found for a host wins.
func ExampleConfig_Resolve() {
	c, err := read(example)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hop := range []host.Endpoint{{Name: "web1"}, {Name: "gate", User: "root"}} {
		r, err := c.Resolve(context.Background(), hop)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.User(), r.HostName(), r.Port(), r.ProxyJump(), r.Duration(conf.ServerAliveInterval))
	}
	// Output:
	// deploy web1.example.org 22 [gate] 1m0s
	// root gate 2222 [] 1m0s
}

// Every value says where it comes from.
func ExampleResolved_Get() {
	c, err := read(example)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := c.Resolve(context.Background(), host.Endpoint{Name: "web1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	user, _ := r.Get(conf.User)
	port, ok := r.Get(conf.Port)
	fmt.Println(user.Args, "line", user.Origin.Line)
	fmt.Println(port.Args, port.Origin, ok, r.IsSet(conf.Port))
	// Output:
	// [deploy] line 7
	// [22] default true false
}

// The hops of ProxyJump, the first one to connect to first.
func ExampleParseJumps() {
	hops, err := conf.ParseJumps("ssh://admin@gate:2222,inner")
	fmt.Println(hops[0].User, hops[0].Name, hops[0].Port, hops[1], err)
	// Output: admin gate 2222 inner <nil>
}

// Whether the native engine can serve a host, and if not, because of what.
func ExampleDecide() {
	c, err := read("Host old\n  GSSAPIAuthentication yes\n  PKCS11Provider /lib/token.so\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := c.Resolve(context.Background(), host.Endpoint{Name: "old"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := conf.Decide(r, conf.Capabilities{})
	fmt.Println(d.Engine, d.Reasons[0].Keyword)
	// Output: openssh PKCS11Provider
}

// What the files cannot tell is asked of the installed ssh, here one that is pretended.
func ExampleAsker() {
	c, err := read("Match exec \"test -e /etc/office\"\n  User office\nHost *\n  Port 2222\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	ssh := func(_ context.Context, args ...string) (stdout, stderr []byte, err error) {
		fmt.Println("asked: ssh", args[0], "...", args[len(args)-1])
		return []byte("hostname web1\nuser office\nport 2222\n"), nil, nil
	}
	r, err := c.Resolve(context.Background(), host.Endpoint{Name: "web1"})
	fmt.Println(r.User(), r.Gaps[0].Reason, err)
	r, err = conf.NewAsker(c, ssh).Resolve(context.Background(), host.Endpoint{Name: "web1"})
	user, _ := r.Get(conf.User)
	port, _ := r.Get(conf.Port)
	fmt.Println(user.Args, user.Origin, port.Args, "line", port.Origin.Line, err)
	// Output:
	// me Match exec runs a program <nil>
	// asked: ssh -G ... web1
	// [office] ssh -G [2222] line 4 <nil>
}
