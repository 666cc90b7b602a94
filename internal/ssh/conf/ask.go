package conf

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// dumpLines reads the output of ssh -G: a keyword in lower case and its value
// per line. Keywords that this package does not know are left out.
func dumpLines(text string) iter.Seq2[Keyword, []string] {
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
	case slices.Contains(algorithmLists, k):
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

// FromDump returns the configuration that the output of ssh -G describes.
// Values that are the defaults of ssh are marked as such.
func (c *Config) FromDump(q Hop, text string) (*Resolved, error) {
	s := &state{config: c, query: q, host: q.Name, class: classSeed}
	identities := []Value{}
	for k, words := range dumpLines(text) {
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
	r := &Resolved{Name: s.query.Name, config: s.config, set: s.set, several: s.several, class: s.class}
	s.host = s.word(HostName)
	s.finishTarget(r)
	r.set[HostName].Origin = s.set[HostName].Origin
	r.ordered = r.IsSet(HostKeyAlgorithms) // ssh -G does not tell how the list was written
	return r, s.finishJump(r)
}

// Class is equal for hosts that go through the same blocks of the files, so
// that what ssh says about one of them holds for the others.
func (r *Resolved) Class() string {
	class := strconv.FormatUint(r.class, 16)
	for _, gap := range r.Gaps {
		if gap.PerHost {
			return class + " " + r.Name
		}
	}
	return class
}

// Arguments returns what to call ssh with for a host under the same flags:
// options first, then "--" and the host.
func (c *Config) Arguments(q Hop) []string {
	// Behind the flags because those win over "user@host:port".
	target := Flags{User: q.User, Port: uint16(q.Port)}
	return slices.Concat(c.params.Options(), target.Options(), []string{"--", q.Name})
}

// Asker resolves hosts and puts what this package cannot know to ssh -G, once
// for each class. It may be used by any number of goroutines.
type Asker struct {
	config *Config
	run    Runner
	slots  chan struct{} // one for each ssh -G that may run at once

	mu      sync.Mutex
	answers map[string]func() (*patch, error)
}

// Most ssh -G at once: a fleet whose every host needs its own answer must not
// start thousands of processes.
const maxAsks = 4

// NewAsker returns an Asker for the hosts of a Config.
func NewAsker(c *Config, run Runner) *Asker {
	return &Asker{config: c, run: run, slots: make(chan struct{}, maxAsks), answers: map[string]func() (*patch, error){}}
}

// Resolve is Config.Resolve with the gaps filled. The question is asked for the
// first host of a class, and under its context: hand in one for the whole run.
func (a *Asker) Resolve(ctx context.Context, q Hop) (*Resolved, error) {
	r, err := a.config.Resolve(ctx, q)
	if err != nil || len(r.Gaps) == 0 {
		return r, err
	}
	answer, err := a.answer(ctx, r, q)()
	if err != nil {
		return nil, err
	}
	if answer.about(r) {
		return answer.apply(r)
	}
	answer, err = a.ask(ctx, r, q)
	if err != nil {
		return nil, err
	}
	return answer.apply(r)
}

func (a *Asker) answer(ctx context.Context, r *Resolved, q Hop) func() (*patch, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	class := r.Class()
	if a.answers[class] == nil {
		a.answers[class] = sync.OnceValues(func() (*patch, error) { return a.ask(ctx, r, q) })
	}
	return a.answers[class]
}

// ask keeps what ssh -G says otherwise than r.
func (a *Asker) ask(ctx context.Context, r *Resolved, q Hop) (*patch, error) {
	full, err := a.dump(ctx, q)
	if err != nil {
		return nil, err
	}
	return difference(r, full), nil
}

// dump calls ssh -G.
func (a *Asker) dump(ctx context.Context, q Hop) (*Resolved, error) {
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

// patch is what ssh -G says otherwise than this package for one host.
type patch struct {
	host    *Resolved
	set     map[Keyword]*Value // nil value = ssh has none
	several map[Keyword][]Value
}

func difference(r, full *Resolved) *patch {
	p := &patch{host: r, set: map[Keyword]*Value{}, several: map[Keyword][]Value{}}
	for k := AddressFamily; k < keywordCount; k++ {
		switch {
		case k.several():
			if !slices.EqualFunc(r.all(k), full.all(k), sameArgs) {
				p.several[k] = full.all(k)
			}
		case r.set[k] == nil && full.set[k] == nil:
		case full.set[k] == nil && slices.Contains(algorithmLists, k): // comes to no list at all: ssh -G passes over it in silence, and so does shown
			p.set[k] = &Value{Origin: r.set[k].Origin}
		case r.set[k] == nil || full.set[k] == nil || !sameArgs(*r.set[k], *full.set[k]):
			p.set[k] = full.set[k]
		}
	}
	return p
}

// about reports whether the answer holds for r too: it is about this very
// host, or it names nothing that is the first host's own.
func (p *patch) about(r *Resolved) bool {
	if p.host.Name == r.Name {
		return true
	}
	if _, ok := p.set[HostName]; ok {
		return false
	}
	own := func(word string) bool {
		return strings.Contains(word, p.host.Name) || strings.Contains(word, p.host.HostName())
	}
	for _, v := range p.set {
		if v != nil && slices.ContainsFunc(v.Args, own) {
			return false
		}
	}
	return true
}

// apply returns r with the answer put over it.
func (p *patch) apply(r *Resolved) (*Resolved, error) {
	s := &state{config: r.config, query: Hop{Name: r.Name}, host: r.HostName(), set: r.set, several: slices.Clone(r.several), class: r.class}
	for k, v := range p.set {
		s.set[k] = v
	}
	for k, values := range p.several {
		s.several.put(k, values)
	}
	full, err := s.fromDump()
	if _, asked := p.set[HostKeyAlgorithms]; err == nil && !asked {
		full.ordered = r.ordered
	}
	return full, err
}
