package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

func (s *swept) keyOf(path, part string) string {
	return "sb:{" + s.namespace + "/" + path + "}:" + part
}

// awaitLog waits until a stream of an entity has so many messages.
func (s *swept) awaitLog(t *testing.T, path, part string, want int64) {
	t.Helper()
	awaitLength(t, s.raw, s.keyOf(path, part), want)
}

// What is sent to a queue that forwards goes on at once, hop by hop, without anybody who looks at it; and so does what
// was there before.
func TestFWD_1_ForwardedWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, messagesOf(300, semantics.Message{})...)
	sweeping(t, s.Store)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace})
	sweeping(t, other) // two at once do no harm
	must(t, makeQueue(t, s, "attic"))
	must(t, makeQueue(t, s, "archive", func(o *semantics.Options) { o.ForwardTo = "attic" }))
	options := semantics.Options{ForwardTo: "Archive"}
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"forwardTo"}); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, "attic", "log", 300)
	began := time.Now()
	for i := range 20 {
		s.send(t, &semantics.Message{MessageID: fmt.Sprint(300 + i)})
		s.awaitLog(t, "attic", "log", int64(301+i))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("20 messages took %s to go on", took)
	}
	found, err := s.Peek(t.Context(), attic, 71, 250, semantics.ShowAll)
	must(t, err)
	for i, m := range found {
		if m.MessageID != fmt.Sprint(70+i) || m.Forwarded.Hops != 2 {
			t.Fatalf("message %d is %q after %d hops", m.SequenceNumber, m.MessageID, m.Forwarded.Hops)
		}
	}
	for _, path := range []string{"orders", "archive"} { // nobody is left to be called
		await(t, func() bool {
			return s.raw.HExists(t.Context(), s.keyOf(path, "entity"), "forwarder_called").Val() == false
		})
	}
	auditAll(t, s, "orders", "archive", "attic")
}

// await waits until something is so.
func await(t *testing.T, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it never came to be so")
		}
	}
}

// Every way in which something becomes available brings it on its way: sends, copies, activations, resubmits, the ends
// of locks and delays, and for dead letters every way in which they die.
func TestFWD_1_WhateverBecomesAvailable(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	must(t, makeQueue(t, s, "archive"))
	must(t, makeQueue(t, s, "attic"))
	s.create(t, func(o *semantics.Options) {
		o.ForwardDeadLetteredMessagesTo, o.LockDuration, o.MaxDeliveryCount = "attic", 200*time.Millisecond, 1
		o.DeadLetteringOnMessageExpiration = true
	})
	sweeping(t, s.Store)
	archived, dead := int64(0), int64(0)
	arrives := func(what string) {
		t.Helper()
		archived++
		s.awaitLog(t, "archive", "log", archived)
		t.Log(what)
	}
	dies := func(what string) {
		t.Helper()
		dead++
		s.awaitLog(t, "attic", "log", dead)
		t.Log(what)
	}
	m := &semantics.Message{MessageID: "m"}
	must(t, publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, "eu")}).Err)
	arrives("a copy")
	must(t, publish(t, s, semantics.Publication{Message: &semantics.Message{MessageID: "later", ScheduledAt: soon(t, s.raw)}}).Err)
	arrives("an activated copy")
	reason := "none"
	letter := semantics.Copy{Subscription: "eu", Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}}
	must(t, publish(t, s, semantics.Publication{Message: m, Copies: []semantics.Copy{letter}}).Err)
	deadEU := semantics.Source{Path: of("eu").Path, SubQueue: semantics.DeadLetterQueue}
	if _, err := s.Resubmit(t.Context(), deadEU, of("eu").Path, []semantics.Resubmission{{SequenceNumber: 3, MessageID: "m"}}, false); err != nil {
		t.Fatal(err)
	}
	arrives("a letter that was sent again")

	s.send(t, m)
	receiveOne(t, s)
	dies("a lock that ended")
	s.send(t, m)
	codes, err := s.Abandon(t.Context(), orders, []semantics.LockToken{receiveOne(t, s).LockToken}, semantics.AbandonOptions{})
	if err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	dies("a last delivery")
	s.send(t, m)
	deadLetter(t, s, 1)
	dies("a letter by its receiver")
	life := 20 * time.Millisecond
	s.send(t, &semantics.Message{MessageID: "short", TimeToLive: &life})
	dies("a lifetime")

	options := semantics.Options{ForwardTo: "archive"}
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"forwardTo"}); err != nil {
		t.Fatal(err)
	}
	s.send(t, m)
	arrives("a message")
	s.send(t, &semantics.Message{MessageID: "later", ScheduledAt: soon(t, s.raw)})
	arrives("an activated message")
	auditAll(t, s, "orders", "archive", "attic", "news")
}

// What no subscription gets goes where UnmatchedTo says, and what cannot go there can be read.
func TestTOPIC_3_UnmatchedWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	must(t, makeQueue(t, s, "archive", func(o *semantics.Options) { o.MaxMessageCount = 1 }))
	must(t, createTopic(t, s, func(o *semantics.Options) { o.UnmatchedTo = "archive" }))
	sweeping(t, s.Store)
	for i := range 2 {
		m := &semantics.Message{MessageID: fmt.Sprint(i)}
		must(t, publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, semantics.UnmatchedSubscription)}).Err)
	}
	s.awaitLog(t, "archive", "log", 1)
	s.awaitLog(t, "news", "subscriptions/$unmatched:transfer:dead_log", 1)
	auditAll(t, s, "news", "archive")
	if found, _, err := s.ListEntities(t.Context(), semantics.SubscriptionKind, "news", "", 9); err != nil || len(found) > 0 {
		t.Errorf("listed: %v %v", found, err)
	}
}

// A call for a forwarder that was lost with a sidecar is made up for by the look at all entities, and a transfer that
// was left under way is carried on although its source forwards nowhere any more.
func TestFWD_1_LostCallIsFound(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	must(t, makeQueue(t, s, "archive"))
	s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	s.send(t, messagesOf(2, semantics.Message{})...)
	begin(t, s, orders, "archive", 1)
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, []string{"forwardTo"}); err != nil {
		t.Fatal(err)
	}
	m := &semantics.Message{MessageID: "m"}
	must(t, publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, "eu")}).Err)
	s.raw.Del(t.Context(), "sb:{"+s.namespace+"}:alarms")
	sweeping(t, s.Store)
	s.awaitLog(t, "archive", "log", 2)
	await(t, func() bool { return s.raw.HExists(t.Context(), s.key("entity"), "forwarder_called").Val() == false })
	if got := ids(t, s, orders); !slices.Equal(got, []string{"1"}) {
		t.Errorf("left: %q", got)
	}
	auditAll(t, s, "orders", "archive", "news")
}

// stuck is a broker that forwards nothing until it is told to.
type stuck struct {
	semantics.Upkeep
	tries  atomic.Int64
	mended atomic.Bool
}

func (u *stuck) Forward(ctx context.Context, source semantics.Source) error {
	u.tries.Add(1)
	if !u.mended.Load() {
		return errors.New("not now")
	}
	return u.Upkeep.Forward(ctx, source)
}

// What cannot be forwarded now is tried again about every second, keeps nobody from their work, and makes nobody who
// receives look for it again and again.
func TestFWD_8_TriedAgainLater(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	must(t, makeQueue(t, s, "archive"))
	s.create(t, func(o *semantics.Options) {
		forwards(o)
		o.ForwardTo, o.DeadLetteringOnMessageExpiration = "", true
	})
	s.send(t, messagesOf(2, semantics.Message{})...)
	deadLetter(t, s, 2)
	begin(t, s, deadOrders, "attic", 2)
	broker := brokerOver(s)
	defer broker.Close()
	upkeep, done := &stuck{Upkeep: broker}, make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(done); s.Sweep(ctx, upkeep) }()
	await(t, func() bool { return upkeep.tries.Load() > 0 })
	began := time.Now()
	life := 10 * time.Millisecond
	for i := range int64(3) {
		s.send(t, &semantics.Message{MessageID: "short", TimeToLive: &life})
		s.awaitLog(t, "orders", "dead_log", 3+i)
	}
	for _, source := range []semantics.Source{orders, deadOrders} {
		for { // what expired is there for whoever comes first
			batch, err := s.Receive(t.Context(), source, 9, semantics.RegisterIfEmpty)
			must(t, err)
			if len(batch.Messages) == 0 {
				if batch.RecheckAfter < 500*time.Millisecond {
					t.Errorf("%s: whoever waits looks again after %s", source, batch.RecheckAfter)
				}
				break
			}
		}
	}
	await(t, func() bool { return upkeep.tries.Load() >= 3 })
	if tries, most := upkeep.tries.Load(), 6+4*int64(time.Since(began)/time.Second); tries > most {
		t.Errorf("%d tries in %s", tries, time.Since(began))
	}
	must(t, makeQueue(t, s, "attic"))
	upkeep.mended.Store(true)
	s.awaitLog(t, "orders", "transfer:dead_log", 2) // they were to go to an attic that was not there yet
	stop()
	<-done
	auditAll(t, s, "orders", "attic")
}

// Transfer dead letters go when they were kept long enough, although nobody looks, and even if the alarm for it was
// lost.
func TestTTL_19_TransferDeadLettersGoByThemselves(t *testing.T) {
	t.Parallel()
	for _, isLost := range []bool{false, true} {
		t.Run(fmt.Sprint(isLost), func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			must(t, makeQueue(t, s, "archive"))
			s.create(t, func(o *semantics.Options) { o.ForwardTo, o.DeadLetterTTL = "archive", 300*time.Millisecond })
			s.send(t, messagesOf(2, semantics.Message{})...)
			transfer := begin(t, s, orders, "archive", 9)
			must(t, s.EndTransfer(t.Context(), transfer, []semantics.Fate{dead("r", false), dead("r", false)}))
			if n := s.raw.XLen(t.Context(), s.key("transfer:dead_log")).Val(); n != 2 {
				t.Fatalf("%d transfer dead letters, want 2", n)
			}
			if isLost {
				s.raw.Del(t.Context(), "sb:{"+s.namespace+"}:alarms")
			}
			sweeping(t, s.Store)
			s.awaitLog(t, "orders", "transfer:dead_log", 0)
			if !isLost {
				auditAll(t, s, "orders")
			}
		})
	}
}

// What a source has forwarded is forgotten by its destination when the source is gone, but not at once; of a source
// that is there it is kept.
func TestFWD_1_ArrivalsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll()
	s.ok("create", createTopic(t, s.Store))
	s.make("gone", func(o *semantics.Options) { o.ForwardTo = "archive" })
	s.make("anew", func(o *semantics.Options) { o.ForwardTo = "archive" })
	for _, path := range []string{"orders", "gone", "anew"} {
		if _, err := s.Send(t.Context(), path, messagesOf(1, semantics.Message{})); err != nil {
			t.Fatal(err)
		}
		transfer := s.begin(semantics.Source{Path: path}, "archive", 9)
		s.arrive(transfer)
		s.end(transfer, gone(1)...)
	}
	for _, path := range []string{"gone", "anew"} {
		s.ok("delete", s.DeleteEntity(t.Context(), semantics.QueueKind, path))
	}
	s.make("anew", func(o *semantics.Options) { o.ForwardTo = "archive" })
	kept := func() string {
		var paths []string
		for field := range s.raw.HGetAll(t.Context(), s.keyOf("archive", "arrivals")).Val() {
			paths = append(paths, field[strings.LastIndexByte(field, ':')+1:])
		}
		slices.Sort(paths)
		return strings.Join(paths, " ")
	}
	sweepAll := func() {
		t.Helper()
		note := "sb:{" + s.namespace + "}:whole_sweep"
		s.raw.Del(t.Context(), note)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		broker := brokerOver(s)
		defer broker.Close()
		go func() { defer close(done); s.Sweep(ctx, broker) }()
		await(t, func() bool {
			next, _ := s.raw.HGet(t.Context(), note, "next").Int64()
			return next > s.clock.Now().Add(30*time.Second).UnixMilli()
		})
		stop()
		<-done
	}
	s.clock.Advance(time.Hour - time.Millisecond)
	sweepAll()
	if got := kept(); got != "anew gone orders" {
		t.Errorf("after less than an hour: %s", got)
	}
	s.clock.Advance(time.Millisecond)
	sweepAll()
	if got := kept(); got != "orders" {
		t.Errorf("after an hour: %s", got)
	}
	for field, note := range s.raw.HGetAll(t.Context(), s.keyOf("archive", "arrivals")).Val() {
		if at := strings.Split(note, ":")[2]; at != fmt.Sprint(s.clock.Now().UnixMilli()) {
			t.Errorf("%s is to be looked at again an hour after %s", field, at)
		}
	}
	s.audit("archive", "orders")
}

// No script looks at all the sources that have ever forwarded to a queue, and one look finds thousands that are gone.
func TestFWD_1_ManyArrivalsAreForgottenInSlices(t *testing.T) {
	t.Parallel()
	const sources = 3000
	clock, looks := storetest.NewClock(), atomic.Int64{}
	s := &transfers{t: t, clock: clock, swept: openSwept(t, redisstore.Options{
		Now: clock.Now, Observe: func(script, _ string, _ time.Duration) {
			if script == "old_arrivals" {
				looks.Add(1)
			}
		},
	})}
	s.make("archive")
	var fields []any
	for i := range sources {
		at := clock.Now().Add(-time.Hour * time.Duration(i%2))
		fields = append(fields, fmt.Sprintf("%d::gone-%d", i+1, i), fmt.Sprintf("%d:1:%d:", i+1, at.UnixMilli()))
	}
	must(t, s.raw.HSet(t.Context(), s.keyOf("archive", "arrivals"), fields...).Err())
	broker := brokerOver(s)
	defer broker.Close()
	_, err := s.LookOnce(t.Context(), broker, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
	must(t, err)
	if n := s.raw.HLen(t.Context(), s.keyOf("archive", "arrivals")).Val(); n != sources/2 {
		t.Errorf("%d sources are left, want the %d of less than an hour ago", n, sources/2)
	}
	if n := looks.Load(); n < 4 {
		t.Errorf("%d scripts looked at %d sources", n, sources)
	}
	s.clock.Advance(2 * time.Hour)
	_, err = s.LookOnce(t.Context(), broker, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
	must(t, err)
	if n := s.raw.HLen(t.Context(), s.keyOf("archive", "arrivals")).Val(); n != 0 {
		t.Errorf("%d sources are left", n)
	}
}
