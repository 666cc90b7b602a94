package advise

import (
	"fmt"
	"slices"
	"strings"
)

// ClientConfig returns the advice as a block of ssh_config(5) for the hosts that match pattern, or
// without a Host line if pattern is "". In ssh_config the first value wins, so the block must
// precede others that match the same hosts.
func (a *Advice) ClientConfig(pattern string) string {
	var b strings.Builder
	a.head(&b, "ssh_config(5)")
	if pattern != "" {
		fmt.Fprintf(&b, "Host %s\n", pattern)
	} else {
		b.WriteString("# for the hosts that you choose: --host PATTERN, or put it under their Host line\n")
	}
	a.lines(&b, "    ", a.client)
	return b.String()
}

// ServerConfig returns the advice as lines of sshd_config(5). The client decides the order of the
// lists: the server's only say which algorithms it accepts.
func (a *Advice) ServerConfig() string {
	var b strings.Builder
	a.head(&b, "sshd_config(5)")
	b.WriteString("# the client's order decides; these lists restrict the server\n")
	a.lines(&b, "", a.server)
	return b.String()
}

func (a *Advice) head(b *strings.Builder, page string) {
	e := a.Ranking.Environment
	fmt.Fprintf(b, "# %s by sshpace advise, policy %s\n", page, oneLine(a.Policy))
	fmt.Fprintf(b, "# measured %s on %s: %s to %s\n", a.Ranking.Campaign.Started.Format("2006-01-02"), oneLine(a.Ranking.Campaign.Target),
		firstWord(e.Client), firstWord(e.Server))
}

func (a *Advice) lines(b *strings.Builder, indent string, of Side) {
	for _, list := range a.Lists {
		value, why := list.value(of, a.Strict)
		if value == "" && len(list.First) == 0 && len(list.Choices) > 0 && a.Changes() { // unchanged lists are not mentioned next to changed ones
			continue
		}
		if value == "" {
			fmt.Fprintf(b, "%s# no %s line: %s\n", indent, list.Kind.Keyword(), why)
			continue
		}
		for _, c := range list.Choices {
			if slices.Contains(list.First, c.Name) {
				fmt.Fprintf(b, "%s# %s: %s\n", indent, c.Name, c.Reason)
			}
		}
		fmt.Fprintf(b, "%s# %s\n%s%s %s\n", indent, why, indent, list.Kind.Keyword(), value)
	}
}

// firstWord returns a version without the additions of a distribution.
func firstWord(version string) string {
	word, _, _ := strings.Cut(oneLine(version), " ")
	return word
}

// value returns the text after the keyword, and describes its effect on all other algorithms.
// Unless strict, it disables none that is enabled now, nor enables one that somebody has disabled;
// "" where that cannot be written. A list that begins with ^ goes before the default set
// (ssh_config(5), Ciphers).
func (l List) value(of Side, strict bool) (value, why string) {
	names, now, usual := l.First, of.Offer.List(l.Kind), of.Default.List(l.Kind)
	full := append(slices.Clone(names), lacking(now, names)...)
	switch {
	case len(l.Choices) == 0:
		return "", "the policy allows none, and its ciphers need none"
	case strict:
		return strings.Join(names, ","), "closed: every other algorithm is refused, including those of later versions"
	case len(names) == 0:
		return "", l.keep
	case len(now) == 0 && of.Old:
		return "", "before OpenSSH 8.1 a list must name all, and those enabled now are unknown; --strict closes it"
	case len(now) > 0 && of.Old:
		return strings.Join(full, ","), "these first, then all others enabled now; before OpenSSH 8.1 a list must name all"
	case len(now) > 0 && len(lacking(usual, now)) > 0:
		return strings.Join(full, ","), "these first, then all others enabled now; the present list is closed and stays closed"
	case len(lacking(now, append(slices.Clone(names), usual...))) > 0:
		return "^" + strings.Join(full, ","), "^: these first; all others stay enabled"
	}
	return "^" + strings.Join(names, ","), "^: these first; all others stay enabled"
}

// lacking returns the names that are not among others.
func lacking(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// LeftOut counts the names that are offered now but not advised. They stay enabled, unless the
// advice is strict.
func (a *Advice) LeftOut() (n int) {
	for _, list := range a.Lists {
		n += len(list.Dropped)
	}
	return n
}

// oneLine keeps text from a record, which may come from a remote host, from becoming lines of a
// configuration.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, s)
}

// Insecure lists the fastest cells that are never advised although they are faster than the advised
// ones, with the reason.
func (a *Advice) Insecure() []Listed {
	var out []Listed
	for _, c := range a.Ranking.Bulk {
		if c.Suite.Bulk() == a.Advised.Bulk() {
			break
		}
		if status := c.Suite.Status(); !status.Sound() {
			out = append(out, Listed{Name: c.Suite.String(), Group: c.Group, Reason: string(status) + ", " + figureOf(c)})
		}
	}
	return out
}
