package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory returns the memory that this process and its children may still use without
// swapping, in bytes: MemAvailable (proc_meminfo(5)), or less where a control group limits it, as
// in a container. ok is false where it is unknown.
func AvailableMemory() (bytes int64, ok bool) { return availableMemory("/") }

func availableMemory(root string) (bytes int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(text), "\nMemAvailable:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, false
	}
	bytes = kib << 10
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		if hierarchy, path, ok := memoryGroup(strings.TrimSpace(line)); ok {
			bytes = min(bytes, hierarchy.room(filepath.Join(root, hierarchy.mount), path, bytes))
		}
	}
	return bytes, true
}

// memoryHierarchy names the files of a version of control groups.
type memoryHierarchy struct{ mount, limit, used, cache string }

var (
	// Documentation/admin-guide/cgroup-v1/memory.rst
	memoryV1 = memoryHierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
	// Documentation/admin-guide/cgroup-v2.rst
	memoryV2 = memoryHierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
)

// memoryGroup reads a line of /proc/self/cgroup (cgroups(7)): ID:controllers:path.
func memoryGroup(line string) (hierarchy memoryHierarchy, path string, ok bool) {
	id, rest, _ := strings.Cut(line, ":")
	controllers, path, ok := strings.Cut(rest, ":")
	switch {
	case !ok:
	case id == "0" && controllers == "":
		return memoryV2, path, true
	case strings.Contains(","+controllers+",", ",memory,"):
		return memoryV1, path, true
	}
	return memoryHierarchy{}, "", false
}

// room returns the least free memory of a group and its parents, or most where none is limited. In
// a container the path may be one of the host's; then the mount itself is the group.
func (h memoryHierarchy) room(mount, path string, most int64) int64 {
	for at := filepath.Clean("/" + path); ; at = filepath.Dir(at) {
		directory := filepath.Join(mount, at)
		if limit, ok := number(filepath.Join(directory, h.limit)); ok && limit < unlimited {
			used, _ := number(filepath.Join(directory, h.used))
			most = min(most, max(0, limit-used+h.reclaimable(directory)))
		}
		if at == "/" {
			return most
		}
	}
}

// reclaimable returns the page cache that gives way to programs.
func (h memoryHierarchy) reclaimable(directory string) int64 {
	text, _ := os.ReadFile(filepath.Join(directory, "memory.stat"))
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == h.cache {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// unlimited is less than the largest number of pages, which version 1 shows for no limit.
const unlimited = 1 << 60

// number reads a file that holds a number; ok is false for "max", or if the file is missing.
func number(path string) (n int64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
