package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/file"
)

// Again returns the last run with those of its hosts that are in sets, such as failed,unreachable,
// or another run, as in ID:failed. Hosts of which nobody knows whether the command ran are left out
// unless they are requested; notes reports that, and if there are none at all.
func (s *Store) Again(sets string, notes io.Writer) (*Record, []string, error) {
	of, list := "", sets
	if at := strings.LastIndex(sets, ":") + 1; at > 0 {
		of, list = sets[:at], sets[at:]
	}
	last, err := s.run(cmp.Or(strings.TrimSuffix(of, ":"), "last"), s.ids)
	if err != nil {
		return nil, nil, &fault.Error{Err: err, Hint: "--rerun needs a run that was recorded; see sshpace run --history", Code: fault.Misuse}
	}
	hosts, err := last.hostsOf(list)
	if err != nil {
		return nil, nil, &fault.Error{Err: err, Hint: useSets(), Code: fault.Misuse}
	}
	if left, _ := last.hostsOf("unknown"); len(left) > 0 && !slices.ContainsFunc(left, func(h string) bool { return slices.Contains(hosts, h) }) {
		fmt.Fprintf(notes, "sshpace: skipped, because it is unknown whether the command ran there: %s; to include them: --rerun %s,unknown\n", termsafe.Line(hostset.Fold(left)), sets)
	}
	if len(hosts) == 0 {
		others := ""
		for _, set := range []string{"failed", "unreachable", "unfinished", "not-started"} {
			if left, _ := last.hostsOf(set); len(left) > 0 {
				others += fmt.Sprintf("; %d %s: --rerun %s%s", len(left), set, of, set)
			}
		}
		which := "the last run, " + last.ID + ","
		if of != "" {
			which = "run " + last.ID
		}
		fmt.Fprintf(notes, "sshpace: %s has no %s hosts%s\n", termsafe.Line(which), list, others)
	}
	return last, hosts, nil
}

// Task returns the words after the flags when a run is repeated on sets of its hosts: a command, or
// the arguments of a script. It fails if something else than the record is needed and missing:
// input is not kept, nor are scripts; stdin means that input is given again.
func (rec *Record) Task(sets string, stdin bool) (args []string, script string, err error) {
	sent := rec.How.Script
	switch {
	case rec.How.Files:
		return nil, "", fault.Usage("repeat it with -w @"+rec.ID+":"+sets[strings.LastIndex(sets, ":")+1:], "run %s was %s, which is not a command for hosts", rec.ID, rec.Command)
	case rec.How.Shell:
		return nil, "", fault.Usage("give the command: sshpace run --rerun "+shell.Word(sets)+" -- COMMAND",
			"run %s was a line of a shell, which may depend on the lines before it", rec.ID)
	case rec.How.Stdin && !stdin:
		return nil, "", fault.Usage("give it again: sshpace run --rerun "+shell.Word(sets)+" --stdin < FILE",
			"run %s sent standard input to its command, and that is not kept", rec.ID)
	case sent != nil:
		now, err := ScriptOf(sent.Path, sent.Args)
		if err != nil {
			return nil, "", &fault.Error{Err: err, Hint: "the run sent this script; name one with --script", Code: fault.Misuse}
		}
		if now.SHA256 != sent.SHA256 {
			return nil, "", fault.Usage("to send it as it is now, name it with --script "+shell.Word(sent.Path),
				"%s is not the script that run %s sent", sent.Path, rec.ID)
		}
		return sent.Args, sent.Path, nil
	case rec.Command == "":
		return nil, "", nil
	}
	return []string{rec.Command}, "", nil
}

// ScriptOf returns a script as it is recorded.
func ScriptOf(path string, args []string) (*output.Script, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	data, err := file.ReadFile(path, file.Config)
	sum := sha256.Sum256(data)
	return &output.Script{Path: path, SHA256: hex.EncodeToString(sum[:]), Args: args}, err
}
