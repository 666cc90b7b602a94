//go:build linux

package doctor

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// keeper returns the process of sshpace that listens at a socket; 0 if it is another program's.
func keeper(path string) int {
	conn, err := net.DialTimeout("unix", path, openssh.MasterLimit)
	if err != nil {
		return 0
	}
	defer conn.Close()
	_, process, err := proc.Peer(conn.(*net.UnixConn))
	if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", process)); err != nil || string(name) != "sshpace\n" {
		return 0
	}
	return process
}

// holder returns the process that has a socket open; 0 where that is unknown. Its peer's number
// (SO_PEERCRED) would be that of the ssh which made the socket: a master in the background is a
// child of that one, which has ended.
func holder(path string) int {
	all, err := os.Open("/proc/net/unix")
	if err != nil {
		return 0
	}
	defer all.Close()
	inode := inodeOf(bufio.NewScanner(all), path)
	if inode == "" {
		return 0
	}
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range open {
		if to, err := os.Readlink(fd); err == nil && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			return pid
		}
	}
	return 0
}

// moved is how much longer the name is that ssh binds first: by a dot and 16 characters.
const moved = 17

// accepting is the flag of a socket that listens (__SO_ACCEPTCON).
const accepting = "00010000"

// inodeOf returns the number of the socket that listens at a path, from the lines of
// proc_net_unix(5): "Num RefCount Protocol Flags Type St Inode Path"; "" for none, and for several,
// of which an older one may have lost the path. ssh binds another name, which stays in there, and
// moves that (mux.c, muxserver_listen).
func inodeOf(lines *bufio.Scanner, path string) (inode string) {
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 8)
		if len(words) < 8 || words[3] != accepting {
			continue
		}
		number, name, _ := strings.Cut(strings.TrimLeft(words[6]+" "+words[7], " "), " ")
		if name != path && !(strings.HasPrefix(name, path+".") && len(name) == len(path)+moved) {
			continue
		}
		if inode != "" {
			return ""
		}
		inode = number
	}
	return inode
}
