package sched

import (
	"sync"
	"sync/atomic"
)

// Do calls do for 0 to n-1 on the given number of goroutines, and returns when all calls have.
func Do(workers, n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
