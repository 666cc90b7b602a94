package advise_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// lineOf is the value of a keyword in a configuration; "" if it has none.
func lineOf(config, keyword string) string {
	for line := range strings.Lines(config) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == keyword {
			return words[1]
		}
	}
	return ""
}

// Lines put what is advised first and leave the rest as it is, except where they are told to close
// the list.
func TestLines(t *testing.T) {
	usual := present
	more, fewer := usual, usual
	more.Ciphers = append(slices.Clone(usual.Ciphers), "3des-cbc")
	fewer.Ciphers = []string{chacha, gcm128, gcm256}
	first := gcm256 + "," + gcm128
	all := first + ",aes128-ctr," + chacha
	for name, test := range map[string]struct {
		side   advise.Side
		strict bool
		want   string
	}{
		"nothing configured": {advise.Side{Offer: usual, Default: usual}, false, "^" + first},
		"not known":          {advise.Side{}, false, "^" + first},
		"more configured":    {advise.Side{Offer: more, Default: usual}, false, "^" + first + "," + chacha + ",aes128-ctr,3des-cbc"},
		"closed":             {advise.Side{Offer: fewer, Default: usual}, false, first + "," + chacha},
		"old":                {advise.Side{Offer: usual, Default: usual, Old: true}, false, first + "," + chacha + ",aes128-ctr"},
		"old, not known":     {advise.Side{Old: true}, false, ""},
		"strict":             {advise.Side{Offer: more, Default: usual}, true, all},
		"strict, old":        {advise.Side{Old: true}, true, all},
	} {
		p := advise.Params{Ranking: ranking(new(true)), Policy: named(t, "modern"), Client: advise.Side{Offer: usual}, Server: test.side, Strict: test.strict}
		p.Ranking.Campaign.Shared = usual
		a, err := advise.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := lineOf(a.ServerConfig(), "Ciphers"); got != test.want {
			t.Errorf("%s: Ciphers %s, want %s\n%s", name, got, test.want, a.ServerConfig())
		}
		if got := lineOf(a.ClientConfig("*"), "KexAlgorithms"); (got != "") != test.strict || test.strict && !strings.Contains(got, "sntrup761x25519-sha512@openssh.com") {
			t.Errorf("%s: the name that older servers need is not in KexAlgorithms %s", name, got)
		}
	}
}

// Whatever is configured, ssh and sshd accept the lines, put what is advised first, and offer after
// them exactly what they offered before.
func TestLinesKeepEverything(t *testing.T) {
	ctx := t.Context()
	client, err := openssh.FindClient(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.Query(ctx)
	if err != nil {
		t.Fatal(err)
	}
	effective := func(config string) alg.Offer {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		offer, err := client.Effective(ctx, openssh.Destination{Host: "x", Flags: conf.Flags{Config: file}})
		if err != nil {
			t.Fatalf("%v:\n%s", err, config)
		}
		return offer
	}
	usual := effective("")
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		config := randomLists(random, all)
		before := effective(config)
		p := advise.Params{Ranking: ranking(new(true)), Policy: named(t, "modern"), Client: advise.Side{Offer: before, Default: usual}}
		p.Ranking.Campaign.Offer = alg.Offer{Ciphers: []string{gcm128, gcm256}, MACs: []string{umac, etm}, Kex: []string{"curve25519-sha256"}}
		a, err := advise.New(p)
		if err != nil {
			t.Fatal(err)
		}
		after := effective(a.ClientConfig("*") + config)
		for _, list := range a.Lists {
			had, has := before.List(list.Kind), after.List(list.Kind)
			want := append(slices.Clone(list.First), slices.DeleteFunc(slices.Clone(had), func(name string) bool { return slices.Contains(list.First, name) })...)
			if names := list.First; !slices.Equal(has[:len(names)], names) || !sameSet(has, want) {
				t.Errorf("with\n%s%s\nwere %s\nare  %s", config, list.Kind.Keyword(), had, has)
			}
		}
	}
}

// randomLists configures a part of what the program knows, in one of the ways that ssh_config(5)
// has.
func randomLists(random *rand.Rand, all alg.Offer) string {
	var lines string
	for _, list := range []struct {
		keyword string
		names   []string
	}{{"Ciphers", all.Ciphers}, {"MACs", all.MACs}, {"KexAlgorithms", all.Kex}} {
		way := []string{"none", "", "+", "-", "^"}[random.IntN(5)]
		if way == "none" {
			continue
		}
		names := slices.Clone(list.names)
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		lines += list.keyword + " " + way + strings.Join(names[:1+random.IntN(len(names)/2)], ",") + "\n"
	}
	return lines
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
