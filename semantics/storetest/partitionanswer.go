package storetest

import (
	"fmt"
	"testing"
)

var partitionAnswerTests = []ruleTest{
	testPART_4_OneAnswerOfLargeMessages,
}

// A receive from several partitions returns at most as many bytes as a receive from one partition, whichever partition
// it asks first. A message that does not fit is not locked, and its delivery count does not rise.
func testPART_4_OneAnswerOfLargeMessages(t *testing.T, h *fixture) {
	const large = 200_000
	h.spread(4, deliversAtMost(1))
	for i := range 60 {
		m := keyed(fmt.Sprint(i), fmt.Sprint("key", i%11))
		m.Body = make([]byte, large)
		h.send(m)
	}
	left := 60
	for left > 0 {
		got := h.receive(orders, 100)
		if len(got) == 0 {
			t.Fatalf("received nothing, %d are left", left)
		}
		h.wantOneAnswer(got)
		h.wantLocked(len(got))
		h.complete(orders, got...)
		left -= len(got)
	}
}
