package page

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/show/document"
)

// chartData is a chart for the scripts.
type chartData struct {
	ID string `json:"id"`
	document.Chart
}

// policyData lists the names of the document that a policy allows; null: all.
type policyData struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Cipher []string `json:"cipher"`
	MAC    []string `json:"mac"`
	Kex    []string `json:"kex"`
}

func policies(algorithms []document.Algorithm) []policyData {
	var out []policyData
	for _, p := range alg.Policies() {
		d := policyData{Name: p.Name, Title: p.Title}
		lists := map[alg.Kind]*[]string{alg.Cipher: &d.Cipher, alg.MAC: &d.MAC, alg.Kex: &d.Kex}
		silent := map[alg.Kind]bool{alg.Cipher: p.Ciphers == nil, alg.MAC: p.MACs == nil, alg.Kex: p.Kex == nil}
		for kind, list := range lists {
			if !silent[kind] {
				*list = []string{}
			}
		}
		for _, a := range algorithms {
			if list := lists[a.Kind]; list != nil && !silent[a.Kind] && p.Allows(a.Kind, a.Name) {
				*list = append(*list, a.Name)
			}
		}
		out = append(out, d)
	}
	return out
}
