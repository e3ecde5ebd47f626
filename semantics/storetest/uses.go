package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// useTests are about the uses that rules must serve.
var useTests = []ruleTest{
	testTTL_1_NothingIsLeftOfAPartialRun,
	testTTL_16_EveryJobIsDoneOrLate,
	testMSG_18_PositionIsTheDistanceFromTheStart,
}

func testTTL_1_NothingIsLeftOfAPartialRun(_ *testing.T, h *fixture) {
	h.create(livesFor(10 * time.Second))
	h.send(text("locked by a client that crashes"), text("given back"), text("given back for later"), text("never received"))
	h.send(lasting("with a lifetime of its own", 1000*ms))
	got := h.receive(orders, 3)
	h.abandon(orders, got[1])
	h.abandonFor(time.Hour, orders, got[2])
	h.Advance(1000*ms - ms)
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4, 5)
	h.Advance(ms)
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4)
	h.Advance(10*time.Second - 1000*ms)
	h.wantNumbers(h.peek(orders), 1)
	h.Advance(lock)
	h.same(h.runtime(), semantics.Runtime{}) // size and dead letters too
	h.wantNumbers(h.peek(orders))
	h.wantNumbers(h.peek(deadOrders))
	h.send(text("of the next run")) // which starts clean
	h.wantNumbers(h.receive(orders, 10), 6)
	h.receiveNone(deadOrders)
}

// A website hands jobs to workers. While the clock moves on, jobs are taken and expire; in the end each is either done,
// or late and on its way by another queue, and the website has one reply to it that says which.
func testTTL_16_EveryJobIsDoneOrLate(t *testing.T, h *fixture) {
	h.races()
	const (
		deadline             = 8 * time.Second
		calm, spike          = 6, 60
		workers, jobsEach    = 3, 4
		result, takesLonger  = "result", "takes longer"
		jobName, slow, dying = "job %d", "job 7", "job 8"
	)
	h.create(buriesExpired)
	h.createNamed("replies")
	h.createNamed("late")
	var jobs []string
	ask := func(n int) {
		var batch []*semantics.Message
		for range n {
			job := lasting(fmt.Sprintf(jobName, len(jobs)+1), deadline)
			job.ReplyTo = "replies"
			batch, jobs = append(batch, job), append(jobs, job.MessageID)
		}
		h.send(batch...)
	}
	put := func(b *broker.Broker, queue string, m *semantics.Message) {
		if _, err := b.Send(t.Context(), semantics.ToQueue(queue), []*semantics.Message{m}); err != nil {
			t.Errorf("send to %s: %v", queue, err)
		}
	}
	reply := func(b *broker.Broker, job *semantics.Received, subject string) {
		put(b, job.ReplyTo, &semantics.Message{CorrelationID: job.MessageID, Subject: subject})
	}
	work := func(b *broker.Broker, most int) {
		for range most {
			got, err := b.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1})
			if err != nil || len(got.Messages) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			codes, err := b.Complete(t.Context(), orders, tokensOf(got.Messages...))
			if err != nil || codes[0] != "" {
				t.Errorf("complete: %v, %v", codes, err)
				return
			}
			reply(b, got.Messages[0], result)
		}
	}
	watch := func() (found int) {
		expired := h.receive(deadOrders, 10)
		for _, job := range expired {
			h.same(job.DeadLetterReason, "TTLExpiredException")
			put(h.broker, "late", &semantics.Message{MessageID: job.MessageID, Body: job.Body, BodyKind: job.BodyKind})
			reply(h.broker, job, takesLonger)
		}
		if len(expired) > 0 {
			h.complete(deadOrders, expired...)
		}
		return len(expired)
	}

	ask(calm)
	work(h.broker, calm+1)
	h.same(watch(), 0)
	ask(spike)
	h.Advance(deadline - ms)
	inTime := h.receive(orders, 2) // one receiver will be slow, the other crashes
	brokers := h.sidecars()
	var busy sync.WaitGroup
	for i := range workers {
		busy.Go(func() { work(brokers[i%len(brokers)], jobsEach) })
	}
	for range 4 {
		h.Advance(ms)
		watch()
	}
	busy.Wait()
	for watch() > 0 { // until there are no more
	}
	h.wantCounts(0, 2, 0)
	h.complete(orders, inTime[0]) // past the deadline, but taken before it
	reply(h.broker, inTime[0], result)
	h.Advance(lock)
	h.same(watch(), 1)
	h.same(h.runtime(), semantics.Runtime{})

	replies, late := map[string][]string{}, map[string][]string{}
	for _, m := range h.peek(semantics.Source{Path: "replies"}) {
		replies[m.CorrelationID] = append(replies[m.CorrelationID], m.Subject)
	}
	for _, m := range h.peek(semantics.Source{Path: "late"}) {
		late[m.MessageID] = append(late[m.MessageID], string(m.Body))
	}
	h.same(len(replies), len(jobs))
	for i, job := range jobs {
		wantReply, wantLate := []string{result}, []string(nil)
		if len(late[job]) > 0 {
			wantReply, wantLate = []string{takesLonger}, []string{job}
		}
		h.same(replies[job], wantReply)
		h.same(late[job], wantLate)
		if i < calm {
			h.same(wantReply, []string{result})
		}
	}
	h.same([]int{len(late[slow]), len(late[dying])}, []int{0, 1})
	if least := spike - 1 - workers*jobsEach; len(late) < least {
		t.Errorf("%d jobs were late, want at least %d", len(late), least)
	}
}

func testMSG_18_PositionIsTheDistanceFromTheStart(_ *testing.T, h *fixture) {
	part := func(sequence, label string) *semantics.Message {
		return &semantics.Message{CorrelationID: sequence, Subject: label}
	}
	starts, positions := map[string]int64{}, map[string][]int64{}
	read := func(m *semantics.Received) {
		switch m.Subject {
		case "start":
			starts[m.CorrelationID] = m.SequenceNumber
		case "content":
			positions[m.CorrelationID] = append(positions[m.CorrelationID], m.SequenceNumber-starts[m.CorrelationID])
		}
	}
	h.create()
	h.send(part("", "without a consumer"), part("", "without a consumer"))
	h.send(part("alone", "start"))
	h.send(part("alone", "content"), part("alone", "content"))
	h.send(part("alone", "content"))
	h.send(part("alone", "end"))
	h.send(part("a", "start"), part("b", "start"), part("a", "content"), part("b", "content"), part("b", "content"))
	h.send(part("a", "content"), part("a", "content"), part("b", "end"), part("a", "end"))
	for range 16 {
		h.abandon(orders, h.receiveOne(orders)) // a message given back keeps its position
		got := h.receiveOne(orders)
		read(got)
		if got.Subject == "content" && got.CorrelationID == "b" {
			h.deadLetter(got)
			continue
		}
		h.complete(orders, got)
	}
	h.receiveNone(orders)
	// Exact where no other messages came between; it rises where they did.
	h.same(positions, map[string][]int64{"alone": {1, 2, 3}, "a": {2, 5, 6}, "b": {2, 3}})
	delete(positions, "b")
	for _, m := range h.receive(deadOrders, 10) {
		read(m)
	}
	h.same(positions["b"], []int64{2, 3}) // among the dead letters as well
}
