// Package anonymize makes a copy of a result that can be shown to anybody. Hosts,
// users, programs' places and whatever else somebody named are called host1,
// user1, path1 in the order in which they appear; free text is left out, or cut
// down to words that the tables here know; the run is moved to the midnight (UTC)
// of its day, with all distances kept. Nothing that is measured changes.
//
// What is kept is listed, not what is dropped: a text that nobody thought of does
// not come through.
package anonymize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// File is the copy of a result. It depends on nothing but the result.
func File(f *record.File) *record.File {
	v := &veil{names: map[string]string{}, count: map[string]int{}, shift: f.Campaign.Started.Sub(day(f.Campaign.Started))}
	out := &record.File{
		Campaign: v.campaign(f.Campaign), Environment: v.environment(f.Environment), Trials: map[int]record.Trial{},
		Findings: left(f), Ended: among(f.Ended, ends), Truncated: f.Truncated,
	}
	for _, id := range slices.Sorted(maps.Keys(f.Trials)) {
		out.Trials[id] = v.trial(f.Trials[id])
	}
	for _, s := range f.Samples {
		out.Samples = append(out.Samples, v.sample(s))
	}
	for _, m := range f.Measurements {
		out.Measurements = append(out.Measurements, v.measurement(m))
	}
	for _, m := range f.Methods {
		out.Methods = append(out.Methods, v.method(m))
	}
	for _, r := range f.Runs {
		r.Kind, r.Start, r.Failure = among(r.Kind, runKinds), v.time(r.Start), veiled(r.Failure, "it failed")
		out.Runs = append(out.Runs, r)
	}
	for _, k := range f.LoginKinds {
		k.Factor, k.Level, k.Conditions = loginWords(k.Factor), loginWords(k.Level), loginWords(k.Conditions)
		out.LoginKinds = append(out.LoginKinds, k)
	}
	for _, l := range f.LoginRuns {
		out.LoginRuns = append(out.LoginRuns, v.login(l))
	}
	for _, l := range f.Limits {
		l.Mode, l.Direction, l.Suite = among(l.Mode, modes), among(l.Direction, directions), v.suite(l.Suite)
		l.What, l.Sentence, l.Help = among(l.What, limiting), "", ""
		out.Limits = append(out.Limits, l)
	}
	for _, t := range f.Thermals {
		out.Thermals = append(out.Thermals, v.thermal(t))
	}
	for _, s := range f.Slices {
		s.Start = v.time(s.Start)
		out.Slices = append(out.Slices, s)
	}
	return out
}

// day is the midnight before a time, in UTC: a time zone is a place.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// left says how many findings were left out: they are sentences with names in them.
func left(f *record.File) []record.Finding {
	if len(f.Findings) == 0 {
		return nil
	}
	return []record.Finding{{What: fmt.Sprintf("%d findings are left out", len(f.Findings)), Why: "the result is anonymized, and they are free text"}}
}

// veil knows what it has called whom.
type veil struct {
	names map[string]string // by kind and name
	count map[string]int    // by kind
	shift time.Duration
}

// call is the pseudonym of a name; "" stays "".
func (v *veil) call(kind, name string) string {
	if name == "" {
		return ""
	}
	key := kind + " " + name
	if v.names[key] == "" {
		v.count[kind]++
		v.names[key] = fmt.Sprintf("%s%d", kind, v.count[kind])
	}
	return v.names[key]
}

// loopback is the target of a run on private servers.
const loopback = "loopback"

// host is the pseudonym of a target as the user named it, such as me@box.
func (v *veil) host(target string) string {
	if target == loopback {
		return target
	}
	at := strings.LastIndexByte(target, '@')
	if at < 0 {
		return v.call("host", target)
	}
	return v.call("user", target[:at]) + "@" + v.call("host", target[at+1:])
}

func (v *veil) path(path string) string {
	if slices.Contains(places, path) {
		return path
	}
	return v.call("path", path)
}

func (v *veil) time(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Add(-v.shift)
}

// algorithm is a name that the tables know, or a pseudonym.
func (v *veil) algorithm(kind alg.Kind, name string) string {
	if _, known := alg.Lookup(kind, name); known || name == "none" {
		return name
	}
	return v.call("unknown-"+string(kind), name)
}

func (v *veil) suite(s alg.Suite) alg.Suite {
	return alg.Suite{
		Cipher: v.algorithm(alg.Cipher, s.Cipher), MAC: v.algorithm(alg.MAC, s.MAC),
		Kex: v.algorithm(alg.Kex, s.Kex), HostKey: v.algorithm(alg.HostKey, s.HostKey),
	}
}

func (v *veil) offer(o alg.Offer) alg.Offer {
	list := func(kind alg.Kind) []string {
		var names []string
		for _, name := range o.List(kind) {
			names = append(names, v.algorithm(kind, name))
		}
		return names
	}
	return alg.Offer{Ciphers: list(alg.Cipher), MACs: list(alg.MAC), Kex: list(alg.Kex), HostKeys: list(alg.HostKey)}
}

func (v *veil) policy(name string) string {
	if _, err := alg.LookupPolicy(name); err == nil || name == "none" {
		return name
	}
	return v.call("policy", name)
}

func (v *veil) campaign(c record.Campaign) record.Campaign {
	c.Tool, c.Target, c.Started, c.Seed = release().FindString(c.Tool), v.host(c.Target), v.time(c.Started), 0
	c.Command, c.Engine, c.Server, c.Data = among(c.Command, commands), among(c.Engine, engines), among(c.Server, servers), among(c.Data, payloads)
	c.Directions = slices.Clone(c.Directions)
	for i, d := range c.Directions {
		c.Directions[i] = among(d, directions)
	}
	c.Asked = nil // words that the user chose
	c.Policy, c.Imported = v.policy(c.Policy), v.call("format", c.Imported)
	c.Offer, c.Shared, c.Present = v.offer(c.Offer), v.offer(c.Shared), v.suite(c.Present)
	return c
}

// environment is made anew: a field that is added to it is not shown before
// somebody has thought about it.
// thermal keeps the figures. Sensors' names tell a board.
func (v *veil) thermal(t record.Thermal) record.Thermal {
	t.At, t.Zones = v.time(t.At), slices.Clone(t.Zones)
	for i, zone := range t.Zones {
		t.Zones[i].Name = v.call("sensor", zone.Name)
	}
	for _, list := range []*[]string{&t.Throttled, &t.SinceBoot} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(why string) bool { return !slices.Contains(record.ThrottleReasons, why) })
	}
	return t
}

func (v *veil) environment(e record.Environment) record.Environment {
	return record.Environment{
		OS: among(e.OS, systems), Arch: among(e.Arch, architectures), Kernel: release().FindString(e.Kernel),
		CPU: words(e.CPU, cpuWord()), CPUFeatures: strings.Fields(words(strings.Join(e.CPUFeatures, " "), featureWord())),
		Cores: e.Cores, CPUQuota: e.CPUQuota, MemoryBytes: e.MemoryBytes, StealPct: e.StealPct, LoadAverage: e.LoadAverage,
		Governor: among(e.Governor, governors), Hypervisor: among(e.Hypervisor, hypervisors),
		TickNS: e.TickNS, CPUClock: among(e.CPUClock, clocks), StrictKex: e.StrictKex,
		Client: program().FindString(e.Client), ClientPath: v.path(e.ClientPath),
		Server: program().FindString(e.Server), ServerPath: v.path(e.ServerPath),
		Crypto: library().FindString(e.Crypto), ServerBanner: program().FindString(e.ServerBanner),
	}
}

func (v *veil) trial(t record.Trial) record.Trial {
	t.Target, t.Want, t.Offered = v.host(t.Target), v.suite(t.Want), v.suite(t.Offered)
	t.Workload, t.Direction, t.Role = among(t.Workload, workloads), among(t.Direction, directions), among(t.Role, roles)
	return t
}

func (v *veil) sample(s record.Sample) record.Sample {
	s.Got, s.Start, s.Detail = v.suite(s.Got), v.time(s.Start), ""
	if among(s.Outcome, outcomes) == "" {
		s.Outcome = record.Broken // never silently a success
	}
	return s
}

func (v *veil) method(m record.Method) record.Method {
	m.Mode, m.Direction, m.Suite = among(m.Mode, modes), among(m.Direction, directions), v.suite(m.Suite)
	m.Client, m.Server, m.Why = v.implementation(m.Client), v.implementation(m.Server), veiled(m.Why, "the reason is left out")
	return m
}

func (v *veil) login(l record.WatchedLogin) record.WatchedLogin {
	l.Start, l.Failure = v.time(l.Start), veiled(l.Failure, "it failed")
	l.Phases, l.Stalls = slices.Clone(l.Phases), slices.Clone(l.Stalls)
	for i := range l.Phases {
		l.Phases[i].Phase = among(l.Phases[i].Phase, phases)
	}
	for i := range l.Stalls {
		l.Stalls[i].Side, l.Stalls[i].Why = among(l.Stalls[i].Side, sides), veiled(l.Stalls[i].Why, "a wait that no computation explains")
	}
	return l
}

// loginWords keeps names of algorithms, and the words that kinds of login are
// called by.
func loginWords(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		_, kex := alg.Lookup(alg.Kex, word)
		_, key := alg.Lookup(alg.HostKey, word)
		return !kex && !key && !loginWord().MatchString(word)
	}), " ")
}

// implementation is a maker and a version.
func (v *veil) implementation(name string) string {
	if maker().MatchString(name) {
		return name
	}
	return v.call("implementation", name)
}

// veiled is a phrase in the place of a text, if there is one.
func veiled(text, phrase string) string {
	if text == "" {
		return ""
	}
	return phrase
}

func (v *veil) measurement(m record.Measurement) record.Measurement {
	if words(m.Name, measureWord()) != m.Name {
		m.Name = v.call("measurement", m.Name)
	}
	if among(m.Source, sources) == "" {
		m.Source = v.call("program", m.Source)
	}
	m.Unit = among(m.Unit, units)
	return m
}
