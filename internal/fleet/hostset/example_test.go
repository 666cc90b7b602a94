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

// A file of hosts, one a line, in sections.
func ExampleReadHosts() {
	file, err := hostset.ReadHosts(strings.NewReader("%web\nweb[1-2]  # a set\n%db\nroot@db1:2222\ndb2:22 admin\n"), "hosts")
	if err != nil {
		fmt.Println(err)
		return
	}
	hosts, err := hostset.Selection{Files: []*hostset.HostsFile{file}, Labels: []string{"db"}}.Hosts()
	for _, h := range hosts {
		fmt.Println(h, h.Label, h.Origin)
	}
	fmt.Println(err)
	// Output:
	// root@db1:2222 db hosts:4
	// admin@db2:22 db hosts:5
	// <nil>
}

// Several sources of groups, by their names; a list made elsewhere is one.
func ExampleSources() {
	sources := hostset.Sources{"cloud": hostset.Listing(func() ([]string, error) { return []string{"vm7", "vm8"}, nil })}
	table := hostset.NewGroupFile("made here")
	table.Add("web", "web[1-2]")
	sources.Also("", table)
	fmt.Println(hostset.Expand("@web,@cloud:all", hostset.Options{Groups: sources}))

	_, err := hostset.Expand("@db", hostset.Options{Groups: sources})
	fmt.Println(err)
	// Output:
	// [web1 web2 vm7 vm8] <nil>
	// group "db" is not in made here, which has: web
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
