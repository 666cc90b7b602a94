package channel

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sent sends size bytes to a server that opens the channel with a window and makes room again for
// as much as answer says, given what has come and was not answered. It returns how much was under
// way at most, and how long that took. Time is that of a bubble (testing/synctest): a busy machine
// does not slow the server.
func sent(t *testing.T, window uint32, size int, answer func(waiting int) int) (most int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		start := time.Now()
		most = sentInBubble(window, size, answer)
		took = time.Since(start)
	})
	return most, took
}

func sentInBubble(window uint32, size int, answer func(waiting int) int) (most int) {
	var mu sync.Mutex
	room := sync.Cond{L: &mu}
	p := pace{}
	p.granted(window)
	came := make(chan int, 1<<16)
	var server sync.WaitGroup
	defer server.Wait()
	server.Go(func() {
		waiting := 0
		for n := range came {
			waiting += n
			for len(came) > 0 {
				waiting += <-came
			}
			if n := answer(waiting); n > 0 {
				waiting -= n
				mu.Lock()
				p.arrive(n)
				room.Broadcast()
				mu.Unlock()
			}
		}
	})
	mu.Lock()
	defer mu.Unlock()
	for size > 0 {
		for p.full() {
			p.wait(&room)
		}
		p.send(maxPacket)
		most = max(most, p.inFlight)
		came <- maxPacket
		size -= maxPacket
	}
	p.stop()
	close(came)
	return most
}

// A server that reads slowly never has much to keep.
func TestPaceOfSlowServer(t *testing.T) {
	most, _ := sent(t, 2<<20, 4<<20, func(waiting int) int {
		if waiting <= 3*maxPacket { // as sshd does
			return 0
		}
		time.Sleep(time.Duration(waiting) * time.Second / 20e6)
		return waiting
	})
	if most > 1<<20 {
		t.Errorf("%d bytes were under way", most)
	}
}

// To a server that makes room only after a mebibyte, all goes nevertheless.
func TestPaceOfServerThatWaits(t *testing.T) {
	most, _ := sent(t, 2<<20, 16<<20, after(1<<20))
	if most < 1<<20 {
		t.Errorf("%d bytes were under way", most)
	}
}

// after makes room for all that has come, once that is so much.
func after(size int) func(waiting int) int {
	return func(waiting int) int {
		if waiting < size {
			return 0
		}
		return waiting
	}
}

// A window that has grown beyond any of sshd's is used up where the server waits for that.
func TestPaceOfWindowThatGrew(t *testing.T) {
	most, _ := sent(t, 2<<20, 64<<20, after(24<<20))
	if most < 24<<20 {
		t.Errorf("%d bytes were under way", most)
	}
}

// A window that is larger than sshd's from the beginning is another server's: nothing waits.
func TestPaceOfLargeWindow(t *testing.T) {
	if _, took := sent(t, 64<<20, 96<<20, after(32<<20)); took > 0 {
		t.Errorf("it took %s", took)
	}
}

// Far away, all that a window of sshd's allows is under way.
func TestPaceOfFarServer(t *testing.T) {
	var p pace
	for range 20 {
		for !p.full() && p.inFlight < 2<<20 {
			p.send(maxPacket)
		}
		for i := range p.pieces {
			p.pieces[i].sent = time.Now().Add(-50 * time.Millisecond)
		}
		p.arrive(p.inFlight)
	}
	if p.limit < 2<<20 {
		t.Errorf("%d bytes may be under way", p.limit)
	}
}
