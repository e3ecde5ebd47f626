package redisstore_test

import (
	"errors"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Most tests of transfers have orders forward to archive and its dead letters to attic.
var (
	archive, attic = semantics.Source{Path: "archive"}, semantics.Source{Path: "attic"}
	undelivered    = semantics.Source{Path: "orders", SubQueue: semantics.TransferDeadLetterQueue}
)

// transfers is a store by a clock that the test moves.
type transfers struct {
	*swept
	t     *testing.T
	clock *storetest.Clock
}

func openTransfers(t *testing.T) *transfers {
	t.Helper()
	clock := storetest.NewClock()
	return &transfers{t: t, clock: clock, swept: openSwept(t, redisstore.Options{Now: clock.Now})}
}

// forwards are the options of orders.
func forwards(o *semantics.Options) {
	o.ForwardTo, o.ForwardDeadLetteredMessagesTo = archive.Path, attic.Path
}

func (s *transfers) ok(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// make makes a queue.
func (s *transfers) make(path string, changes ...func(*semantics.Options)) {
	s.t.Helper()
	s.ok("create", makeQueue(s.t, s.Store, path, changes...))
}

func makeQueue(t testing.TB, s semantics.Store, path string, changes ...func(*semantics.Options)) error {
	t.Helper()
	options := semantics.DefaultOptions()
	for _, change := range changes {
		change(&options)
	}
	_, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, path, options)
	return err
}

// makeAll makes the three queues.
func (s *transfers) makeAll(changes ...func(*semantics.Options)) {
	s.t.Helper()
	s.make("archive")
	s.make("attic")
	s.make("orders", append([]func(*semantics.Options){forwards}, changes...)...)
}

// begin begins a transfer or gives the one under way.
func (s *transfers) begin(source semantics.Source, path string, limit int) semantics.Transfer {
	s.t.Helper()
	return begin(s.t, s.Store, source, path, limit)
}

func begin(t testing.TB, s semantics.Store, source semantics.Source, path string, limit int) semantics.Transfer {
	t.Helper()
	to, err := s.Destination(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	transfer, err := s.BeginTransfer(t.Context(), source, to, limit)
	if err != nil {
		t.Fatal(err)
	}
	return transfer
}

// onward gives what a transfer carries as it is to arrive.
func onward(transfer semantics.Transfer, subscriptions ...string) []semantics.Publication {
	publications := make([]semantics.Publication, len(transfer.Messages))
	for i, m := range transfer.Messages {
		message := m.Message
		message.Forwarded = &semantics.Forwarded{Hops: 1, EnqueuedSequenceNumber: m.EnqueuedSequenceNumber}
		publications[i] = semantics.Publication{Message: &message, ExpiresAt: m.ExpiresAt, Copies: copiesOf(&message, subscriptions...)}
	}
	return publications
}

// arrive lets all of a transfer arrive at a queue and gives what became of each message.
func (s *transfers) arrive(transfer semantics.Transfer) (codes []semantics.Code) {
	s.t.Helper()
	arrivals, err := s.Arrive(s.t.Context(), transfer, 0, onward(transfer), true)
	s.ok("arrive", err)
	for _, a := range arrivals {
		codes = append(codes, a.Refused)
	}
	return codes
}

// isOvertaken checks that a transfer does not arrive any more.
func (s *transfers) isOvertaken(transfer semantics.Transfer) {
	s.t.Helper()
	if arrivals, err := s.Arrive(s.t.Context(), transfer, 0, onward(transfer), true); !errors.Is(err, semantics.ErrOvertaken) {
		s.t.Errorf("it was overtaken: %v %v", arrivals, err)
	}
}

// gone are the fates of n messages that have all arrived.
func gone(n int) []semantics.Fate { return make([]semantics.Fate, n) }

// dead is the fate of a message that has not arrived.
func dead(reason string, keepsQueue bool) semantics.Fate {
	return semantics.Fate{DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}, KeepsQueue: keepsQueue}
}

func (s *transfers) end(transfer semantics.Transfer, fates ...semantics.Fate) {
	s.t.Helper()
	s.ok("end", s.EndTransfer(s.t.Context(), transfer, fates))
}

// deadLetter makes dead letters of what is in orders, which must not forward it.
func deadLetter(t testing.TB, s semantics.Store, n int) {
	t.Helper()
	batch, err := s.Receive(t.Context(), orders, n, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != n {
		t.Fatalf("receive: %d messages, %v", len(batch.Messages), err)
	}
	for _, m := range batch.Messages {
		if _, err := s.DeadLetter(t.Context(), orders, []semantics.LockToken{m.LockToken}, semantics.DeadLetterTexts{}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// audit checks all that is kept of some entities.
func (s *transfers) audit(paths ...string) {
	s.t.Helper()
	auditAll(s.t, s.swept, paths...)
}

func auditAll(t testing.TB, s *swept, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := audit.New(s.raw, s.namespace).Audit(t.Context(), path); err != nil {
			t.Errorf("audit %s: %v", path, err)
		}
	}
}

// ids are the message ids of a source, in order of number.
func ids(t testing.TB, s semantics.Store, source semantics.Source) []string {
	t.Helper()
	found, err := s.Peek(t.Context(), source, 1, 250, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, m := range found {
		list = append(list, m.MessageID)
	}
	return list
}
