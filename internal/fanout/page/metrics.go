package page

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"sshpace/internal/fanout/job"
)

// metrics answers Prometheus, in its text format.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	o := s.source.overview(r.Context())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if o.Trouble != "" {
		http.Error(w, o.Trouble, http.StatusServiceUnavailable)
		return
	}
	jobs, hosts := map[string]int{}, map[string]int{"ok": 0, "failed": 0, "running": 0, "waiting": 0}
	for _, stage := range job.Stages {
		jobs[string(stage)] = 0
	}
	for _, j := range o.Jobs {
		b := barOf(j.Count())
		jobs[string(j.Stage)]++
		for result, n := range map[string]int{"ok": b.OK, "failed": b.Failed, "running": b.Runs, "waiting": b.Waits} {
			hosts[result] += n
		}
	}
	gauge(w, "sshpace_jobs", "Jobs that are kept, by their state.", "state", jobs)
	gauge(w, "sshpace_hosts", "Hosts of jobs that are kept, by how they ended.", "result", hosts)
	if o.Hub == nil {
		return
	}
	bytes, limits := map[string]uint64{}, map[string]int64{}
	for _, stream := range o.Hub.Streams {
		bytes[stream.Name] = stream.Bytes
		if stream.Limit > 0 {
			limits[stream.Name] = stream.Limit
		}
	}
	gauge(w, "sshpace_launchers", "Launchers that are alive.", "pool", o.alive())
	gauge(w, "sshpace_batches_waiting", "Batches that no launcher has taken.", "pool", o.Hub.Waiting)
	gauge(w, "sshpace_batches_taken", "Batches that launchers work on.", "pool", o.Hub.Taken)
	gauge(w, "sshpace_stream_bytes", "Bytes that the hub keeps.", "stream", bytes)
	gauge(w, "sshpace_stream_limit_bytes", "Bytes that the hub keeps at most.", "stream", limits)
}

// gauge writes a metric with a label.
func gauge[N any](w io.Writer, name, help, label string, values map[string]N) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s gauge\n", name, help)
	for _, value := range slices.Sorted(maps.Keys(values)) {
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(value, "?"))
		fmt.Fprintf(w, "%s{%s=\"%s\"} %v\n", name, label, escaped, values[value])
	}
}
