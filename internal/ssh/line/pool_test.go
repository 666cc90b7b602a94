package line

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a Line that ends when it is closed.
type fake struct {
	Line
	end  context.CancelFunc
	done <-chan struct{}
}

func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) Close() error          { f.end(); return nil }

// maker makes lines, each in a second.
type maker struct {
	made atomic.Int32
	fail error
}

func (m *maker) make() (Line, error) {
	m.made.Add(1)
	if time.Sleep(time.Second); m.fail != nil {
		return nil, m.fail
	}
	ctx, end := context.WithCancel(context.Background())
	return &fake{end: end, done: ctx.Done()}, nil
}

// TestPool: a place has one line, whoever needs it, as long as the line lives and was used lately.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, m := Pool[string]{Idle: time.Minute}, &maker{}
		get := func(place string, made int32) (Line, func()) {
			t.Helper()
			l, put, err := p.Get(t.Context(), place, m.make)
			if err != nil || m.made.Load() != made {
				t.Fatalf("%s: %d were made, %v", place, m.made.Load(), err)
			}
			return l, put
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := p.Get(impatient, "a", m.make); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		one, put := get("a", 1)
		same, again := get("a", 1)
		if same != one {
			t.Error("two lines to one place")
		}
		again()
		again() // counts once
		get("b", 2)
		time.Sleep(2 * time.Minute)
		get("a", 2)
		put()
		one.Close() // is lost
		synctest.Wait()
		_, put = get("a", 3)
		put()
		time.Sleep(30 * time.Second)
		idle, put := get("a", 3)
		time.Sleep(2 * time.Minute)
		put()
		time.Sleep(2 * time.Minute)
		select {
		case <-idle.Done():
		default:
			t.Error("a line that nobody uses is kept")
		}
		last, _ := get("a", 4)
		p.Close()
		<-last.Done()
		if _, _, err := p.Get(t.Context(), "a", m.make); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestPoolMemory: a failure is shared as long as it is remembered, and no longer.
func TestPoolMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for memory, tries := range map[time.Duration][3]int32{0: {1, 2, 3}, time.Minute: {1, 1, 2}} {
			p, m := Pool[int]{Memory: func(error) time.Duration { return memory }}, &maker{fail: errors.New("no")}
			for _, want := range tries {
				if _, _, err := p.Get(t.Context(), 1, m.make); err != m.fail || m.made.Load() != want {
					t.Errorf("memory %v: %v, %d were tried, want %d", memory, err, m.made.Load(), want)
				}
				time.Sleep(40 * time.Second)
			}
			p.Close()
		}
	})
}
