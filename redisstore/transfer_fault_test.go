package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// killedAfterAny is killedAfter for the nth script of any name, by a clock or, with nil, that of Redis.
func killedAfterAny(t *testing.T, namespace string, n int, now func() time.Time) (*redisstore.Store, context.Context) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	return redistest.Open(t, redisstore.Options{Namespace: namespace, Now: now, Observe: func(string, string, time.Duration) {
		if n--; n == 0 {
			kill()
		}
	}}), ctx
}

// Wherever a forwarder dies, the next one ends what it began, and every message is where it belongs, once and in order.
func TestFWD_1_ForwarderCutOff(t *testing.T) {
	t.Parallel()
	routes := map[string]struct {
		prepare func(s *swept)
		source  semantics.Source
		want    map[semantics.Source][]string
	}{
		"to a queue": {
			prepare: func(s *swept) {
				must(t, makeQueue(t, s, "archive", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 }))
				s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
				s.send(t, &semantics.Message{MessageID: "a"}, &semantics.Message{MessageID: "big", Body: make([]byte, 2000)}, &semantics.Message{MessageID: "b"})
			},
			source: orders,
			want:   map[semantics.Source][]string{archive: {"a", "b"}, undelivered: {"big"}, orders: {}, deadOrders: {}},
		},
		"to a topic": {
			prepare: func(s *swept) {
				must(t, createTopic(t, s))
				must(t, subscribe(t, s, "eu"))
				s.create(t, func(o *semantics.Options) { o.ForwardTo = "news" })
				s.send(t, messagesOf(3, semantics.Message{})...)
			},
			source: orders,
			want:   map[semantics.Source][]string{of("eu"): {"0", "1", "2"}, undelivered: {}, orders: {}},
		},
		"dead letters": {
			prepare: func(s *swept) {
				must(t, makeQueue(t, s, "attic"))
				s.create(t, func(o *semantics.Options) { o.ForwardDeadLetteredMessagesTo = "attic" })
				s.send(t, messagesOf(3, semantics.Message{})...)
				deadLetter(t, s, 3)
			},
			source: deadOrders,
			want:   map[semantics.Source][]string{attic: {"0", "1", "2"}, undelivered: {}, orders: {}, deadOrders: {}},
		},
		"too many hops": {
			prepare: func(s *swept) {
				must(t, makeQueue(t, s, "archive"))
				s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
				s.send(t, &semantics.Message{MessageID: "a", Forwarded: &semantics.Forwarded{Hops: semantics.MaxForwardHops}}, &semantics.Message{MessageID: "b"})
			},
			source: orders,
			want:   map[semantics.Source][]string{archive: {"b"}, deadOrders: {"a"}, undelivered: {}},
		},
	}
	for name, route := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 1; ; cut++ {
				s := openSwept(t, redisstore.Options{})
				route.prepare(s)
				dying, ctx := killedAfterAny(t, s.namespace, cut, nil)
				broker := brokerOver(dying)
				err := broker.Forward(ctx, route.source)
				broker.Close()
				if err == nil && ctx.Err() == nil {
					if cut < 6 {
						t.Fatalf("it was over after %d scripts: this proves little", cut-1)
					}
					return
				}
				next := brokerOver(s)
				must(t, next.Forward(t.Context(), route.source))
				next.Close()
				for source, want := range route.want {
					if diff := cmp.Diff(want, ids(t, s, source)); diff != "" {
						t.Fatalf("cut off after %d scripts, %s (-want +got):\n%s", cut, source, diff)
					}
				}
				auditAll(t, s, "orders", "archive", "attic", "news")
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// However many forward the same at once, while more comes in, each message arrives once, in order.
func TestFWD_6_SeveralForwardersAtOnce(t *testing.T) {
	t.Parallel()
	const n = 400
	s := openSwept(t, redisstore.Options{})
	must(t, makeQueue(t, s, "archive"))
	s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	all := messagesOf(n, semantics.Message{})
	var work sync.WaitGroup
	sent := make(chan struct{})
	for i := range 3 {
		broker := brokerOver(redistest.Open(t, redisstore.Options{Namespace: s.namespace}))
		t.Cleanup(broker.Close)
		work.Go(func() {
			for isOver := false; !isOver; {
				select {
				case <-sent:
					isOver = true // one more look, at all of it
				default:
				}
				if err := broker.Forward(t.Context(), orders); err != nil {
					t.Errorf("forwarder %d: %v", i, err)
				}
			}
		})
	}
	for some := range slices.Chunk(all, 7) {
		s.send(t, some...)
	}
	close(sent)
	work.Wait()
	found, err := s.Peek(t.Context(), archive, 1, 250, semantics.ShowAll)
	must(t, err)
	more, err := s.Peek(t.Context(), archive, 251, 250, semantics.ShowAll)
	must(t, err)
	found = append(found, more...)
	if len(found) != n {
		t.Fatalf("%d messages have arrived, want %d", len(found), n)
	}
	for i, m := range found {
		if m.MessageID != fmt.Sprint(i) || m.EnqueuedSequenceNumber != int64(i+1) {
			t.Fatalf("message %d is %q, sent as %d", i+1, m.MessageID, m.EnqueuedSequenceNumber)
		}
	}
	auditAll(t, s, "orders", "archive")
}

// Whoever carries on a transfer that was over long ago changes nothing, neither at the destination nor at the source.
func TestFWD_1_StaleForwarder(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll()
	s.send(t, messagesOf(3, semantics.Message{})...)
	stale := s.begin(orders, "archive", 1)
	s.arrive(stale)
	s.end(stale, gone(1)...)
	next := s.begin(orders, "archive", 1)
	if stale.ID == next.ID {
		t.Fatalf("both transfers are %q", next.ID)
	}
	s.end(stale, dead("stale", false))
	if codes := s.arrive(stale); codes[0] != "" {
		t.Errorf("arrived long ago: %v", codes)
	}
	s.arrive(next)
	s.isOvertaken(stale)
	s.end(stale, dead("stale", true))
	if again := s.begin(orders, "archive", 9); cmp.Diff(next, again) != "" {
		t.Errorf("the transfer under way: %s", cmp.Diff(next, again))
	}
	s.end(next, gone(1)...)
	last := s.begin(orders, "archive", 1)
	s.arrive(last)
	s.end(last, gone(1)...)
	s.isOvertaken(next)
	if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("arrived: %q", got)
	}
	if got := ids(t, s, undelivered); len(got) > 0 {
		t.Errorf("not arrived: %q", got)
	}
	s.audit("orders", "archive")
}

// A destination that is deleted and made anew between two steps is another one: nothing of the transfer reaches it,
// nothing is lost that the old one did not have, and the next transfer goes there.
func TestFWD_8_DestinationMadeAnew(t *testing.T) {
	t.Parallel()
	anew := map[string]func(s *transfers){
		"deleted": func(*transfers) {},
		"a queue": func(s *transfers) { s.make("archive") },
		"a topic": func(s *transfers) {
			_, _, err := s.CreateEntity(s.t.Context(), semantics.TopicKind, "archive", semantics.DefaultOptions())
			s.ok("create", err)
		},
	}
	for name, make := range anew {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", name, arrives), func(t *testing.T) {
				t.Parallel()
				s := openTransfers(t)
				s.makeAll()
				s.send(t, messagesOf(3, semantics.Message{})...)
				transfer := s.begin(orders, "archive", 2)
				if arrives {
					s.arrive(transfer)
				}
				s.ok("delete", s.DeleteEntity(t.Context(), semantics.QueueKind, "archive"))
				make(s)
				if _, err := s.Arrive(t.Context(), transfer, 0, onward(transfer), false); !errors.Is(err, semantics.ErrNotYet) {
					t.Errorf("while there is time: %v", err)
				}
				for range 2 {
					if codes := s.arrive(transfer); codes[0] != semantics.EntityNotFound || codes[1] != semantics.EntityNotFound {
						t.Fatalf("arrived at another one: %q", codes)
					}
				}
				s.end(transfer, dead(semantics.ReasonDestinationNotFound, false), dead(semantics.ReasonDestinationNotFound, false))
				next := s.begin(orders, "archive", 9)
				if name == "a queue" && (s.arrive(next)[0] != "" || !slices.Equal(ids(t, s, archive), []string{"2"})) {
					t.Errorf("the next has not arrived: %q", ids(t, s, archive))
				}
				s.audit("orders", "archive")
			})
		}
	}
}

// A transfer of a source that was deleted, and made anew, has nothing to do with those of the new one.
func TestFWD_1_SourceMadeAnew(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll()
	s.send(t, messagesOf(2, semantics.Message{})...)
	old := s.begin(orders, "archive", 2)
	s.arrive(old)
	s.ok("delete", s.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	s.end(old, dead("too late", false), dead("too late", false))
	if lines := dumpOf(t, s.namespace, "orders"); len(lines) > 0 {
		t.Fatalf("left of the source: %v", lines)
	}
	s.make("orders", forwards)
	s.send(t, &semantics.Message{MessageID: "new"})
	transfer := s.begin(orders, "archive", 2)
	s.end(old, dead("too late", true), dead("too late", true))
	if codes := s.arrive(transfer); codes[0] != "" {
		t.Fatal(codes)
	}
	s.arrive(old)
	s.end(transfer, gone(1)...)
	if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "1", "new"}) {
		t.Errorf("arrived: %q", got)
	}
	if got := append(ids(t, s, deadOrders), ids(t, s, undelivered)...); len(got) > 0 {
		t.Errorf("not arrived: %q", got)
	}
	s.audit("orders", "archive")
}

// A source that a failover made forget its last transfers does not use their numbers again: its messages arrive twice,
// but they do arrive.
func TestFWD_1_SourceThatForgets(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll()
	s.send(t, messagesOf(2, semantics.Message{})...)
	keys := s.raw.Keys(t.Context(), s.key("*")).Val()
	kept := map[string]string{}
	for _, key := range keys {
		kept[key] = s.raw.Dump(t.Context(), key).Val()
	}
	for range 3 {
		transfer := s.begin(orders, "archive", 1)
		if len(transfer.Messages) == 0 {
			break
		}
		s.arrive(transfer)
		s.end(transfer, gone(1)...)
	}
	for _, key := range s.raw.Keys(t.Context(), s.key("*")).Val() {
		s.raw.Del(t.Context(), key)
	}
	for key, value := range kept {
		must(t, s.raw.Restore(t.Context(), key, 0, value).Err())
	}
	s.send(t, &semantics.Message{MessageID: "2"})
	s.clock.Advance(time.Second) // what a failover takes at least
	transfer := s.begin(orders, "archive", 9)
	s.arrive(transfer)
	s.end(transfer, gone(3)...)
	if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "1", "0", "1", "2"}) {
		t.Errorf("arrived: %q", got)
	}
	s.audit("orders", "archive")
}

// A step whose answer was lost has taken effect once, and its repetition says so.
func TestERR_6_TransfersAfterLostAnswers(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	ctx := t.Context()
	must(t, makeQueue(t, l.sound, "archive"))
	if _, err := l.sound.Send(ctx, "orders", messagesOf(3, semantics.Message{})); err != nil {
		t.Fatal(err)
	}
	to, err := l.sound.Destination(ctx, "archive")
	must(t, err)
	var transfer semantics.Transfer
	must(t, l.lose("begin", func(s *redisstore.Store) (err error) {
		transfer, err = s.BeginTransfer(ctx, orders, to, 2)
		return err
	}))
	if counts := l.counts(); len(transfer.Messages) != 2 || counts.Transfer != 2 || counts.Active != 1 {
		t.Errorf("begun twice: %d messages, %+v", len(transfer.Messages), counts)
	}
	var arrivals []semantics.Arrival
	must(t, l.lose("arrive", func(s *redisstore.Store) (err error) {
		arrivals, err = s.Arrive(ctx, transfer, 0, onward(transfer), true)
		return err
	}))
	if got := ids(t, l.sound, archive); !slices.Equal(got, []string{"0", "1"}) || len(arrivals) != 2 || arrivals[0].Refused != "" {
		t.Errorf("arrived twice: %q, %v", got, arrivals)
	}
	must(t, l.lose("end", func(s *redisstore.Store) error { return s.EndTransfer(ctx, transfer, gone(2)) }))
	if counts := l.counts(); counts.Transfer != 0 || counts.Active != 1 {
		t.Errorf("ended twice: %+v", counts)
	}
}

// A Redis that is full takes nothing in at the destination. What was set aside stays so, and goes on when there is
// room.
func TestERR_7_FullRedisKeepsTransfers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	must(t, makeQueue(t, s, "archive"))
	must(t, makeQueue(t, s, "orders", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	_, err := s.Send(t.Context(), "orders", messagesOf(3, semantics.Message{Body: make([]byte, 1000)}))
	must(t, err)
	broker := brokerOver(s)
	defer broker.Close()
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	for range 2 {
		if err := broker.Forward(t.Context(), orders); semantics.CodeOf(err) != semantics.StoreUnavailable {
			t.Fatalf("got %v", err)
		}
	}
	if counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || counts.Transfer != 3 || counts.Active != 0 {
		t.Fatalf("in a full Redis: %+v %v", counts, err)
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "0")
	must(t, broker.Forward(t.Context(), orders))
	if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("arrived: %q", got)
	}
}

// A transfer dead-letter queue takes as many bytes as its source may hold. One that is full keeps the transfer as it
// is.
func TestFWD_8_TransferDeadLettersFull(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll(func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = 1, 1024 })
	for i := range 2 {
		s.send(t, &semantics.Message{MessageID: fmt.Sprint(i), Body: make([]byte, 600<<10)})
		transfer := s.begin(orders, "archive", 9)
		if err := s.EndTransfer(t.Context(), transfer, []semantics.Fate{dead("r", false)}); (semantics.CodeOf(err) == semantics.EntityFull) != (i == 1) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	transfer := s.begin(orders, "archive", 9)
	if len(transfer.Messages) != 1 || transfer.Messages[0].MessageID != "1" {
		t.Fatalf("under way: %+v", transfer)
	}
	if _, err := s.Purge(t.Context(), undelivered, semantics.Purge{Show: semantics.ShowAvailable, Limit: 9, Before: s.clock.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.end(transfer, dead("r", false))
	if got := ids(t, s, undelivered); !slices.Equal(got, []string{"1"}) {
		t.Errorf("not arrived: %q", got)
	}
	s.audit("orders")
}
