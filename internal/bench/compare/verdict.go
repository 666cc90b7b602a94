package compare

import (
	"fmt"
	"strings"

	"sshpace/internal/bench/rank"
)

// differences lists the differences between the files besides speed. An unknown value is not a
// difference.
func differences(inputs []Input) []rank.Warning {
	var out []rank.Warning
	first := inputs[0].Ranking
	for _, in := range inputs[1:] {
		r := in.Ranking
		add := func(name, what, a, b string) {
			if a != b && a != "" && b != "" {
				out = append(out, rank.Warning{Name: name, Text: fmt.Sprintf("%s differs: %s in %s, %s in %s", what, a, inputs[0].Label, b, in.Label)})
			}
		}
		add("client", "client", first.Environment.Client, r.Environment.Client)
		add("server", "server", first.Environment.Server, r.Environment.Server)
		add("crypto", "crypto library", first.Environment.Crypto, r.Environment.Crypto)
		add("cpu", "CPU", first.Environment.CPU, r.Environment.CPU)
		add("features", "CPU instructions", features(first), features(r))
		add("cores", "number of cores", coreCount(first), coreCount(r))
		add("engine", "client engine", string(first.Campaign.Engine), string(r.Campaign.Engine))
		add("server-kind", "kind of server", string(first.Campaign.Server), string(r.Campaign.Server))
		add("data", "payload", first.Campaign.Data, r.Campaign.Data)
		add("tool", "version of sshpace", first.Campaign.Tool, r.Campaign.Tool)
		add("clock", "CPU clock", first.Environment.CPUClock, r.Environment.CPUClock)
		for _, w := range r.Warnings {
			out = append(out, rank.Warning{Name: w.Name, Text: in.Label + ": " + w.Text, Hint: w.Hint})
		}
	}
	for _, w := range first.Warnings {
		out = append(out, rank.Warning{Name: w.Name, Text: inputs[0].Label + ": " + w.Text, Hint: w.Hint})
	}
	return out
}

// features returns the CPU instructions that matter to SSH, "none" where the machine has none of
// them, "" where a log does not say.
func features(r *rank.Ranking) string {
	if len(r.Environment.CPUFeatures) == 0 && r.Campaign.Imported == "" {
		return "none"
	}
	return strings.Join(r.Environment.CPUFeatures, " ")
}

// coreCount returns the number of cores; "" where a log does not say.
func coreCount(r *rank.Ranking) string {
	if r.Environment.Cores == 0 {
		return ""
	}
	return fmt.Sprint(r.Environment.Cores)
}
