package job

// Header returns the state as headers.
func (s *State) Header() map[string]string { return s.header() }

// Subject returns the subject of a batch.
func Subject(kind, pool, job string, number int) string { return subject(kind, pool, job, number) }

// SpecsOf reads a job.
var SpecsOf = specsOf
