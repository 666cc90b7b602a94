package hostset_test

import (
	"errors"
	"fmt"
	"strings"

	"sshpace/internal/fleet/hostset"
)

func ExampleExpand() {
	names, err := hostset.Expand("web[08-11]!web09,root@db1:2222", hostset.Options{})
	fmt.Println(names, err)

	_, err = hostset.Expand("web[3-1]", hostset.Options{})
	_, mistake := errors.AsType[*hostset.SyntaxError](err)
	fmt.Println(mistake)
	// Output:
	// [web08 web10 web11 root@db1:2222] <nil>
	// true
}

// Groups stand for sets, and may stand in each other.
func ExampleReadGroups() {
	groups, err := hostset.ReadGroups(strings.NewReader("web: web[1-4]\nold: web[1-2]\nnew: @web!@old\n"), "groups")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hostset.Expand("@new,db1", hostset.Options{Groups: groups}))
	// Output: [web3 web4 db1] <nil>
}

func ExampleFold() {
	fmt.Println(hostset.Fold([]string{"web3", "web1", "web2", "db01", "db02", "mail"}))
	// Output: db[01-02],mail,web[1-3]
}

// All that a user said, as hosts.
func ExampleSelection() {
	s := hostset.Selection{Sets: []string{"admin@web[1-3]"}, Exclude: []string{"web2"}}
	hosts, err := s.Hosts()
	for _, h := range hosts {
		fmt.Println(h.User, h.Name, h.Origin)
	}
	fmt.Println(err)
	// Output:
	// admin web1 -w
	// admin web3 -w
	// <nil>
}
