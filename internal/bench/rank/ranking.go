// Package rank turns a record file into an ordered list with its doubts: each number with its
// interval and count, equal things in one group, measured and predicted figures marked. It is pure:
// the same file gives the same ranking.
package rank

import (
	"encoding/json"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// By is the quantity that orders a ranking.
type By string

// The quantities. Cost is the CPU time per byte of the busier side, or of both where they share one
// core; for key exchanges that of both. Auto takes throughput unless it is too noisy.
const (
	Auto       By = "auto"
	Throughput By = "throughput"
	Cost       By = "cost"
)

// Basis is the origin of a cell's numbers.
type Basis string

// The bases.
const (
	Measured  Basis = "measured"
	Predicted Basis = "predicted"
)

// Ranking is the result of a record file. Its JSON form lacks fields that reports write
// differently.
type Ranking struct {
	Campaign     record.Campaign        `json:"campaign"`
	Environment  record.Environment     `json:"environment"`
	Findings     []record.Finding       `json:"findings,omitempty"`
	Combinations alg.Combinations       `json:"combinations"`
	By           By                     `json:"ranked_by"`               // Throughput or Cost: the order of Bulk
	KexBy        By                     `json:"kex_ranked_by,omitempty"` // the order of Kex: Throughput stands for login time
	Bulk         []Cell                 `json:"-"`                       // best first
	Kex          []Exchange             `json:"kex"`                     // best first
	Failed       []Failure              `json:"failed,omitempty"`        // cells and key exchanges without a result
	Refusals     map[record.Outcome]int `json:"failed_trials,omitempty"` // trials without a result, by outcome, also where another one succeeded
	Trials       int                    `json:"trials,omitempty"`        // all that ended by themselves
	Waiting      []string               `json:"-"`                       // key exchanges that were not measured
	Missing      []alg.Suite            `json:"missing,omitempty"`       // cells that were neither measured nor can be predicted
	Copies       []Copy                 `json:"copies,omitempty"`        // exhaustive runs: copies timed as a whole process
	OverheadNS   float64                `json:"-"`                       // time of a copy besides login and transfer; 0 if it was not measured
	Noise        NoiseFloor             `json:"noise_floor"`
	Model        Model                  `json:"model"`
	Harness      Harness                `json:"harness"`
	Controls     []Control              `json:"controls,omitempty"`
	Truncated    bool                   `json:"-"`               // the file ends in the middle of a record
	Ended        string                 `json:"ended,omitempty"` // why the run ended: budget, precision, complete, ...; "" unknown
	Warnings     []Warning              `json:"warnings,omitempty"`
	Measurements []record.Measurement   `json:"-"`                // measurements other than SSH trials
	Limits       []record.Limit         `json:"limits,omitempty"` // limits of the transfers' speed
	Slowed       model.Slowed           `json:"-"`
	Beside       []Beside               `json:"beside_other_guests,omitempty"` // computations that they slow clearly more than the rest
	Heat         Heat                   `json:"-"`
	Slices       int                    `json:"slices,omitempty"` // of connections in turn, which the costs rest on

	forced               bool    // the caller chose By
	levelCost, levelWall float64 // standard errors of the run's mean level, in logs
}

// Directions lists the directions that have cells, in the order of the ranking.
func (r *Ranking) Directions() []record.Direction {
	var out []record.Direction
	for _, c := range r.Bulk {
		if !slices.Contains(out, c.Direction) {
			out = append(out, c.Direction)
		}
	}
	return out
}

// In returns the cells of a direction, best first.
func (r *Ranking) In(d record.Direction) []Cell {
	return slices.DeleteFunc(slices.Clone(r.Bulk), func(c Cell) bool { return c.Direction != d })
}

// Row is one cipher and MAC, with a cell for each direction.
type Row struct {
	Suite alg.Suite
	Cells []Cell // in the order of Directions
}

// Rows gathers the cells that have a deciding figure in every direction, in the order of the first
// one.
func (r *Ranking) Rows() (rows []Row) {
	at := map[alg.Suite]int{}
	for _, c := range r.Bulk {
		i, seen := at[c.Suite.Computation()]
		if !seen {
			i = len(rows)
			at[c.Suite.Computation()], rows = i, append(rows, Row{Suite: c.Suite.Bulk()})
		}
		if r.Deciding(c).Known() {
			rows[i].Cells = append(rows[i].Cells, c)
		}
	}
	all := len(r.Directions())
	return slices.DeleteFunc(rows, func(row Row) bool { return len(row.Cells) < all })
}

// Deciding returns the figure of a cell by which the cells are ordered: its throughput, or the CPU
// cost that bounds it, of its costlier side, or of both where they share one core.
func (r *Ranking) Deciding(c Cell) Figure {
	switch {
	case r.By != Cost:
		return c.Throughput
	case r.OneCore():
		return c.Total
	case c.Server.Known() && c.Server.Log > c.Client.Log:
		return c.Server
	}
	return c.Client
}

// OneCore reports whether client and server shared one core: throughput is that of both together.
func (r *Ranking) OneCore() bool {
	return r.Environment.Cores == 1 && r.Campaign.Server != record.ServerRemote
}

// Figure is one quantity of a line. The estimate is compared with those of other lines of the run;
// the interval is shown. The zero value is unknown.
type Figure struct {
	stats.Estimate
	Shown *stats.Interval // includes the doubt about the level of the run; nil if unknown
}

// Value returns the shown value; 0 if unknown.
func (f Figure) Value() float64 {
	if f.Shown == nil {
		return 0
	}
	return f.Shown.Value
}

// MarshalJSON writes the shown interval.
func (f Figure) MarshalJSON() ([]byte, error) { return json.Marshal(f.Shown) }

// Sides are the CPU times of client and server: ns per byte of a cell, ns of a login.
type Sides struct {
	Client Figure `json:"client_cpu_ns,omitzero"`
	Server Figure `json:"server_cpu_ns,omitzero"`
	Total  Figure `json:"-"` // of both, or of the client where the server is unknown
}

// Cell is the result for one cipher and MAC in one direction.
type Cell struct {
	Suite      alg.Suite
	Direction  record.Direction
	Rank       int // from 1 within its direction
	Group      string
	Basis      Basis
	Timed      Basis // whether Throughput rests on connections of this cell, or on the costs; "" where it is unknown
	Status     alg.Status
	Throughput Figure // bytes per second
	Sides
	Holdout bool           // measured, but never used to fit the model
	Shared  int            // cells that are the same computation, and have one estimate together
	cost    stats.Estimate // that orders cells by cost
}

// Exchange is the result for one key exchange. The errors rest on the deviation of all key
// exchanges: that of five logins is a poor guess.
type Exchange struct {
	Rank        int        `json:"rank"`
	Name        string     `json:"name"`
	Aliases     []string   `json:"aliases,omitempty"`
	Group       string     `json:"group,omitempty"`
	Status      alg.Status `json:"status"`
	PostQuantum bool       `json:"post_quantum"`
	Login       Figure     `json:"login_ns,omitzero"` // from the start of the client to the start of the command
	Sides
}

// Copy is one combination of an exhaustive run, timed as a whole process.
type Copy struct {
	alg.Suite                  // its names in the request
	Direction record.Direction `json:"direction"`
	Seconds   stats.Interval   `json:"seconds"` // per run of Campaign.SizeBytes
}

// Failure is a workload that was tried and never worked.
type Failure struct {
	alg.Suite
	Workload record.Workload `json:"workload"`
	Outcome  record.Outcome  `json:"outcome"`
	Detail   string          `json:"detail,omitempty"`
	Attempts int             `json:"attempts"`
}

// NoiseFloor is the difference that two equal cells, or key exchanges, stay below in 95 % of runs:
// the smallest difference that this run can claim. 0: unknown.
type NoiseFloor struct {
	Throughput float64 `json:"throughput_pct,omitempty"`
	Cost       float64 `json:"cost_pct,omitempty"`
	Login      float64 `json:"login_pct,omitempty"`
}

// Model says how well base + cipher + MAC describes the costs.
type Model struct {
	HoldoutCells int     `json:"holdout_cells,omitempty"`         // cells that were measured but not fitted
	HoldoutError float64 `json:"holdout_error_pct,omitempty"`     // median error of the predicted client cost
	HoldoutP95   float64 `json:"holdout_error_p95_pct,omitempty"` // its 95th percentile
	Interaction  float64 `json:"interaction_pct,omitempty"`       // how far cells lie from the additive model beyond noise
}

// Harness is the cost of measuring, and other work of the machine meanwhile.
type Harness struct {
	CPUShare float64 `json:"cpu_share_pct"`       // CPU of source and sink as percent of that of ssh and sshd
	Drift    float64 `json:"drift_pct,omitempty"` // how much more time copies took per byte at the end of the run, in percent
}

// Warning is a doubt about a result, with its remedy.
type Warning struct {
	Name string `json:"name"` // stable, for programs: "slowed", "coarse-clock", ...
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}
