package expand

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fleet/hostset"
)

// Known are the sources of values.
type Known struct {
	// Target returns where ssh_config leads.
	Target    func(h host.Host) (hostName, user string, port int, err error)
	Variables Variables
}

// Variables looks variables up: the result has the known ones.
type Variables func(h host.Host, names []string) (map[string]string, error)

// Values are what tokens mean for each host: "h" the host name of ssh_config, "n" the name as
// given, "u" the user, "p" the port, "i" the place in the list from 0, "{name}" a variable.
type Values struct {
	script []byte   // nil: none
	named  []string // variables that it reads from its environment
	of     map[host.Endpoint]map[string]string
}

// letter is a token of one letter.
type letter struct {
	token, name string // in texts, and in the environment of a script
	routed      bool   // ssh_config says it
}

var letters = [...]letter{
	{"h", "SSHPACE_HOST", true}, {"n", "SSHPACE_NAME", false}, {"u", "SSHPACE_USER", true}, {"p", "SSHPACE_PORT", true}, {"i", "SSHPACE_INDEX", false},
}

// tokenHint names the tokens.
func tokenHint() string {
	var all []string
	for _, l := range letters {
		all = append(all, "%"+l.token)
	}
	return "tokens are " + strings.Join(all, ", ") + " and %{variable}; write %% for %"
}

// isToken reports whether a text behind % is a token.
func isToken(text string) bool {
	if name, open := strings.CutPrefix(text, "{"); open {
		return nameOfVariable().MatchString(strings.TrimSuffix(name, "}"))
	}
	return slices.ContainsFunc(letters[:], func(l letter) bool { return l.token == text })
}

const variablePrefix = "SSHPACE_VAR_"

var (
	nameOfVariable = wildcard.Regexp(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	inEnvironment  = wildcard.Regexp(variablePrefix + `([A-Za-z0-9_]+)`)
)

// MaxValue bounds a value, in bytes: with a command around it, it has to fit into one argument of a
// program, 128 KiB on Linux.
const MaxValue = 100 << 10

const valueHint = "give every host a value: --var NAME=VALUE, --vars FILE.csv, or the variables of an --inventory"

// Of collects the values for the tokens of some texts, and for a script. A token without a value,
// for any host, is an error.
func Of(hosts []host.Host, texts []string, script []byte, known Known) (*Values, error) {
	tokens, err := tokensOf(texts)
	if err != nil {
		return nil, err
	}
	v := &Values{script: script, of: map[host.Endpoint]map[string]string{}}
	for _, found := range inEnvironment().FindAllSubmatch(script, -1) {
		v.named = append(v.named, string(found[1]))
	}
	v.named = sorted(v.named)
	names := slices.Clone(v.named)
	for _, token := range tokens {
		if name := strings.Trim(token, "{}"); name != token {
			names = append(names, name)
		}
	}
	names = sorted(names)
	var wrong problems
	asked := slices.ContainsFunc(letters[:], func(l letter) bool { return l.routed && (script != nil || slices.Contains(tokens, l.token)) })
	for i, h := range hosts {
		var name, user string
		var port int
		if asked {
			var err error
			name, user, port, err = known.Target(h)
			wrong.add(err, h)
		}
		own := map[string]string{}
		for k, value := range [len(letters)]string{name, h.Name, user, strconv.Itoa(port), strconv.Itoa(i)} {
			own[letters[k].token] = value
		}
		if len(names) > 0 {
			values, err := known.Variables(h, names)
			if err != nil {
				wrong.add(err, h)
				continue
			}
			for _, name := range names {
				wrong.add(usable(values, name), h)
				own["{"+name+"}"] = values[name]
			}
		}
		v.of[h.Endpoint()] = own
	}
	return v, wrong.err()
}

// sorted returns names in order, each once.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// tokensOf lists the tokens of texts, and refuses unknown ones.
func tokensOf(texts []string) (tokens []string, err error) {
	for _, text := range texts {
		for before, token := range split(text) {
			switch {
			case token == "" && strings.HasSuffix(before, "%"):
				return nil, fault.Usage(tokenHint(), "nothing follows the last %% of %q", text)
			case token == "" || token == "%":
			case !isToken(token):
				return nil, fault.Usage(tokenHint(), "unknown token %q", "%"+token)
			default:
				tokens = append(tokens, token)
			}
		}
	}
	return tokens, nil
}

// usable refuses a variable that no command can have.
func usable(values map[string]string, name string) error {
	switch value, has := values[name]; {
	case !has:
		return fmt.Errorf("%%{%s} has no value", name)
	case len(value) > MaxValue:
		return fmt.Errorf("%%{%s} is longer than 100 KiB", name)
	case strings.Contains(value, "\x00"):
		return fmt.Errorf("%%{%s} has a zero byte, which no command can hold,", name)
	}
	return nil
}

// problems are those of hosts, in the order in which they were found.
type problems struct {
	hint  string // of the first
	texts []string
	of    map[string][]string
}

// add adds one; nil is none.
func (p *problems) add(err error, h host.Host) {
	if err == nil {
		return
	}
	text := err.Error()
	if p.of == nil {
		p.of, p.hint = map[string][]string{}, fault.HintOf(err)
	}
	if p.of[text] == nil {
		p.texts = append(p.texts, text)
	}
	p.of[text] = append(p.of[text], h.String())
}

// err names the hosts of each problem.
func (p *problems) err() error {
	if len(p.texts) == 0 {
		return nil
	}
	var said []string
	for _, text := range p.texts {
		said = append(said, text+" for "+hostset.Fold(p.of[text]))
	}
	return fault.Usage(cmp.Or(p.hint, valueHint), "%s", strings.Join(said, "; "))
}
