//go:build linux

package login

import (
	"context"
	"errors"
	"slices"

	"sshpace/internal/bench/testbed"
)

// Study selects the factors that are compared with the plain login.
type Study struct {
	Bed     *testbed.Testbed
	Ends    *Ends
	Program string   // ourselves, for our own client
	Kex     []string // key exchanges to compare
	Factors []string // short names; nil: all that there are
	Full    bool     // the product of key exchanges, host keys and user keys instead
	Kept    bool     // the user's own master is compared with logins, asked for or not

	ends       *Ends // between which all logins are compared
	host, user []*keyPair
	everyKey   *Ends // a server that takes all keys
	close      []func() error
}

// shortNames are the factors' names on a command line, in the order of a report.
var shortNames = []struct{ short, factor string }{
	{"kex", KexFactor}, {"hostkey", HostKeyFactor}, {"userkey", UserKeyFactor}, {"agent", SourceFactor}, {"known-hosts", KnownHostsFactor},
	{"config", SettingFactor}, {"server", ServerFactor}, {"connection", ConnectionFactor}, {"client", ClientFactor},
}

// FactorNames returns the short names of the factors.
func FactorNames() (names []string) {
	for _, n := range shortNames {
		names = append(names, n.short)
	}
	return names
}

// wants reports whether a factor is compared. On a user's host only the selected ones are.
func (s *Study) wants(factor string) bool {
	if s.Full {
		return false
	}
	if s.Factors == nil {
		return s.Ends.Own() || factor == KexFactor || factor == ConnectionFactor && s.Kept
	}
	return slices.ContainsFunc(shortNames, func(n struct{ short, factor string }) bool {
		return n.factor == factor && slices.Contains(s.Factors, n.short)
	})
}

// Cases returns the plain login and all that is compared with it. Close ends their servers and
// agents.
func (s *Study) Cases(ctx context.Context) (cases []Case, err error) {
	ends, err := s.compared()
	if err != nil {
		return nil, err
	}
	cases = []Case{s.Ends.Plain()}
	if s.wants(KexFactor) {
		cases = append(cases, ends.KexCases(s.Kex)...)
	}
	private, err := s.private(ctx, ends)
	if err != nil {
		return nil, err
	}
	cases = append(cases, private...)
	if s.wants(ConnectionFactor) && ends.Native == "" {
		session, err := s.session(ctx, ends)
		if err != nil {
			return nil, err
		}
		cases = append(cases, ends.as(ConnectionFactor, "cold login"), session)
	}
	if s.wants(ClientFactor) && ends.Native == "" {
		cases = append(cases, ends.ClientCases(s.Program)...)
	}
	return cases, nil
}

// session returns a session over the user's own master, or else over one of ours.
func (s *Study) session(ctx context.Context, ends *Ends) (Case, error) {
	if s.Kept {
		return ends.SessionCase(KeptLevel, ends.Destination.Master), nil
	}
	master, err := ends.StartMaster(ctx)
	if err != nil {
		return Case{}, err
	}
	s.close = append(s.close, master.Close)
	return ends.SessionCase("ControlMaster session", master.socket), nil
}

// fastKex is the key exchange of logins that do not compare key exchanges: a costly one would hide
// the differences. OpenSSH has it since 7.4.
const fastKex = "curve25519-sha256"

// compared returns the ends of logins that are compared.
func (s *Study) compared() (*Ends, error) {
	if !s.Ends.Own() {
		return s.Ends, nil
	}
	ends, err := s.Ends.Prompt()
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, ends.Close)
	if slices.Contains(s.Bed.Offered.Kex, fastKex) && slices.Contains(s.Bed.Client.Kex, fastKex) {
		ends.Kex = fastKex
	}
	return ends, nil
}

// Conditions describes how all logins but the plain one differ from it; "" on a user's host.
func (s *Study) Conditions() string {
	if !s.Ends.Own() {
		return ""
	}
	return "without waits for acknowledgements, and with " + fastKex + " except to compare key exchanges"
}

// private returns the cases that need our own server, OpenSSH's.
func (s *Study) private(ctx context.Context, ends *Ends) ([]Case, error) {
	if !s.Ends.Own() || s.Bed.Environment.ServerPath == "" {
		return nil, nil
	}
	if !s.Full && !slices.ContainsFunc([]string{HostKeyFactor, UserKeyFactor, SourceFactor, KnownHostsFactor, SettingFactor, ServerFactor}, s.wants) {
		return nil, nil
	}
	if err := s.prepare(ctx, ends); err != nil {
		return nil, err
	}
	if s.Full {
		return s.full(s.Kex), nil
	}
	cases, err := s.all(ctx)
	return slices.DeleteFunc(cases, func(c Case) bool { return !s.wants(c.Factor) }), err
}

// Close ends the servers and agents of the cases.
func (s *Study) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.close) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
