package storetest

import (
	"fmt"
	"testing"
)

var partitionAnswerTests = []ruleTest{
	testPART_4_OneAnswerOfLargeMessages,
}

// An answer with messages of several partitions is no larger than one of a single partition, wherever the receive
// begins; what does not fit is not taken, and not counted as delivered.
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
