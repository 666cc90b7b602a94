package record

import (
	"time"

	"sshpace/internal/base/alg"
)

// Host is a host of a survey: one login there, and what its server has shown.
type Host struct {
	Name      string        `json:"name"`               // as the user typed it
	Via       []string      `json:"via,omitempty"`      // jump hosts, the first one first
	Start     time.Time     `json:"start"`              // of the last attempt
	Attempts  int           `json:"attempts,omitempty"` // logins begun; more than one if the server had no room
	WaitedNS  time.Duration `json:"waited_ns"`          // for our own limits: part of no phase
	Banner    string        `json:"banner,omitempty"`   // the server's version line, or its first text if it has sent none
	RTTNS     time.Duration `json:"rtt_ns,omitempty"`   // 0: unknown
	Offer     alg.Offer     `json:"offer,omitzero"`     // of the server
	Suite     alg.Suite     `json:"suite,omitzero"`     // as negotiated
	WallNS    time.Duration `json:"wall_ns"`            // of all phases
	Phases    []LoginPhase  `json:"phases"`             // one after the other; one that the login lacks is left out
	SigningNS time.Duration `json:"signing_ns"`         // of the phase sign: by this side
	VainNS    time.Duration `json:"vain_ns,omitempty"`  // of the phase query: offering keys that the server refused
	Exit      *int          `json:"exit,omitempty"`     // of the command; nil: it did not end by itself
	Class     string        `json:"class,omitempty"`    // of a login that failed
	Failure   string        `json:"failure,omitempty"`  // its message
	Causes    []Cause       `json:"causes"`             // of a slow login
}

// Cause is one that doctor's checks have found.
type Cause struct {
	Check  string        `json:"check"`
	What   string        `json:"what"`
	CostNS time.Duration `json:"cost_ns,omitempty"`
	Breaks bool          `json:"breaks,omitempty"` // the login fails or hangs
	Where  string        `json:"where,omitempty"`  // where to do it
	Do     string        `json:"do,omitempty"`     // lines for a shell
}

// Phase returns the duration of a phase that has ended.
func (h *Host) Phase(name Phase) (p LoginPhase, ok bool) {
	for _, p := range h.Phases {
		if p.Phase == name {
			return p, !p.Unended
		}
	}
	return p, false
}
