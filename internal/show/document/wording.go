package document

import (
	"slices"

	"sshpace/internal/bench/compare"
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

// comparedBy names the quantity of a comparison: cells, with their speed, or logins, with time.
func comparedBy(c *compare.Comparison, by rank.By, speed string) string {
	switch {
	case by == rank.Throughput:
		return speed
	case c.ClientAlone():
		return costOf(clientAlone)
	}
	return costOf(bothSidesWord)
}

func bulkBasis(c *compare.Comparison) string { return comparedBy(c, c.By, string(rank.Throughput)) }

func kexBasis(c *compare.Comparison) string { return comparedBy(c, c.KexBy, "time") }
