package safedir

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// private reports whether a group has no other members than us and root, as far as the files of
// users and groups tell (passwd(5), group(5)).
func private(gid int) bool {
	users, err := os.Open("/etc/passwd")
	if err != nil {
		return false
	}
	defer users.Close()
	groups, err := os.Open("/etc/group")
	if err != nil {
		return false
	}
	defer groups.Close()
	return accounts{users, groups, os.Geteuid()}.private(gid)
}

// accounts holds the users and groups of a system, and our number.
type accounts struct {
	users, groups io.Reader
	me            int
}

// private reports whether the group is the primary one of us or of root, and has no other members.
func (a accounts) private(gid int) bool {
	var names []string // of us and root
	known, shared := false, false
	err := eachLine(a.users, func(field []string) {
		uid, first := number(field, 2), number(field, 3) == gid
		trusted := uid == 0 || uid == a.me
		if trusted {
			names = append(names, field[0])
		}
		known, shared = known || first && trusted, shared || first && !trusted
	})
	if err != nil || !known || shared {
		return false
	}
	err = eachLine(a.groups, func(field []string) {
		if number(field, 2) != gid || len(field) < 4 || field[3] == "" {
			return
		}
		for member := range strings.SplitSeq(field[3], ",") {
			shared = shared || !slices.Contains(names, member)
		}
	})
	return err == nil && !shared
}

// eachLine hands out the fields of each line.
func eachLine(r io.Reader, use func(field []string)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		use(strings.Split(lines.Text(), ":"))
	}
	return lines.Err()
}

// number parses a field as a number, or returns -1.
func number(field []string, i int) int {
	if i >= len(field) {
		return -1
	}
	n, err := strconv.Atoi(field[i])
	if err != nil {
		return -1
	}
	return n
}
