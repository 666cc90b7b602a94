//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/shell"

	"sshpace/internal/base/unit"
	"sshpace/internal/ssh/conf"
)

// Floors: smaller costs do not matter, and a busy machine adds as much.
const (
	execFloor   = 30 * time.Millisecond
	lookupFloor = 50 * time.Millisecond
	gssapiFloor = 5 * time.Millisecond
	keyFloor    = 10 * time.Millisecond
)

// loginChecks are about the client's part of a login.
var loginChecks = []Check{
	{"match-exec", "a slow command of Match exec", []Probe{LoggingIn}, matchExec},
	{"dns", "a slow lookup of the host's address", []Probe{LoggingIn}, slowLookup},
	{"address", "addresses that do not answer", []Probe{LoggingIn}, deadAddress},
	{"gssapi", "Kerberos tried in vain", []Probe{LoggingIn}, gssapi},
	{"keys", "keys that the server does not want", []Probe{LoggingIn}, vainKeys},
	{"refused", "a server that limits connections", []Probe{LoggingIn}, refused},
}

func matchExec(f *Facts) (found []Finding) {
	for _, c := range f.Logins.Commands {
		if !counts(c.Took, execFloor) {
			continue
		}
		at, where, do := matchLine(f, c)
		found = append(found, Finding{
			What: fmt.Sprintf("a command of Match exec runs before the connection (%s)", at),
			Cost: c.Took, Per: perLogin,
			Evidence: fmt.Sprintf("%q took %s", c.Text, Milliseconds(c.Took)), Where: where, Do: do, Gain: ofLogin(f, c.Took),
		})
	}
	return found
}

// matchLine keeps ssh from running a command for hosts that do not need it: ssh stops at the first
// criterion that does not match.
func matchLine(f *Facts, c Command) (at, where, do string) {
	criterion, where := "!originalhost "+f.Host, "on this machine, if "+f.Host+" needs none of the settings of that Match block"
	if f.Own {
		criterion, where = "originalhost HOSTS", "on this machine, with the hosts that need that Match block in the place of HOSTS"
	}
	if c.File == "" { // a criterion of the command line, or of an ssh that does not say where
		return "where: see below", "on this machine; it shows the line", "grep -rn -i 'match.*exec' " + config(f) + " /etc/ssh/ssh_config*"
	}
	return fmt.Sprintf("%s:%d", c.File, c.Line), where, shell.Substitute(c.File, c.Line, "[Ee]xec", criterion+" exec")
}

func slowLookup(f *Facts) []Finding {
	l := f.Logins
	if !counts(l.Lookup, lookupFloor) {
		return nil
	}
	return []Finding{{
		What: "looking up the host's address is slow (DNS or another name service)",
		Cost: l.Lookup, Per: perLogin,
		Evidence: "the look-up took " + Milliseconds(l.Lookup),
		Where:    "on this machine, if that address never changes",
		Do:       fixedAddress(f), Gain: ofLogin(f, l.Lookup),
	}}
}

func deadAddress(f *Facts) []Finding {
	found := Finding{Per: perLogin, AtLeast: f.Logins.Cut()}
	var seen []string
	where, do := here(f), configure(f, "AddressFamily "+family(f.Logins.Address))
	for _, a := range f.Logins.Failed {
		if !counts(a.Took, lookupFloor) {
			continue
		}
		if found.Cost.N == 0 {
			found.Cost = a.Took
		} else {
			found.Cost = found.Cost.Plus(a.Took)
		}
		says := fmt.Sprintf("%s: %s after %s", a.Address, a.Why, Milliseconds(a.Took))
		if a.Cut {
			says = fmt.Sprintf("%s: no answer in %s, and this doctor waits no longer; ssh does, without a ConnectTimeout", a.Address, unit.Milliseconds(a.Took.Value))
		}
		seen = append(seen, says)
		if family(a.Address) == family(f.Logins.Address) {
			where, do = here(f)+"; the address may change later", fixedAddress(f)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	found.What, found.Where, found.Do, found.Gain = "the address that is tried first does not answer", where, do, ofLogin(f, found.Cost)
	if found.AtLeast {
		found.Gain = fmt.Sprintf("more than %s a login (predicted)", ms(found.Cost.Value))
	}
	found.Evidence = strings.Join(append(seen, f.Logins.Address+" answered"), "; ")
	return []Finding{found}
}

// family returns the family of an address, as AddressFamily names it.
func family(address string) string {
	if strings.Contains(address, ":") {
		return "inet6"
	}
	return "inet"
}

// fixedAddress returns settings that lead to the address that answered, under the name of the known
// key.
func fixedAddress(f *Facts) string {
	return configure(f, "HostName "+conf.Quote(f.Logins.Address), "HostKeyAlias "+conf.Quote(f.KnownAs))
}

func gssapi(f *Facts) []Finding {
	cost := f.Logins.GSSAPI
	if !counts(cost, gssapiFloor) {
		return nil
	}
	return []Finding{{
		What: "Kerberos (GSSAPI) is tried before keys, and there is no ticket",
		Cost: cost, Per: perLogin,
		Evidence: "ssh went on to the next method after " + Milliseconds(cost),
		Where:    here(f), Do: configure(f, "GSSAPIAuthentication no"), Gain: ofLogin(f, cost),
	}}
}

func vainKeys(f *Facts) []Finding {
	k := f.Logins.Keys
	if f.Refusal != nil && f.Refusal.TooMany {
		where, do := here(f)+"; name the file of the right key there", configure(f, "IdentityFile ~/.ssh/id_ed25519", "IdentitiesOnly yes")
		if vain, rest := typedInVain(f); len(vain) > 0 {
			where, do = "on the command line; -i adds to the keys that the configuration names: name the right key alone", rest+" -i ~/.ssh/id_ed25519 -o IdentitiesOnly=yes"
		}
		return []Finding{{
			What: "the server hangs up before ssh offers the right key: too many others come first", Breaks: true,
			Evidence: fmt.Sprintf("%d keys were offered, then: %s", len(k.Vain)+1, f.Refusal.Said),
			Where:    where, Do: do, Gain: "logins that work",
		}}
	}
	if len(k.Vain) == 0 || f.Logins.Whole.N == 0 || !counts(k.Took, keyFloor) {
		return nil
	}
	where, do := here(f), onlyKey(f)
	if vain, rest := typedInVain(f); len(vain) == len(k.Vain) {
		where, do = "on the command line: -i names keys that the server does not want", rest
	} else if len(vain) > 0 {
		where += "; and leave out -i " + strings.Join(vain, ", -i ")
	}
	return []Finding{{
		What: unit.Count(len(k.Vain), "key") + " offered before the right one",
		Cost: k.Took, Per: perLogin,
		Evidence: fmt.Sprintf("offering them took %s; the server accepted %s (sshd allows 6 tries by default)", Milliseconds(k.Took), k.Accepted),
		Where:    where, Do: do, Gain: ofLogin(f, k.Took),
	}}
}

// typedInVain returns the keys that -i named and the server refused, and the user's command of ssh
// without them: no configuration undoes -i.
func typedInVain(f *Facts) (files []string, rest string) {
	d := f.Destination
	d.Identities = nil
	for _, file := range f.Identities {
		if slices.Contains(f.Logins.Keys.Vain, file) {
			files = append(files, file)
		} else {
			d.Identities = append(d.Identities, file)
		}
	}
	return files, shell.Line(append([]string{"ssh"}, d.Typed()...)...)
}

// onlyKey makes ssh offer the right key alone. If only an agent has the key, its public half goes
// to a file, by which ssh chooses it.
func onlyKey(f *Facts) string {
	k := f.Logins.Keys
	if f.Own { // any host: which key is its own is not known
		return configure(f, "IdentitiesOnly yes")
	}
	if !k.FromAgent || strings.HasPrefix(k.Accepted, "/") {
		return configure(f, "IdentityFile "+path(k.Accepted), "IdentitiesOnly yes")
	}
	file := f.Host + ".pub"
	public := fmt.Sprintf(`ssh-add -L | while read -r k; do case $(echo "$k" | ssh-keygen -lf -) in
*%s*) echo "$k";; esac; done >~/.ssh/%s`, shell.Word(k.Fingerprint), shell.Word(file))
	return public + "\n" + configure(f, "IdentityFile "+path("~/.ssh/"+file), "IdentitiesOnly yes")
}

// refused distinguishes the limits of sshd by its words. Penalties (since 9.8) apply to an address
// for a time, MaxStartups to all connections that are not logged in yet.
func refused(f *Facts) []Finding {
	r := f.Refusal
	if r == nil || r.TooMany {
		return nil
	}
	found := Finding{
		What: "the server hung up before it sent its version: a limit of sshd (MaxStartups, PerSourcePenalties), or something in front of it", Breaks: true,
		Evidence: fmt.Sprintf("after %s: %s; nothing more was tried", unit.Count(r.After, "login"), r.Said),
		Where:    "on the server, as root; sshd's log names the limit, or has nothing if it was not sshd",
		Do:       "journalctl -t sshd -n 30 --no-pager", Gain: "logins that are not refused",
	}
	switch {
	case r.Startup:
		found.What = "the server refuses connections: too many are not logged in yet (MaxStartups)"
		found.Where = fmt.Sprintf("on the server, as root; first see who keeps connections open: ss -tn sport = :%d", f.Port)
		found.Do = reload("MaxStartups 100:30:200", "00-startups.conf")
	case r.Penalty:
		found.What = "the server refuses our address for a while (PerSourcePenalties)"
		found.Where = "on the server, as root, if you trust this address"
		found.Do = reload("PerSourcePenaltyExemptList "+client(f, "ADDRESS"), "00-penalties.conf")
	}
	return []Finding{found}
}
