package openssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/file"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// kept is a file in the user's cache directory: the answers of one program to questions about
// itself. They are valid as long as everything that they depend on is unchanged, see source.
type kept struct {
	Parts   map[string]string // the state of each, by its path
	Answers map[string]answer // by their questions
}

// Limits of the file: somebody who changes the configuration every day adds a question each time.
const (
	maxAnswers  = 64
	maxKept     = 256 << 10 // bytes of one file
	maxPrograms = 16        // files

	maxProgram = 64 << 20 // bytes that may be looked through for a version
)

// keptFormat is the format of the file; others have other names.
const keptFormat = "1"

// keptName returns the name of the file that keeps the answers of the program at path in a state of
// the machine: machines that share a home have one each.
func keptName(path, state string) string {
	sum := sha256.Sum256([]byte(keptFormat + "\x00" + path + "\x00" + state))
	return "openssh-" + hex.EncodeToString(sum[:12])
}

// recall reads the valid answers of a program. A file that others could have written, or that is
// incomplete, is ignored.
func recall(path string) map[string]answer {
	state, _ := stateOf(path)
	directory, err := cacheDirectory(safedir.Open)
	if err != nil {
		return nil
	}
	defer directory.Close()
	f, err := directory.Own(keptName(path, state))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := file.ReadAll(f, f.Name(), maxKept)
	sum, text, whole := bytes.Cut(text, []byte("\n"))
	var k kept
	if err != nil || !whole || string(sum) != checksum(text) || json.Unmarshal(text, &k) != nil {
		return nil
	}
	if !k.unchanged() {
		return nil
	}
	return k.Answers
}

// holds reports whether nothing changed while the program was asked, and one of the programs that
// may have answered did so by itself: its file contains the version that it reports. A program that
// starts another one, like a launcher of sandboxed packages, does not contain it.
func (k *kept) holds(programs ...string) bool {
	if !k.unchanged() {
		return false
	}
	reply := k.Answers[question(versionArgs)]
	version, _, ok := findVersion(string(reply.Out) + string(reply.Err))
	return ok && slices.ContainsFunc(programs, func(path string) bool {
		text, err := file.ReadFile(path, maxProgram)
		return err == nil && bytes.Contains(text, []byte(version))
	})
}

// unchanged reports whether everything that the answers depend on is unchanged.
func (k *kept) unchanged() bool {
	for part, was := range k.Parts {
		was, sum, young := strings.Cut(was, withSum)
		if now, _ := stateOf(part); now != was {
			return false
		}
		if !young {
			continue
		}
		if text, err := file.ReadFile(part, maxProgram); err != nil || checksum(text) != sum {
			return false
		}
	}
	return true
}

// withSum stands between the state of a file that had just been written and the sum of its content:
// until it has settled, its state could stay the same through another change.
const withSum = " sha256 "

// write replaces the file of a program. An error costs nothing but the same questions in the next
// run.
func (k *kept) write(path string) {
	text, err := json.Marshal(k)
	if err != nil || len(text) >= maxKept-2*sha256.Size {
		return
	}
	directory, err := cacheDirectory(safedir.Make)
	if err != nil {
		return
	}
	defer directory.Close()
	state, _, _ := strings.Cut(k.Parts[path], withSum)
	name := filepath.Join(directory.Path(), keptName(path, state))
	if file.Replace(name, append([]byte(checksum(text)+"\n"), text...), 0o600) == nil {
		prune(directory)
	}
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// prune removes the oldest files beyond the limit: those of former programs, and those of runs that
// were killed while they wrote.
func prune(directory *safedir.Directory) {
	names, _ := directory.Names("")
	if len(names) <= maxPrograms {
		return
	}
	age := func(name string) time.Time {
		info, err := directory.Lstat(name)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return age(b).Compare(age(a)) })
	for _, name := range names[maxPrograms:] {
		_ = directory.Remove(name)
	}
}

// cacheDirectory opens our directory of files that may be lost.
func cacheDirectory(open func(string) (*safedir.Directory, error)) (*safedir.Directory, error) {
	path := safedir.Cache(os.Getenv)
	if path == "" {
		return nil, os.ErrNotExist
	}
	return open(path)
}

// surroundings are files that ssh reads for any question: the loader's index, the settings of
// OpenSSL, which may restrict ssh to the algorithms of FIPS 140, and the databases of ports and
// users.
var surroundings = []string{
	"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/fips_local.cnf",
	"/etc/crypto-policies/back-ends/opensslcnf.config", "/proc/sys/crypto/fips_enabled", "/etc/nsswitch.conf", "/etc/services",
}

// errUnknown says that the dependencies of an answer are unknown.
var errUnknown = errors.New("the answer may depend on anything")

// settled is the age of a change from which on the next one has another time, on any file system.
const settled = 2 * time.Second

// source is what the answers of a program depend on. Of a shell script these are the programs that
// it may start, and the files and variables that decide which of them.
type source struct {
	states   map[string]string // of all of these
	sums     map[string]string // of the content of programs, as it was read
	programs []string          // that may have answered
	needs    []string          // programs, scripts and their interpreters, libraries
	perhaps  []string          // files that may be missing, and variables as $NAME
}

// redirects reports whether a variable of the environment redirects the loader or OpenSSL.
func redirects(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "OPENSSL_") || strings.HasPrefix(name, "GLIBC_")
}

// sourceOf returns the source of a program's answers. It is unknown where the environment redirects
// the loader, or nothing can be kept.
func sourceOf(ctx context.Context, path string) (s source, err error) {
	if slices.ContainsFunc(os.Environ(), redirects) {
		return s, errUnknown
	}
	directory, err := cacheDirectory(safedir.Make)
	if err != nil {
		return s, err
	}
	defer directory.Close()
	if err := s.add(ctx, path); err != nil {
		return s, err
	}
	s.states = map[string]string{}
	for i, part := range slices.Concat(s.needs, s.perhaps, surroundings) {
		state, changed := stateOf(part)
		if i < len(s.needs) && state == "" {
			return s, errUnknown
		}
		if time.Since(changed) < settled {
			sum, err := s.sum(part)
			if err != nil {
				return s, err
			}
			state += withSum + sum
		}
		s.states[part] = state
	}
	return s, nil
}

// keepSum keeps the sum of the content of a program as it was read.
func (s *source) keepSum(path string, text []byte) {
	if s.sums == nil {
		s.sums = map[string]string{}
	}
	s.sums[path] = checksum(text)
}

// sum returns the sum of the content of a file; of a program, as it was read.
func (s *source) sum(path string) (string, error) {
	if sum := s.sums[path]; sum != "" {
		return sum, nil
	}
	text, err := file.ReadFile(path, maxProgram)
	return checksum(text), err
}

// add adds the program that is asked, or one that a script starts.
func (s *source) add(ctx context.Context, path string) error {
	switch {
	case !filepath.IsAbs(path):
		return errUnknown
	case slices.Contains(s.needs, path):
		return nil
	}
	text, err := file.ReadFile(path, maxProgram)
	if err != nil {
		return err
	}
	s.needs = append(s.needs, path)
	s.keepSum(path, text)
	switch {
	case bytes.HasPrefix(text, []byte("#!")):
		return (&script{source: s, ctx: ctx, path: path, set: map[string]string{}}).read(string(text))
	case !bytes.Contains(text, []byte("SSH_")):
		return nil // has no version to report
	}
	own, err := libraries(ctx, path)
	s.programs, s.needs = append(s.programs, path), append(s.needs, own...)
	return err
}

// stateOf identifies a file and its content; "" is a missing file. Nobody can set the time of the
// last change. For files in /proc the content itself counts, and the value of a variable, which may
// be secret.
func stateOf(path string) (state string, changed time.Time) {
	if name, variable := strings.CutPrefix(path, "$"); variable {
		return checksum([]byte(os.Getenv(name))), time.Time{}
	}
	if strings.HasPrefix(path, "/proc/") {
		text, _ := file.ReadFile(path, maxKept)
		return string(text), time.Time{}
	}
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return "", time.Time{}
	}
	return fmt.Sprint(s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()), time.Unix(s.Ctim.Unix())
}

// libraries returns the loader of a program and the libraries that it loads.
func libraries(ctx context.Context, path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if i < 0 {
		return nil, nil // all is in the program
	}
	text, err := file.ReadAll(f.Progs[i].Open(), path, unix.PathMax)
	if err != nil {
		return nil, err
	}
	loader := string(bytes.TrimRight(text, "\x00"))
	list, err := proc.Ask(ctx, loader, "--list", path)
	if err != nil {
		return nil, err
	}
	found := []string{loader}
	for line := range strings.Lines(list) {
		name, at, elsewhere := strings.Cut(strings.TrimSpace(line), " => ")
		if !elsewhere {
			at = name
		}
		at, _, _ = strings.Cut(at, " (0x")
		switch {
		case filepath.IsAbs(at):
			found = append(found, at)
		case elsewhere: // not found
			return nil, errUnknown
		}
	}
	return found, nil
}
