package store

import (
	"os"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
)

// Limits combines the newest value of each limit that was recorded on this machine, since runs with
// --only measure some of them; nil where there is none. change is applied to each result first.
func (s Store) Limits(of record.Environment, change func(*record.File) *record.File) *record.File {
	names, _ := owned(s.Machines())
	var merged *record.File
	for _, name := range slices.Backward(names) {
		file, err := LoadLimits(name)
		if err != nil {
			continue
		}
		if file = change(file); !sameMachine(file.Environment, of) {
			continue
		}
		if merged != nil {
			file.Measurements = renewed(merged.Measurements, file.Measurements)
		}
		merged = file
	}
	return merged
}

// renewed replaces old measurements by newer ones of the same thing and adds the others.
func renewed(old, newer []record.Measurement) []record.Measurement {
	all := slices.Clone(old)
	for _, m := range newer {
		i := slices.IndexFunc(all, func(o record.Measurement) bool { return o.Source == m.Source && o.Name == m.Name && o.Unit == m.Unit })
		if i < 0 {
			all = append(all, m)
			continue
		}
		all[i] = m
	}
	return all
}

func sameMachine(a, b record.Environment) bool {
	return a.CPU == b.CPU && a.Cores == b.Cores && a.Arch == b.Arch && a.Hypervisor == b.Hypervisor
}

// LoadLimits reads the limits of a machine.
func LoadLimits(path string) (*record.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.WithHint(err, "sshpace limits writes such files")
	}
	defer file.Close()
	records, err := load(file, path)
	if err == nil && len(records.Measurements) == 0 {
		err = fault.Usage("sshpace limits writes such files", "%s holds no limits of a machine", path)
	}
	return records, err
}
