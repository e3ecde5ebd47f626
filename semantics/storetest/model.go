package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// Pair are two stores that a model test compares, both empty and on the same clock.
type Pair struct {
	Reference semantics.Store // says what is right
	Subject   semantics.Store
	Advance   func(time.Duration) // moves the clock of both

	// Restart ends the subject and returns one that takes its place over the same data, as a sidecar that was restarted
	// has it. Nil when there is no such thing.
	Restart func() semantics.Store

	// IsApart is as in Harness.
	IsApart bool

	// overPartitions: all queues have several partitions, see OverPartitions.
	overPartitions bool

	// Audit looks into what the subject keeps of a queue and says what does not fit together. Nil when there is nothing
	// to look into.
	Audit func(path string) error
}

// RunModel runs random calls and time steps on two stores and fails when a client could distinguish them. Lock tokens
// are random; those of one delivery count as the same. After each step it also checks the invariants (see model.check).
// openPair is called once; every run uses queues of its own.
func RunModel(t *testing.T, openPair func(t *testing.T) Pair) {
	t.Helper()
	pair, runs := openPair(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := &model{Pair: pair, ctx: t.Context(), ids: map[int64]string{}, sessionModel: newSessionModel()}
		m.Reference, m.Subject = numbered{pair.Reference, newVersions()}, numbered{pair.Subject, newVersions()}
		m.onTheWay = map[semantics.SubQueue]*passage{}
		path := fmt.Sprintf("model-%d", runs)
		m.main = origin{Source: semantics.Source{Path: path}}
		m.dead = origin{Source: semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}}
		m.other = origin{Source: semantics.Source{Path: path + "-other"}}
		m.undelivered = origin{Source: undelivered(m.main.Source)}
		defer func() { pair.Subject = m.Subject.(numbered).Store }() //nolint:forcetypeassert // made above
		m.create(rt)
		if m.options.RequiresSession {
			rt.Repeat(map[string]func(*rapid.T){"": m.check, "step": m.sessionStep})
		} else {
			rt.Repeat(m.steps())
		}
		for _, path := range []string{m.main.Path, m.other.Path} {
			both(rt, m, "delete", func(s semantics.Store) (any, error) { return nil, s.DeleteEntity(m.ctx, semantics.QueueKind, path) })
			m.audit(rt, path)
		}
	})
}

func (m *model) restart(rt *rapid.T) {
	if m.Restart == nil {
		rt.Skip("nothing to restart")
	}
	m.Subject = numbered{m.Restart(), m.Subject.(numbered).versions} //nolint:forcetypeassert // as it was made
}

func (m *model) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                     m.check,
		"restart":              m.restart,
		"advance":              m.advance,
		"advance again":        m.advance, // some are drawn more often than the rest
		"send":                 m.send,
		"send again":           m.send,
		"send once":            m.sendOnce,
		"receive":              m.receive,
		"receive again":        m.receive,
		"receive and again":    m.receive,
		"receive dead letters": m.receiveDead,
		"receive other":        m.receiveOther,
		"receive deferred":     m.receiveDeferred,
		"receive by number":    m.receiveByNumber,
		"reactivate":           m.reactivate,
		"peek":                 m.peek,
		"complete":             m.complete,
		"complete and receive": m.completeAndReceive,
		"abandon":              m.abandon,
		"abandon again":        m.abandon,
		"defer":                m.deferSome,
		"defer again":          m.deferSome,
		"release":              m.release,
		"dead-letter":          m.deadLetter,
		"dead-letter again":    m.deadLetter,
		"renew":                m.renew,
		"transact":             m.transact,
		"transact again":       m.transact,
		"cancel":               m.cancel,
		"cancel by id":         m.cancelByID,
		"purge":                m.purge,
		"purge dead letters":   m.purgeDead,
		"delete by number":     m.deleteByNumber,
		"resubmit":             m.resubmit,
		"resubmit elsewhere":   m.resubmitElsewhere,
		"update":               m.update,

		"forward":              m.forwardMain,
		"forward dead letters": m.forwardDead,
		"begin transfer":       m.beginMain,
		"arrive":               m.arrive,
		"arrive again":         m.arrive,
		"end transfer":         m.endTransfer,
		"receive undelivered":  m.receiveUndelivered,
	}
}

// model is one run. main has what is done most; other is only there to be a target of resubmissions.
type model struct {
	Pair
	ctx               context.Context
	main, dead, other origin
	undelivered       origin // what could not be forwarded from main
	now               time.Time
	options           semantics.Options // of main at creation; the window as it is now
	deliveries        []received        // the last ones, most of them over
	moved             bool              // the clock moved and nothing has looked at main since
	checks            int

	// What the last look showed, to choose from. It may be out of date.
	rows, deadRows []*semantics.Received
	last           int64            // highest number seen
	ids            map[int64]string // message id by number, of all that were ever seen
	otherChanged   bool

	lastTransaction []member
	lastRequest     *semantics.Once // of it, nil for none

	*sessionModel // only of runs whose main queue requires sessions
	transferModel
}

// origin is a source on both stores, which have given tokens of their own to the holder of a session.
type origin struct {
	semantics.Source

	hold *hold // nil: no session is held
}

// on returns the source as one of the stores knows it.
func (m *model) on(s semantics.Store, from origin) semantics.Source {
	if from.hold != nil {
		from.SessionLock = from.hold.reference
		if s == m.Subject {
			from.SessionLock = from.hold.subject
		}
	}
	return from.Source
}

// received is one hand-out of one message by both stores.
type received struct {
	from               origin
	number             int64
	reference, subject semantics.LockToken
}

const keptDeliveries = 24

// both makes the same call on both stores and compares the failures.
func both[T any](rt *rapid.T, m *model, what string, call func(s semantics.Store) (T, error)) (reference, subject T, ok bool) {
	rt.Helper()
	reference, wantErr := call(m.Reference)
	subject, gotErr := call(m.Subject)
	if want, got := Refusal(wantErr), Refusal(gotErr); want != got {
		rt.Fatalf("%s: got %q (%v), want %q (%v)", what, got, gotErr, want, wantErr)
	}
	return reference, subject, wantErr == nil
}

// agree is both, and compares the answers too.
func agree[T any](rt *rapid.T, m *model, what string, call func(s semantics.Store) (T, error)) (answer T, ok bool) {
	rt.Helper()
	reference, subject, ok := both(rt, m, what, call)
	same(rt, what, reference, subject)
	return reference, ok
}

// looked records whether a call has processed what was due. Every call does that is not refused as a whole.
func (m *model) looked(ok bool) {
	if ok {
		m.moved = false
	}
}

func same(rt *rapid.T, what string, want, got any) {
	rt.Helper()
	if reflect.DeepEqual(want, got) {
		return // as nearly always, and much faster to find out
	}
	if diff := gocmp.Diff(want, got, comparing); diff != "" {
		rt.Fatalf("%s differs (-reference +subject):\n%s", what, diff)
	}
}

// Steps of time and lifetimes are multiples of the same unit, so that exact boundaries are met often.
const unit = 500 * ms

func units(n ...time.Duration) *rapid.Generator[time.Duration] {
	for i := range n {
		n[i] *= unit
	}
	return rapid.SampledFrom(n)
}

func drawOptions(rt *rapid.T) semantics.Options {
	o := semantics.DefaultOptions()
	often := func(rare, n int, label string) bool { return rapid.IntRange(1, n).Draw(rt, label) <= rare }
	o.LockDuration = units(2, 3, 5).Draw(rt, "lock duration")
	o.MaxDeliveryCount = rapid.SampledFrom([]int64{1, 2, 3, 100}).Draw(rt, "max delivery count")
	o.DefaultMessageTimeToLive = rapid.SampledFrom([]time.Duration{semantics.Never, semantics.Never, 4 * unit}).Draw(rt, "default ttl")
	o.DeadLetteringOnMessageExpiration = rapid.Bool().Draw(rt, "dead-letter expired")
	o.MaxMessageCount = rapid.SampledFrom([]int64{0, 0, 8}).Draw(rt, "max count")
	o.MaxMessageSizeInKilobytes = rapid.SampledFrom([]int64{1, 256, 256}).Draw(rt, "max message size")
	o.Status = rapid.SampledFrom([]semantics.Status{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}).Draw(rt, "status")
	o.RequiresDuplicateDetection = rapid.Bool().Draw(rt, "detect duplicates")
	o.EnablePartitioning = often(1, 4, "partitioning")
	o.DuplicateDetectionHistoryTimeWindow = units(3, 6, 20).Draw(rt, "window")
	o.DuplicateHistoryMaxEntries = rapid.SampledFrom([]int64{3, 1000, 1000}).Draw(rt, "max history")
	o.ForgetOnCancel = rapid.Bool().Draw(rt, "forget on cancel")
	o.RedeliveryDelay = units(0, 0, 1, 4).Draw(rt, "redelivery delay")
	o.ExpireDeferred = rapid.Bool().Draw(rt, "expire deferred")
	o.DeadLetterTTL = rapid.SampledFrom([]time.Duration{semantics.Never, 3 * unit, 8 * unit}).Draw(rt, "dead letter ttl")
	return o
}

func (m *model) create(rt *rapid.T) {
	sessions := m.overPartitions || rapid.Bool().Draw(rt, "sessions")
	if sessions {
		m.drawSessions(rt)
	}
	for _, path := range []string{m.other.Path, m.main.Path} {
		m.options = drawOptions(rt)
		if sessions {
			m.options = drawSessionOptions(rt, m.options)
		}
		if m.options.RequiresSession = sessions; path == m.other.Path {
			m.options.RequiresSession = rapid.IntRange(1, 3).Draw(rt, "other has sessions") == 1
			m.otherHasSessions = m.options.RequiresSession
		}
		m.options.Status = semantics.StatusActive
		queue, _ := agree(rt, m, "create", func(s semantics.Store) (semantics.Entity, error) {
			queue, created, err := s.CreateEntity(m.ctx, semantics.QueueKind, path, m.options)
			if !created {
				rt.Fatalf("queue %s was not created", path)
			}
			return queue, err
		})
		m.now = queue.CreatedAt
	}
}

func (m *model) update(rt *rapid.T) {
	options := drawOptions(rt)
	if m.options.RequiresSession {
		options = drawSessionOptions(rt, options)
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(semantics.OptionNames(semantics.QueueKind)), 1, 3, rapid.ID).Draw(rt, "options")
	// Whether ids whose window was over come back to mind with a longer one is not fixed.
	options.DuplicateDetectionHistoryTimeWindow = min(options.DuplicateDetectionHistoryTimeWindow, m.options.DuplicateDetectionHistoryTimeWindow)
	queue, ok := agree(rt, m, "update", func(s semantics.Store) (semantics.Entity, error) {
		return s.UpdateEntity(m.ctx, semantics.QueueKind, m.main.Path, options, names)
	})
	if ok {
		m.options = queue.Options
	}
}

func (m *model) advance(rt *rapid.T) {
	step := rapid.SampledFrom([]time.Duration{ms, unit - ms, unit, unit, unit + ms, 2 * unit, 5 * unit, 5 * unit, 40 * unit}).Draw(rt, "step")
	m.Advance(step)
	m.now = m.now.Add(step)
	m.moved = true
	m.endHolds(m.now)
}
