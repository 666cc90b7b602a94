package record

import "time"

// LoginKind is one way of logging in. The first of a file is the plain one; each
// other differs in one thing from the logins of its factor.
type LoginKind struct {
	ID         int    `json:"id"`               // counts from 1 in a file
	Factor     string `json:"factor,omitempty"` // what is compared; "" of the plain login
	Level      string `json:"level"`
	Like       int    `json:"like,omitempty"`        // ID of the kind whose logins count for this one, too; 0: its own do
	Conditions string `json:"conditions,omitempty"`  // what all kinds but the plain one have in common
	RoundTrips int    `json:"round_trips,omitempty"` // TCP's included; 0: not counted
}

// WatchedLogin is one login, from the start of the client to its end.
type WatchedLogin struct {
	Kind        int            `json:"kind"` // LoginKind.ID
	Start       time.Time      `json:"start"`
	Core        *int           `json:"core,omitempty"` // that it shared with others at the same time; none: it was alone
	WallNS      time.Duration  `json:"wall_ns"`
	Phases      []LoginPhase   `json:"phases,omitempty"` // one after the other; their sum is WallNS
	ClientCPUNS *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS *time.Duration `json:"server_cpu_ns,omitempty"`
	UpBytes     int64          `json:"up_bytes,omitempty"` // on the wire; 0: not seen
	DownBytes   int64          `json:"down_bytes,omitempty"`
	Stalls      []LoginStall   `json:"stalls,omitempty"`
	Failure     string         `json:"failure,omitempty"` // it did not come to its end
}

// LoginPhase is a part of a login.
type LoginPhase struct {
	Phase  string        `json:"phase"`
	WallNS time.Duration `json:"wall_ns"`
}

// LoginStall is a wait that no computation explains.
type LoginStall struct {
	Side   string        `json:"side"`  // "client" or "server", whose packet waited
	AtNS   time.Duration `json:"at_ns"` // since the first packet
	WallNS time.Duration `json:"wall_ns"`
	Why    string        `json:"why"`
}
