package document

import (
	"slices"

	"sshpace/internal/bench/rank"
)

// costOf names the side of a CPU cost.
func costOf(side string) string { return "CPU cost of " + side }

const (
	bothSidesWord = "both sides"
	clientAlone   = "the client"
)

// bulkOrder names the order of the cells.
func bulkOrder(r *rank.Ranking) string {
	switch {
	case r.By == rank.Throughput:
		return string(rank.Throughput)
	case !slices.ContainsFunc(r.Bulk, func(c rank.Cell) bool { return c.Server.Known() }):
		return costOf(clientAlone)
	case r.OneCore():
		return costOf(bothSidesWord)
	}
	return costOf("the costlier side")
}

// kexOrder names the order of the key exchanges.
func kexOrder(r *rank.Ranking) string {
	switch {
	case r.KexBy == rank.Throughput:
		return "login time"
	case len(r.Kex) > 0 && !r.Kex[0].Server.Known():
		return costOf(clientAlone)
	}
	return costOf(bothSidesWord)
}
