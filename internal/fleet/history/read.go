package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// Record is a recorded run.
type Record struct {
	ID       string
	Start    time.Time
	Command  string   // "" if it was left out
	Hosts    []string // all of the run, as Exact names them, in folded order
	How      output.How
	Started  map[int]bool   // hosts that were started, by their index, as far as the record goes
	Results  []fleet.Result // in the order in which hosts ended, each host at most once
	Finished bool           // false for a run that still continues or was killed
	Live     bool           // its process still lives
	Summary  fleet.Summary  // of a finished run

	settings map[string]string // settings of hosts, by their names in Hosts
	before   *Record           // the run that this one repeats on some of its hosts; nil: none that is kept
}

// OfHub returns the ID of the job that a hub keeps of a run.
func (rec *Record) OfHub() string { return rec.ID + "-" + rec.How.Job }

// ErrNone says that there is no such run.
var ErrNone = errors.New("there is no such run in the history")

// last reads the newest run. Without any, the error is ErrNone.
func (s *Store) last() (*Record, error) { return s.before(0, s.ids) }

// before reads the run before the n newest ones of those that a function lists.
func (s *Store) before(n int, list func() ([]string, error)) (*Record, error) {
	ids, err := list()
	if err != nil {
		return nil, err
	}
	if n >= len(ids) {
		return nil, fmt.Errorf("history: %w (there are %d)", ErrNone, len(ids))
	}
	return s.Read(ids[n])
}

// Read reads one run by its ID, or by the beginning of one if it is unambiguous.
func (s *Store) Read(id string) (*Record, error) {
	f, err := s.open(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	live := journal.Written(f) // before it is read: whoever is dead writes no more
	rec, err := readRecord(f)
	if err == nil {
		rec.Live = live
		maps.Copy(s.own, rec.settings)
	}
	if err == nil && rec.How.Repeats != "" && rec.How.Repeats < rec.ID {
		rec.before, _ = s.Read(rec.How.Repeats) // an unreadable run does not prevent the repetition of a newer one
	}
	return rec, err
}

func (s *Store) open(id string) (*os.File, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, known := range ids {
		if known == id {
			found = []string{id}
			break
		}
		if id != "" && strings.HasPrefix(known, id) {
			found = append(found, known)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrNone, id)
	case 1:
	default:
		return nil, fmt.Errorf("%d runs in the history begin with %q", len(found), id)
	}
	f, err := s.dir.Open(found[0] + journal.Ending)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return f, nil
}

// readRecord reads a record. An incomplete last line, as after a crash, is left out; any other
// damage is an error.
func readRecord(r io.Reader) (*Record, error) {
	rec := &Record{Started: map[int]bool{}, settings: map[string]string{}}
	how, err := output.Outline(r, reading{rec: rec})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	rec.How = how
	return rec, nil
}

// reading fills a record as it is replayed.
type reading struct {
	fleet.Nothing
	rec *Record
}

func (r reading) Begin(s fleet.Start) error {
	r.rec.ID, r.rec.Start, r.rec.Command = s.ID, s.Time, s.Command
	for _, h := range s.Hosts {
		r.rec.Hosts = append(r.rec.Hosts, h.Exact())
		if h.Settings != "" {
			r.rec.settings[h.Exact()] = h.Settings
		}
	}
	return nil
}

func (r reading) Started(index int) error {
	r.rec.Started[index] = true
	return nil
}

func (r reading) Done(res fleet.Result, _ fleet.Summary) error {
	r.rec.Results = append(r.rec.Results, res)
	return nil
}

func (r reading) End(so fleet.Summary) error {
	r.rec.Finished, r.rec.Summary = true, so
	return nil
}

// Sets are the names that Select understands.
var sets = []string{"all", "ok", "failed", "unreachable", "not-started", "unfinished", "unknown", "incomplete"}

// useSets lists the sets in a hint.
func useSets() string { return "use " + strings.Join(sets, ", ") + ", batchN, or several with commas" }

// open lists the sets that stay open after a repetition: those of a run that repeats another one
// include hosts of that as well.
var open = []string{"failed", "unreachable", "not-started", "unfinished", "unknown", "incomplete"}

// hostsOf returns the hosts of sets, with the remaining ones of the run before.
func (rec *Record) hostsOf(list string) ([]string, error) {
	hosts, err := rec.own(list)
	return append(hosts, rec.left(list)...), err
}

// left returns hosts of sets which the repeated run has left open, and for which it was not
// repeated.
func (rec *Record) left(list string) []string {
	if rec.before == nil {
		return nil
	}
	wanted := slices.DeleteFunc(strings.Split(list, ","), func(set string) bool { return !slices.Contains(open, set) })
	if len(wanted) == 0 {
		return nil
	}
	again := map[string]bool{}
	for _, h := range rec.Hosts {
		again[h] = true
	}
	hosts, _ := rec.before.hostsOf(strings.Join(wanted, ",")) // every name in open is known
	return slices.DeleteFunc(hosts, func(h string) bool { return again[h] })
}

// own returns the hosts of a set: `ok`, `failed` (ran and did not end with 0), `unreachable` (did
// not run), `not-started`, `unfinished` (started and without a result, since the run was killed),
// `unknown` (unfinished, or the connection was lost and nobody knows whether the command ran to its
// end), `incomplete` (output was lost or cut off), `all`, `batch1` and so on, or of several with
// commas between them.
func (rec *Record) own(list string) ([]string, error) {
	wanted := strings.Split(list, ",")
	for _, set := range wanted {
		if _, isBatch := batchOf(set); !isBatch && !slices.Contains(sets, set) {
			return nil, fmt.Errorf("%q is not a set of a run", set)
		}
	}
	byHost := make([]*fleet.Result, len(rec.Hosts))
	for i := range rec.Results {
		byHost[rec.Results[i].Index] = &rec.Results[i]
	}
	var hosts []string
	for i, h := range rec.Hosts {
		if slices.ContainsFunc(wanted, func(set string) bool { return belongs(byHost[i], set, rec.Started[i]) }) {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// batchOf reads the name of a set that is a batch: batch1, batch2, ...
func batchOf(set string) (number int, ok bool) {
	text, found := strings.CutPrefix(set, "batch")
	number, err := strconv.Atoi(text)
	return number, found && err == nil && number > 0
}

// belongs reports whether a host with this result, nil for none, belongs to the set.
func belongs(r *fleet.Result, set string, started bool) bool {
	switch {
	case set == "all":
		return true
	case r != nil && r.Batch > 0 && set == "batch"+strconv.Itoa(r.Batch):
		return true
	case r == nil && !started:
		return set == "not-started"
	case r == nil:
		return set == "unfinished" || set == "unknown"
	case set == "incomplete":
		return r.Incomplete != ""
	}
	return r.Set() == set
}

// counts returns how many hosts each set has, by its name.
func (rec *Record) counts() map[string]int {
	counts := map[string]int{}
	for _, set := range sets {
		hosts, _ := rec.hostsOf(set) // every name in sets is known
		counts[set] = len(hosts)
	}
	return counts
}

var _ hostset.Groups = (*Store)(nil)

// Group returns the hosts of a set of a run: it answers @last:failed, @last-1:failed for the run
// before it, and so on, and @ID:failed with the ID of a run or its beginning.
func (s *Store) Group(source, set string) ([]string, error) {
	rec, err := s.run(source, s.ids)
	if err != nil {
		return nil, fmt.Errorf("@%s:%s: %w; write @last:SET, @last-1:SET or @ID:SET", source, set, err)
	}
	hosts, err := rec.hostsOf(set)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, useSets())
	}
	return hosts, err
}

// Complete fills in the settings that a host had in a run that was asked for.
func (s *Store) Complete(h *host.Host) {
	if h.Settings == "" {
		h.Settings = s.own[h.Exact()]
	}
}

// Run returns the run with an ID, or the beginning of one, or one such as last and last-1.
func (s *Store) Run(name string) (*Record, error) {
	rec, err := s.run(name, s.ids)
	return rec, noRun(err, "sshpace run --history lists the runs")
}

// Job is Run where last is the last detached run.
func (s *Store) Job(name string) (*Record, error) {
	rec, err := s.run(name, s.Jobs)
	return rec, noRun(err, "sshpace jobs lists the jobs, with --all other runs, too")
}

func noRun(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Err: err, Hint: hint, Code: fault.Misuse}
}

// Jobs lists the IDs of the detached runs, the newest first.
func (s *Store) Jobs() ([]string, error) {
	ids, err := s.ids()
	return slices.DeleteFunc(ids, func(id string) bool { return !s.lasts(id) }), err
}

func (s *Store) lasts(id string) bool {
	f, err := s.open(id)
	if err != nil {
		return false
	}
	defer f.Close()
	how, err := output.Head(f)
	return err == nil && how.Lasts()
}

func (s *Store) run(name string, list func() ([]string, error)) (*Record, error) {
	if name == "last" {
		return s.before(0, list)
	}
	if back, ok := strings.CutPrefix(name, "last-"); ok {
		n, err := strconv.ParseUint(back, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("history: %q is not a number of runs to go back", back)
		}
		return s.before(int(n), list)
	}
	return s.Read(name)
}

// Names lists the names of the host sets of a run, such as failed.
func (s *Store) Names(string) ([]string, error) { return slices.Clone(sets), nil }
