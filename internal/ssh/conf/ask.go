package conf

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"sshpace/internal/base/host"
)

// Dump reads the output of ssh -G: a keyword in lower case and its value per line, and that of sshd
// -T as far as keywords are the same. Unknown keywords are left out.
func Dump(text string) iter.Seq2[Keyword, []string] {
	return func(yield func(Keyword, []string) bool) {
		for line := range strings.Lines(text) {
			name, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
			k, ok := KeywordOf(name)
			if ok && !yield(k, dumpWords(k, rest)) {
				return
			}
		}
	}
}

// dumpWords splits a value of ssh -G, which knows no quotes.
func dumpWords(k Keyword, rest string) []string {
	switch {
	case slices.Contains(AlgorithmLists, k):
		return strings.FieldsFunc(rest, func(r rune) bool { return r == ',' })
	case k == CanonicalDomains || k == CanonicalizePermittedCNAMEs || k == GlobalKnownHostsFile || k == UserKnownHostsFile:
		return strings.Fields(rest)
	case !k.Text() && specs[k].choices != nil:
		// Releases differ in the word for the same state, such as true and yes.
		if words, err := specs[k].read(input{args: []string{rest}}); err == nil {
			return words
		}
	}
	return []string{rest}
}

// FromDump returns the configuration that the output of ssh -G describes. Values that are the
// defaults of ssh are marked as such.
func (c *Config) FromDump(q host.Endpoint, text string) (*Resolved, error) {
	s := &state{config: c, query: q, host: q.Name}
	identities := []Value{}
	for k, words := range Dump(text) {
		v := Value{words, Origin{Source: FromSSH}}
		switch {
		case k == IdentityFile:
			identities = append(identities, v)
		case k.several():
			s.several.add(k, v)
		case k == SetEnv && s.set[SetEnv] != nil:
			s.set[SetEnv].Args = append(s.set[SetEnv].Args, words...)
		case k == ForwardAgent && words[0] != "yes" && words[0] != "no":
			s.set[ForwardAgent] = &Value{[]string{"yes"}, v.Origin}
			s.set[forwardAgentPath] = &v
		default:
			s.set[k] = c.orDefault(k, v)
		}
	}
	if s.set[HostName] == nil || s.set[User] == nil || s.set[Port] == nil {
		return nil, fmt.Errorf("host %s: the answer of ssh -G has no hostname, user or port", q.Name)
	}
	if !slices.EqualFunc(identities, c.usual.of(IdentityFile), sameArgs) {
		s.several.put(IdentityFile, identities)
	}
	return s.fromDump()
}

func sameArgs(a, b Value) bool { return slices.Equal(a.Args, b.Args) }

func (c *Config) orDefault(k Keyword, v Value) *Value {
	if d := c.fallbacks[k]; d != nil && sameArgs(*d, v) {
		return d
	}
	return &v
}

func (s *state) fromDump() (*Resolved, error) {
	r := &Resolved{Name: s.query.Name, config: s.config, set: s.set, several: s.several}
	s.host = s.word(HostName)
	s.finishTarget(r)
	r.set[HostName].Origin = s.set[HostName].Origin
	r.ordered = r.IsSet(HostKeyAlgorithms) // ssh -G does not show how the list was written
	return r, s.finishJump(r)
}

// Arguments returns the arguments of ssh for a host under the same flags: options first, then "--"
// and the host.
func (c *Config) Arguments(q host.Endpoint) []string {
	// After the flags, because those win over "user@host:port".
	target := Flags{User: q.User, Port: q.Port, Settings: strings.Split(q.Settings, "\n")}
	return slices.Concat(c.params.Options(), target.Options(), []string{"--", q.Name})
}

// Asker resolves hosts and asks ssh -G whatever this package cannot know. It may be used by any
// number of goroutines.
type Asker struct {
	config *Config
	run    Runner
	slots  chan struct{} // one for each ssh -G that may run at once
}

// The most simultaneous calls of ssh -G: a fleet whose every host needs its own answer must not
// start thousands of processes.
const maxAsks = 4

// NewAsker returns an Asker for the hosts of a Config.
func NewAsker(c *Config, run Runner) *Asker {
	return &Asker{config: c, run: run, slots: make(chan struct{}, maxAsks)}
}

// Resolve is Config.Resolve with the gaps filled.
func (a *Asker) Resolve(ctx context.Context, q host.Endpoint) (*Resolved, error) {
	r, err := a.config.Resolve(ctx, q)
	if err != nil || len(r.Gaps) == 0 {
		return r, err
	}
	full, err := a.dump(ctx, q)
	if err != nil {
		return nil, err
	}
	full.adopt(r)
	return full, nil
}

// dump calls ssh -G.
func (a *Asker) dump(ctx context.Context, q host.Endpoint) (*Resolved, error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out, stderr, err := a.run(ctx, append([]string{"-G"}, a.config.Arguments(q)...)...)
	<-a.slots
	if err != nil {
		reason, refused := refusal(err, stderr)
		if refused && reason != "" {
			return nil, &RefusedError{reason}
		}
		return nil, fmt.Errorf("host %s: ssh -G: %w: %s", q.Name, err, reason)
	}
	return a.config.FromDump(q, string(out))
}

// adopt copies what only our own parse knows, where both agree on the value: its place, and how a
// list of algorithms was written.
func (full *Resolved) adopt(r *Resolved) {
	full.unshared = full.set[ControlPath] == nil && (r.unshared || r.config.mayUnshare()) // which ssh -G does not show
	if same := slices.Equal(full.List(HostKeyAlgorithms), r.List(HostKeyAlgorithms)); same {
		full.ordered = r.ordered
	}
	for k := AddressFamily; k < keywordCount; k++ {
		ours, theirs := r.set[k], full.set[k]
		switch {
		case k.several():
			if slices.EqualFunc(r.all(k), full.all(k), sameArgs) {
				full.several.put(k, r.all(k))
			}
		case ours == nil:
		case theirs == nil && slices.Contains(AlgorithmLists, k): // results in no list at all: ssh -G ignores it silently, and so does shown
			full.set[k] = &Value{Origin: ours.Origin}
		case theirs != nil && sameArgs(*ours, *theirs):
			full.set[k] = ours
		}
	}
}

// mayUnshare reports whether a ControlPath of none may stand where only ssh knows for which hosts.
func (c *Config) mayUnshare() bool {
	return len(c.gaps) > 0 || slices.ContainsFunc(c.segments, func(s segment) bool {
		return slices.ContainsFunc(s.stmts, func(st stmt) bool { return st.key == ControlPath && strings.EqualFold(st.value.word(), "none") })
	})
}
