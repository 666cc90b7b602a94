package benchtest

import "runtime/debug"

// Simulations make much garbage and hold little: a sixth of their CPU time went into collecting it.
func init() { debug.SetGCPercent(400) }
