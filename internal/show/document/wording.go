package document

import (
	"slices"

	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
)

// costOf says whose CPU cost is meant.
func costOf(side string) string { return "CPU cost of " + side }

const (
	bothSidesWord = "both sides"
	clientAlone   = "the client"
)

// bulkOrder says by what the cells are ordered.
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

// kexOrder says by what the key exchanges are ordered.
func kexOrder(r *rank.Ranking) string {
	switch {
	case r.KexBy == rank.Throughput:
		return "login time"
	case len(r.Kex) > 0 && !r.Kex[0].Server.Known():
		return costOf(clientAlone)
	}
	return costOf(bothSidesWord)
}

// comparedBy says what a comparison relates: cells, with their speed, or logins, with time.
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
