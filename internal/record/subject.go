package record

import (
	"encoding/json"
	"slices"
	"time"
)

// Subject is something that is measured in rounds: a transfer method or a kind of login. Its
// readings follow it, each as a record.
type Subject struct {
	ID      int `json:"id"` // counts from 1 in a file
	*Method     // one of the two is set
	*LoginKind
}

// Same reports whether two subjects are one, measured twice.
func (s Subject) Same(other Subject) bool {
	if s.Method != nil && other.Method != nil {
		return s.Method.Same(*other.Method)
	}
	a, b := s.LoginKind, other.LoginKind
	return a != nil && b != nil && a.Factor == b.Factor && a.Level == b.Level && a.Like == b.Like
}

// RunKind is the purpose of a run of a method.
type RunKind string

// The kinds of run.
const (
	LongRun  RunKind = "long"  // SizeBytes of the method
	ShortRun RunKind = "short" // one byte: the start of the programs and the login
	LoginRun RunKind = "login" // nothing at all
)

// Reading is one measurement of a subject, from the start of its first process to the end of its
// last. CPU times cover all processes of that side; nil where they are not visible.
type Reading struct {
	Subject     int            `json:"subject"`        // Subject.ID
	Kind        RunKind        `json:"kind,omitempty"` // of a method
	Start       time.Time      `json:"start"`
	Core        *int           `json:"core,omitempty"` // core that a login shared with simultaneous ones; nil: it ran alone
	WallNS      time.Duration  `json:"wall_ns"`
	Phases      []LoginPhase   `json:"phases,omitempty"` // of a login, one after the other; their sum is WallNS
	ClientCPUNS *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS *time.Duration `json:"server_cpu_ns,omitempty"`
	VerifiedNS  time.Duration  `json:"verified_ns,omitempty"` // time to compare the received data with the sent data; not part of WallNS
	UpBytes     int64          `json:"up_bytes,omitempty"`    // of a login on the wire; 0: not seen
	DownBytes   int64          `json:"down_bytes,omitempty"`
	Stalls      []LoginStall   `json:"stalls,omitempty"`
	Failure     string         `json:"failure,omitempty"` // reason why it did not finish; such a reading counts for nothing else
}

// Methods returns the subjects that are transfer methods.
func (f *File) Methods() []Subject {
	return slices.DeleteFunc(slices.Clone(f.Subjects), func(s Subject) bool { return s.Method == nil })
}

// Logins returns the subjects that are kinds of login.
func (f *File) Logins() []Subject {
	return slices.DeleteFunc(slices.Clone(f.Subjects), func(s Subject) bool { return s.LoginKind == nil })
}

// older reads a line of format 2, in which methods, kinds of login and the readings of either were
// four kinds of record; nil is none of them.
func older(text []byte) (Record, error) {
	var line struct {
		Method    *Subject `json:"method"`
		LoginKind *Subject `json:"login_kind"`
		Run       *struct {
			Reading
			Of int `json:"method"`
		} `json:"run"`
		LoginRun *struct {
			Reading
			Of int `json:"kind"`
		} `json:"login_run"`
	}
	err := json.Unmarshal(text, &line)
	switch {
	case err != nil:
	case line.Method != nil:
		return line.Method, nil
	case line.LoginKind != nil:
		return line.LoginKind, nil
	case line.Run != nil:
		line.Run.Subject = line.Run.Of
		return &line.Run.Reading, nil
	case line.LoginRun != nil:
		line.LoginRun.Subject = line.LoginRun.Of
		return &line.LoginRun.Reading, nil
	}
	return nil, err
}
