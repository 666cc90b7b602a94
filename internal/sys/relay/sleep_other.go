//go:build !linux

package relay

import (
	"context"
	"time"
)

// punctual does nothing: what measures runs on Linux.
func punctual() {}

// sleepUntil sleeps; false when life ends first.
func sleepUntil(life context.Context, when time.Time) bool {
	timer := time.NewTimer(time.Until(when))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-life.Done():
		return false
	}
}
