package safedir

import "path/filepath"

// ours is the name of our directories within the user's.
const ours = "sshpace"

// State returns our directory for lasting data, such as results and the history: sshpace in
// $XDG_STATE_HOME, which is ~/.local/state unless set to an absolute path (XDG Base Directory
// Specification). It is "" where neither variable helps.
func State(getenv func(string) string) string {
	return base(getenv, "XDG_STATE_HOME", ".local/state")
}

// Config returns our directory for the user's configuration: sshpace in $XDG_CONFIG_HOME, which is
// ~/.config unless set to an absolute path. It is "" where neither variable helps.
func Config(getenv func(string) string) string {
	return base(getenv, "XDG_CONFIG_HOME", ".config")
}

// Cache returns our directory for data that may be lost: sshpace in $XDG_CACHE_HOME, which is
// ~/.cache unless set to an absolute path. It is "" where neither variable helps.
func Cache(getenv func(string) string) string {
	return base(getenv, "XDG_CACHE_HOME", ".cache")
}

// Runtime returns the user's directory for the time of a login, in which no directory of ours is
// needed; "" where there is none.
func Runtime(getenv func(string) string) string {
	if path := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(path) {
		return path
	}
	return ""
}

// Masters returns our directory for the sockets of connections that are kept: it is gone with the
// user's login where there is a directory for that. It is "" where there is no place.
func Masters(getenv func(string) string) string {
	const name = "keep"
	if dir := Runtime(getenv); dir != "" {
		return filepath.Join(dir, ours, name)
	}
	if dir := Cache(getenv); dir != "" {
		return filepath.Join(dir, name)
	}
	return ""
}

// Temporary returns the directory for temporary files (POSIX.1-2017, 8.3).
func Temporary(getenv func(string) string) string {
	if path := getenv("TMPDIR"); filepath.IsAbs(path) {
		return path
	}
	return "/tmp"
}

func base(getenv func(string) string, variable, standard string) string {
	if path := getenv(variable); filepath.IsAbs(path) {
		return filepath.Join(path, ours)
	}
	if home := getenv("HOME"); filepath.IsAbs(home) && home != "/" {
		return filepath.Join(home, standard, ours)
	}
	return ""
}
