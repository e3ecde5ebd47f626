package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var oddTextTests = []ruleTest{
	testMSG_2_OddTextsAreNotTakenForEachOther,
	testSCHED_8_OthersDoNotHideAnID,
}

// oddTexts are legal ids that a store might take for each other where it puts one beside something else: with what may
// separate the two, and with what may follow it, in themselves.
func oddTexts() []string {
	texts := []string{
		"\x00", "\x00\x00", "\x01", "\x01\x01", "\x01\x02", "\x00\x01", "\x01\x00", strings.Repeat("\x00", 128), strings.Repeat("\x01", 128),
		":", "::", "a:", ":a", "1:a", "a:b", "a|b", "a/b", "a b", " ", "{a}", "*", "[a]", "%z", "-", "+", "(a", "0", "a0", "\n", "\x7f", "\uffff", "\ufffd",
		strings.Repeat("\U0001D11E", 64), strings.Repeat("\U0001D11E", 63) + "\x00",
		"a", "a\x00", "a\x00\x00", "a\x01", "a\x01\x01", "a\x01\x02", "a\x00b", "a\x00a", "a\x00t", "a\x00:1",
	}
	for number := range 3 { // as long as the numbers that follow an id, and the same as the first ones
		digits := fmt.Sprintf("%016d", number)
		texts = append(texts, digits, "a"+digits, "a\x00"+digits, "a\x00a"+digits, "a\x00"+digits+":1", "a\x00s"+digits, "a\x00"+digits+"\x00"+digits)
	}
	return texts
}

// Every id is itself and no other, wherever it stands: as that of scheduled messages, of sessions, of partitions, of
// calls.
func testMSG_2_OddTextsAreNotTakenForEachOther(t *testing.T, h *fixture) {
	texts := oddTexts()
	h.create(detectsDuplicates, sharesKeys)
	for i, id := range texts {
		for j, partition := range []string{"", "\x00b", id} {
			m := text(id)
			m.PartitionKey = partition
			h.same(h.sendAll(m), []semantics.Stored{stored(int64(3*i + j + 1))})
			again := text(id)
			again.PartitionKey = partition
			h.same(h.sendAll(again), []semantics.Stored{duplicate(int64(3*i + j + 1))})
		}
	}
	h.createNamed("once")
	for _, id := range texts {
		h.same(h.sendOnce(semantics.ToQueue("once"), id, text("m")).Repeated, false)
	}
	for i, id := range texts {
		again := h.sendOnce(semantics.ToQueue("once"), id, text("m"))
		h.same([]any{again.Repeated, again.Results[0].SequenceNumber}, []any{true, int64(i + 1)})
	}
	h.createNamed("later")
	var scheduled []*semantics.Message
	for _, id := range texts {
		scheduled = append(scheduled, later(id, h.in(time.Hour)), later(id, h.in(time.Hour)))
	}
	h.ok(second(h.broker.Send(t.Context(), semantics.ToQueue("later"), scheduled)))
	for _, id := range texts {
		n, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("later"), nil, []string{id})
		if err != nil || n != 2 {
			t.Errorf("cancel of %q: %d, %v", id, n, err)
		}
	}
	h.sameTextsInSessions(texts)
}

// sameTextsInSessions sends each session one message that can be had, one that is deferred, one that is scheduled, one
// lock and a state.
func (h *fixture) sameTextsInSessions(texts []string) {
	h.t.Helper()
	ctx := h.t.Context()
	h.createNamed("tales", hasSessions, sessionInFlight(10))
	tales := semantics.Source{Path: "tales"}
	sources := map[string]semantics.Source{}
	for _, id := range texts {
		h.sendToQueue(tales, part(id, "deferred"), part(id, "locked"), part(id, "there"), of(id, later("later", h.in(time.Hour))))
		sources[id] = h.acceptOf(tales, id)
	}
	for _, id := range texts {
		source := sources[id]
		h.setAside(source, h.receive(source, 1)...)
		locked := h.receive(source, 1)
		h.same(locked[0].SessionID, id)
		h.setState(source, []byte(id))
	}
	for _, id := range texts {
		var ids []string
		for _, m := range h.peek(sources[id]) {
			h.same(m.SessionID, id)
			ids = append(ids, m.MessageID)
		}
		slices.Sort(ids)
		h.same(ids, []string{"deferred", "later", "locked", "there"})
		h.same(string(h.state(sources[id]).Data), id)
	}
	var listed []string
	for token, isFirst := "", true; token != "" || isFirst; isFirst = false {
		rows, next, err := h.broker.ListSessions(ctx, tales.Path, 7, token, semantics.SessionFilter{})
		h.ok(err)
		for _, row := range rows {
			listed = append(listed, row.ID)
			h.same([]int64{row.Available, row.Locked, row.Deferred, row.Scheduled}, []int64{1, 1, 1, 1})
		}
		token = next
	}
	slices.Sort(texts)
	h.same(listed, texts)
}

// However many ids begin as another one does with what follows it, that one is found.
func testSCHED_8_OthersDoNotHideAnID(_ *testing.T, h *fixture) {
	h.create()
	batch := []*semantics.Message{later("a", h.in(time.Hour))}
	for i := range 1500 {
		batch = append(batch, later(fmt.Sprintf("a\x00%016d", i), h.in(time.Hour)), later(fmt.Sprintf("a\x00!%d", i), h.in(time.Hour)))
	}
	h.send(batch...)
	n, err := h.cancelIDs("a")
	h.ok(err)
	h.same(n, 1)
	h.same(h.counts(), semantics.Runtime{Scheduled: 3000})
}
