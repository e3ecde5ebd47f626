package storetest

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var sessionStateTests = []ruleTest{
	testSESS_31_ForWhoeverHasTheSessionNext,
	testSESS_31_ResumeElsewhere,
	testSESS_32_OpaqueBytes,
	testSESS_32_AsLargeAsAMessage,
	testSESS_33_NoneSetReplacedCleared,
	testSESS_33_EmptyIsAValue,
	testSESS_33_VersionsAreNeverUsedTwice,
	testSESS_33a_NeedsTheLock,
	testSESS_33a_ExpectedVersion,
	testSESS_33a_ClearedIsNotTheSame,
	testSESS_33a_Arguments,
	testSESS_33a_OrderOfChecks,
	testSESS_33a_RaceHasOneWinner,
	testSESS_33b_StaysUntilCleared,
	testSESS_33c_CountsAgainstTheSize,
	testSESS_33c_ShrinkingIsNeverRefused,
}

func testSESS_31_ForWhoeverHasTheSessionNext(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b")
	h.wantState(h.take("a").Session.State, nil)
	a := h.acceptNext() // b
	h.wantState(a.Session.State, nil)
	version := h.setState(a.Source(), []byte("half done"))
	h.closeSession(a.Source())
	next := h.acceptNext()
	h.same(next.Session.State, semantics.SessionState{Data: []byte("half done"), Version: version})
	version = h.setState(next.Source(), []byte("nearly done"))
	h.Advance(lock) // its holder crashes
	h.same(h.take("b").Session.State, semantics.SessionState{Data: []byte("nearly done"), Version: version})
	h.wantState(h.take("a").Session.State, nil)
}

// wantState checks the bytes of a state; nil is none.
func (h *fixture) wantState(state semantics.SessionState, want []byte) {
	h.t.Helper()
	if !bytes.Equal(state.Data, want) || (state.Data == nil) != (want == nil) || (state.Version == 0) != (want == nil) {
		h.t.Fatalf("state is %q (nil: %v) of version %d, want %q", state.Data, state.Data == nil, state.Version, want)
	}
}

// A handler notes what it has deferred and goes down; another on another machine goes on with it (DEFER-2).
func testSESS_31_ResumeElsewhere(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.setState(a, []byte{1})
	h.complete(a, h.receiveOne(a))
	h.Advance(lock)
	brokers := h.sidecars()
	other := brokers[len(brokers)-1]
	next, err := other.AcceptSession(t.Context(), "orders", broker.AcceptOptions{})
	h.ok(err)
	source, noted := next.Source(), int64(next.Session.State.Data[0])
	deferred, err := other.ReceiveDeferred(t.Context(), source, []int64{noted}, semantics.PeekLock)
	h.ok(err)
	codes, err := other.Complete(t.Context(), source, tokensOf(deferred.Messages...))
	h.settled(codes, err)
	h.wantNumbers(h.receive(source, 9), 3)
}

func testSESS_32_OpaqueBytes(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, data := range [][]byte{every, {0}, []byte("\r\n"), []byte("nil"), []byte("0"), []byte("123456789012345678901234567890"), {0xff, 0xfe}} {
		version := h.setState(a, data)
		h.same(h.state(a), semantics.SessionState{Data: data, Version: version})
		h.same(h.sessionRow("a").StateSize, int64(len(data)))
	}
	// A store keeps no slice that it was given, and returns none that it keeps.
	mine := []byte("mine")
	h.setState(a, mine)
	mine[0] = 'x'
	h.state(a).Data[1] = 'x'
	h.same(string(h.state(a).Data), "mine")
}

func testSESS_32_AsLargeAsAMessage(_ *testing.T, h *fixture) {
	h.createSessions(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 3 })
	a := h.accept("a")
	h.setState(a, make([]byte, 3<<10))
	h.refused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(a, make([]byte, 3<<10+1))) })
	h.same(h.sessionRow("a").StateSize, int64(3<<10))
	h.update(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 }, "maxMessageSizeInKilobytes")
	h.same(len(h.state(a).Data), 3<<10) // which touches nothing stored
	h.refused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(a, make([]byte, 1<<10+1))) })
	h.setState(a, make([]byte, 1<<10))

	h.drop()
	h.createSessions() // the bound of messages by default
	a = h.accept("a")
	h.setState(a, bytes.Repeat([]byte("ab"), 128<<10))
	h.same(bytes.Equal(h.state(a).Data, bytes.Repeat([]byte("ab"), 128<<10)), true)
	h.refused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(a, make([]byte, 256<<10+1))) })
}

func testSESS_33_NoneSetReplacedCleared(_ *testing.T, h *fixture) {
	h.createSessions()
	a, b := h.accept("a"), h.accept("b")
	h.wantState(h.state(a), nil)
	h.setState(a, []byte("a long one"))
	h.setState(a, []byte("x")) // as a whole
	h.wantState(h.state(a), []byte("x"))
	h.wantState(h.state(b), nil)
	h.same(h.setState(a, nil), int64(0))
	h.wantState(h.state(a), nil)
	h.same(h.setState(a, nil), int64(0)) // there is nothing to clear any more
	h.setState(a, []byte("y"))
	h.wantState(h.state(a), []byte("y"))
}

func testSESS_33_EmptyIsAValue(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	version := h.setState(a, []byte{})
	h.wantState(h.state(a), []byte{})
	h.same(h.state(a).Version, version)
	h.closeSession(a)
	row := h.sessionRow("a")
	h.same([]int64{row.StateSize, row.StateVersion}, []int64{0, version})
	next := h.take("a")
	h.wantState(next.Session.State, []byte{})
	h.setState(next.Source(), []byte{}, version) // it is not none
	h.setState(next.Source(), nil)
	h.wantState(h.state(next.Source()), nil)
}

func testSESS_33_VersionsAreNeverUsedTwice(_ *testing.T, h *fixture) {
	h.createSessions()
	seen := map[int64]bool{0: true}
	for n := range 30 {
		id := []string{"a", "b", "c"}[n%3]
		a := h.accept(id)
		if n%5 == 0 {
			h.setState(a, nil)
		}
		version := h.setState(a, []byte("the same"))
		if seen[version] || version < 0 {
			h.t.Fatalf("version %d of session %s is not new", version, id)
		}
		seen[version] = true
		row := h.sessionRow(id)
		h.same([]int64{row.StateVersion, h.state(a).Version}, []int64{version, version})
		h.closeSession(a)
	}
}

func testSESS_33a_NeedsTheLock(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a")
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.Advance(lock - ms)
	h.setState(a, []byte("just in time"))
	h.Advance(ms) // without a call since then
	h.wantCode(second(h.trySetState(a, []byte("too late"))), semantics.SessionLockLost)
	h.wantCode(second(h.broker.SessionState(h.t.Context(), a)), semantics.SessionLockLost)
	h.sessionLost(a)
	b := h.take("a")
	h.wantState(b.Session.State, []byte("just in time"))
	h.closeSession(b.Source())
	h.sessionLost(b.Source())
}

func testSESS_33a_ExpectedVersion(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a")
	a := h.accept("a")
	wrong := func(versions ...int64) {
		for _, version := range versions {
			h.refused(semantics.PreconditionFailed, func() error { return second(h.trySetState(a, []byte("lost"), version)) })
			h.refused(semantics.PreconditionFailed, func() error { return second(h.trySetState(a, nil, version)) })
		}
	}
	wrong(1, 99, 1<<62)
	h.same(h.setState(a, nil, 0), int64(0))
	first := h.setState(a, []byte("first"), 0) // there is none yet
	wrong(0, first+1, first+1000)
	next := h.setState(a, []byte("first"), first) // equal bytes are another version
	wrong(0, first)
	h.wantState(h.state(a), []byte("first"))
	h.setState(a, []byte("whatever it was"))
	wrong(first, next)
	h.setState(a, nil, h.state(a).Version)
	wrong(first, next)
	h.setState(a, []byte("again"), 0)
}

// The version after a clear is none, and one set later is not taken for an earlier one (ABA).
func testSESS_33a_ClearedIsNotTheSame(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 3 {
		a := h.accept("a")
		first := h.setState(a, []byte("same"), 0)
		h.setState(a, nil, first)
		h.setState(a, []byte("same"), 0)
		h.refused(semantics.PreconditionFailed, func() error { return second(h.trySetState(a, []byte("x"), first)) })
		h.setState(a, nil)
		h.closeSession(a) // nothing is left of it
		h.same(h.runtime(), semantics.Runtime{})
		b := h.accept("a")
		h.setState(b, []byte("same"))
		h.refused(semantics.PreconditionFailed, func() error { return second(h.trySetState(b, []byte("x"), first)) })
		h.setState(b, nil)
		h.closeSession(b)
	}
}

func testSESS_33a_Arguments(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	h.refused(semantics.ArgumentOutOfRange, func() error { return second(h.trySetState(a, nil, -1)) })
	for _, source := range []semantics.Source{orders, sessionOf("a")} { // without a token
		h.refused(semantics.InvalidArgument, func() error { return second(h.trySetState(source, []byte("x"))) })
		h.refused(semantics.InvalidArgument, func() error { return second(h.broker.SessionState(t.Context(), source)) })
		h.refused(semantics.InvalidArgument, func() error { return second(h.broker.RenewSessionLock(t.Context(), source)) })
	}
}

// Kind, size, lock, version, capacity.
func testSESS_33a_OrderOfChecks(_ *testing.T, h *fixture) {
	h.create(megabytes(1))
	tooLarge := make([]byte, mebibyte+1)
	h.refused(semantics.SessionNotSupported, func() error { return second(h.trySetState(unheld(), tooLarge, 7)) })
	h.drop()
	h.createSessions(megabytes(1))
	h.send(of("a", sized(mebibyte-100-1)))
	a := h.accept("a")
	h.refused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(unheld(), tooLarge, 7)) })
	h.refused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(a, tooLarge, 7)) })
	tooMuch := make([]byte, 101)
	h.refused(semantics.SessionLockLost, func() error { return second(h.trySetState(unheld(), tooMuch, 7)) })
	h.refused(semantics.PreconditionFailed, func() error { return second(h.trySetState(a, tooMuch, 7)) })
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, tooMuch, 0)) })
	h.setStatus(semantics.StatusReceiveDisabled)
	h.refused(semantics.EntityDisabled, func() error { return second(h.trySetState(unheld(), tooLarge, 7)) })
}

func testSESS_33a_RaceHasOneWinner(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	a := h.accept("a")
	brokers := h.sidecars()
	version := int64(0)
	for range 10 {
		var wins atomic.Int32
		var work sync.WaitGroup
		for i := range 6 {
			work.Go(func() {
				_, err := brokers[i%len(brokers)].SetSessionState(t.Context(), a, []byte{byte(i)}, &version)
				switch semantics.CodeOf(err) {
				case "":
					wins.Add(1)
				case semantics.PreconditionFailed:
				default:
					t.Error(err)
				}
			})
		}
		work.Wait()
		h.same(wins.Load(), int32(1))
		version = h.state(a).Version
	}
}

func testSESS_33b_StaysUntilCleared(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.pass(a, 1)
	h.deadLetterIn(a, h.receiveOne(a))
	h.closeSession(a)
	h.purge(orders, broker.PurgeOptions{Deferred: true, Scheduled: true, DeadLetters: true})
	h.Advance(1000 * 24 * time.Hour)
	h.same(h.sessionIDs(), []string{"a"})
	h.wantNext() // a state alone is nothing to receive
	b := h.take("a")
	h.wantState(b.Session.State, []byte("note"))
	h.setState(b.Source(), nil)
	h.closeSession(b.Source())
	h.same(h.sessionIDs(), []string(nil))
}

func testSESS_33c_CountsAgainstTheSize(_ *testing.T, h *fixture) {
	h.createSessions(megabytes(1))
	h.send(of("a", sized(mebibyte-1000)))
	a, b := h.accept("a"), h.accept("b")
	size := h.runtime().SizeInBytes // the id of the session is a property and counts
	h.same(size, int64(mebibyte-1000+1))
	room := int(mebibyte - size)
	h.setState(b, make([]byte, room))
	h.same(h.runtime().SizeInBytes, int64(mebibyte))
	err := h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, []byte{1})) })
	h.same(err.Code.Retryable(), true)
	h.setState(a, []byte{}) // which needs no capacity
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(b, make([]byte, room+1))) })
	h.refusedSend(semantics.EntityFull, part("c", "x"))
	h.setState(b, make([]byte, room-100))
	h.setState(a, make([]byte, 60))
	h.same(h.runtime().SizeInBytes, int64(mebibyte-40))
	h.setState(a, make([]byte, 100)) // only the additional bytes need capacity
	h.complete(a, h.receiveOne(a))
	h.same(h.runtime().SizeInBytes, int64(room))
	h.setState(b, nil)
	h.same(h.runtime().SizeInBytes, int64(100))
	h.setState(a, nil)
	h.same(h.runtime().SizeInBytes, int64(0))
}

func testSESS_33c_ShrinkingIsNeverRefused(_ *testing.T, h *fixture) {
	h.createSessions(megabytes(2))
	h.send(of("a", sized(mebibyte)))
	a := h.accept("a")
	h.setState(a, make([]byte, 1000))
	// there is more in it by now
	h.update(func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 }, "maxSizeInMegabytes")
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, make([]byte, 1001))) })
	h.setState(a, make([]byte, 1000))
	h.setState(a, make([]byte, 999))
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, make([]byte, 1000))) })
	h.setState(a, nil)
	h.refused(semantics.EntityFull, func() error { return second(h.trySetState(a, []byte{1})) })
}
