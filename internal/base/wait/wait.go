// Package wait waits for a time, or until nobody wants to wait any more.
package wait

import (
	"context"
	"time"
)

// For waits; false says that ctx has ended.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Until waits for a point in time; false says that ctx has ended.
func Until(ctx context.Context, at time.Time) bool { return For(ctx, time.Until(at)) }
