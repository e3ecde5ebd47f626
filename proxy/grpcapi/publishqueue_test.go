package grpcapi

import (
	"errors"
	"testing"
	"testing/synctest"
)

func TestSEND_3_ReadsAheadWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newPublishQueue(3, 100)
		done := make(chan bool, 10)
		put := func(bytes int) { go func() { done <- a.put(t.Context(), publication{bytes: bytes}) }() }
		wants := func(what string, n int) {
			t.Helper()
			synctest.Wait()
			if got := len(done); got != n {
				t.Fatalf("%s: %d were put, want %d", what, got, n)
			}
			for range n {
				<-done
			}
		}
		put(1000)
		wants("one of any size", 1)
		put(1)
		wants("more bytes", 0)
		if taken, _ := a.take(10); len(taken) != 1 || taken[0].bytes != 1000 {
			t.Fatalf("took %v", taken)
		}
		wants("the one that waited", 1)
		put(1)
		wants("a second", 1)
		put(1)
		wants("a third", 1)
		put(1)
		wants("one too many", 0)
		if taken, _ := a.take(2); len(taken) != 2 {
			t.Fatalf("took %v", taken)
		}
		wants("the one that waited", 1)
	})
}

func TestSEND_3_NothingComesInAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newPublishQueue(1, 100)
		if !a.put(t.Context(), publication{id: "1"}) {
			t.Fatal("the first was not put")
		}
		waiting := make(chan bool, 1)
		go func() { waiting <- a.put(t.Context(), publication{id: "2"}) }()
		synctest.Wait()
		first, second := errors.New("first"), errors.New("second")
		a.close(first)
		a.close(second)
		if <-waiting || a.put(t.Context(), publication{id: "3"}) {
			t.Error("something came in")
		}
		if taken, err := a.take(10); len(taken) != 1 || taken[0].id != "1" || err != nil {
			t.Errorf("got %v, %v", taken, err)
		}
		for range 2 {
			if taken, err := a.take(10); len(taken) != 0 || !errors.Is(err, first) {
				t.Errorf("got %v, %v", taken, err)
			}
		}
	})
}
