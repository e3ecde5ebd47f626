package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func requiresSession(o *semantics.Options) { o.RequiresSession = true }

// fillSessions sends messages of a body in turn to as many sessions, whose ids have 36 characters.
func (l *backlog) fillSessions(sessions, each, body int) {
	content := make([]byte, body)
	var at atomic.Int64
	share(l.b, sessions*each, 100, func(n int) (int, error) {
		some := make([]*semantics.Message, n)
		for i := range some {
			some[i] = &semantics.Message{
				MessageID: "12345678-1234-1234-1234-123456789012", SessionID: sessionName(at.Add(1) % int64(sessions)), Body: content,
			}
		}
		_, err := l.store.Send(l.b.Context(), "orders", some)
		return n, err
	})
}

func sessionName(n int64) string { return fmt.Sprintf("12345678-1234-1234-1234-%012d", n) }

// consumeSession accepts the next session, receives n messages of it, completes them and closes it.
func (l *backlog) consumeSession(n int) (int, error) {
	session, _, err := l.store.AcceptNextSession(l.b.Context(), "orders", semantics.RegisterNever)
	if err != nil || session == nil {
		return n, err
	}
	source := semantics.Source{Path: "orders", SessionLock: session.Lock}
	got, err := l.store.Receive(l.b.Context(), source, n, semantics.RegisterNever)
	if err != nil {
		return 0, err
	}
	tokens := make([]semantics.LockToken, len(got.Messages))
	for i, m := range got.Messages {
		tokens[i] = m.LockToken
	}
	if _, err := l.store.Complete(l.b.Context(), source, tokens); err != nil {
		return 0, err
	}
	return len(tokens), l.store.CloseSession(l.b.Context(), source)
}

func (l *backlog) drainSessions(each int) {
	for l.length() > 0 {
		share(l.b, int(l.length()), each, l.consumeSession)
	}
}

// BenchmarkSessionBacklog measures whether many sessions are slower than few (P6), and the scripts' own time while they
// are many (P10): each pair accepts, receives, completes and closes the same number of sessions, and sends to as many.
func BenchmarkSessionBacklog(b *testing.B) {
	for _, shape := range []struct{ sessions, each int }{{1_000_000, 1}, {100_000, 10}} {
		b.Run(fmt.Sprintf("sessions=%d/messages=%d", shape.sessions, shape.each), func(b *testing.B) {
			few, many := sized(1000, 100), sized(shape.sessions, 2_000)
			moved := sized(20_000, 500)
			queues := [2]*backlog{openBacklog(b, requiresSession), openBacklog(b, requiresSession)}
			queues[0].fillSessions(few, shape.each, 100)
			queues[1].fillSessions(many, shape.each, 100)
			queues[1].watchScripts()
			var rates, ratios [2][]float64
			for b.Loop() {
				var seconds [2][2]float64
				for i, q := range queues {
					// What is sent goes to sessions of its own, so both queues do the same work.
					seconds[i][0] = share(b, moved, 10, func(n int) (int, error) {
						some := make([]*semantics.Message, n)
						for j := range some {
							some[j] = &semantics.Message{MessageID: "m", SessionID: semantics.NewRandomUUID().String(), Body: make([]byte, 100)}
						}
						_, err := q.store.Send(b.Context(), "orders", some)
						return n, err
					})
					seconds[i][1] = share(b, moved, 1, q.consumeSession)
				}
				for step := range 2 {
					rates[step] = append(rates[step], 1/seconds[1][step])
					ratios[step] = append(ratios[step], seconds[0][step]/seconds[1][step])
				}
			}
			b.ReportMetric(median(rates[0]), "send/s")
			b.ReportMetric(median(rates[1]), "session/s")
			b.ReportMetric(median(ratios[0]), "send-ratio")
			b.ReportMetric(median(ratios[1]), "session-ratio")
			mean, slow := queues[1].slowScripts()
			b.ReportMetric(mean, "us/script")
			b.ReportMetric(slow, "%over-1ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSessionMemory measures what Redis uses for a session above the bodies and properties of its messages, and
// what is left when all were consumed.
func BenchmarkSessionMemory(b *testing.B) {
	for _, shape := range []struct{ sessions, each int }{{1_000_000, 1}, {100_000, 10}} {
		b.Run(fmt.Sprintf("sessions=%d/messages=%d", shape.sessions, shape.each), func(b *testing.B) {
			const body, headers = 100, 72
			sessions := sized(shape.sessions, 2_000)
			messages := sessions * shape.each
			for b.Loop() {
				l := openBacklog(b, requiresSession)
				l.fillSessions(100, 1, body) // what is allocated once
				l.drainSessions(1)
				before := l.memory()
				l.fillSessions(sessions, shape.each, body)
				filled := l.memory()
				l.drainSessions(shape.each)
				after := l.memory()
				b.ReportMetric(float64(filled-before)/float64(messages)-body-headers, "bytes/message")
				b.ReportMetric(float64(filled-before-int64(messages)*(body+headers))/float64(sessions), "bytes/session")
				b.ReportMetric(float64(after-before)/(1<<20), "MiB-left")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSessionLifecycle moves messages of 1 KiB one by one through 1,000 held sessions in strict order, one in
// flight in each, against the same number of single messages through a queue without sessions (P4 at the store).
func BenchmarkSessionLifecycle(b *testing.B) {
	const sessions = 1000
	messages := sized(50_000, 2_000)
	plain, ordered := openBacklog(b, func(*semantics.Options) {}), openBacklog(b, func(o *semantics.Options) {
		requiresSession(o)
		o.SessionInFlight = 1
	})
	held := make(chan semantics.Source, sessions)
	for i := range int64(sessions) {
		session, err := ordered.store.AcceptSession(b.Context(), "orders", sessionName(i))
		if err != nil {
			b.Fatal(err)
		}
		held <- semantics.Source{Path: "orders", SessionLock: session.Lock}
	}
	var rates, ratios []float64
	for b.Loop() {
		one := share(b, messages, 10, func(n int) (int, error) {
			some := make([]*semantics.Message, n)
			for i := range some {
				some[i] = &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", Body: make([]byte, benchBody)}
			}
			_, err := plain.store.Send(b.Context(), "orders", some)
			return n, err
		}) + share(b, messages, 1, plain.consume)
		var at atomic.Int64
		other := share(b, messages, 10, func(n int) (int, error) {
			some := make([]*semantics.Message, n)
			for i := range some {
				id := sessionName(at.Add(1) % sessions)
				some[i] = &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", SessionID: id, Body: make([]byte, benchBody)}
			}
			_, err := ordered.store.Send(b.Context(), "orders", some)
			return n, err
		}) + share(b, messages, 1, func(int) (int, error) {
			source := <-held
			defer func() { held <- source }()
			got, err := ordered.store.Receive(b.Context(), source, 1, semantics.RegisterNever)
			if err != nil || len(got.Messages) == 0 {
				return 0, err
			}
			_, err = ordered.store.Complete(b.Context(), source, []semantics.LockToken{got.Messages[0].LockToken})
			return 1, err
		})
		rates, ratios = append(rates, 1/other), append(ratios, one/other)
	}
	b.ReportMetric(median(rates), "lifecycle/s")
	b.ReportMetric(median(ratios), "lifecycle-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTurns measures what Redis needs to send messages to sessions, and for turns in which each of some sessions
// completes its message and takes the next one.
func BenchmarkTurns(b *testing.B) {
	const sessions = 1000
	for _, together := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("together=%d", together), func(b *testing.B) {
			messages := sized(20_000, 2_000)
			l := openBacklog(b, requiresSession)
			used := serverCPU(b, l.server.URL)
			turns := make([]semantics.Turn, sessions)
			for i := range turns {
				session, err := l.store.AcceptSession(b.Context(), "orders", sessionName(int64(i)))
				if err != nil {
					b.Fatal(err)
				}
				turns[i].Session = session.Lock
			}
			var sending, turning []float64
			for b.Loop() {
				began := used()
				l.fillSessions(sessions, messages/sessions, benchBody)
				sending = append(sending, (used()-began)/float64(messages)*1e6)
				began = used()
				for done := 0; done < messages+sessions; done += together {
					at := done % sessions
					some := turns[at:min(at+together, sessions)]
					for i := range some {
						some[i].Receive = 1
					}
					for i, o := range l.store.Turn(b.Context(), "orders", some) {
						if o.Err != nil || o.Failure != nil {
							b.Fatal(o.Err, o.Failure)
						}
						some[i].Complete = nil
						for _, m := range o.Batch.Messages {
							some[i].Complete = append(some[i].Complete, m.LockToken)
						}
					}
				}
				turning = append(turning, (used()-began)/float64(messages)*1e6)
			}
			b.ReportMetric(median(sending), "us/send")
			b.ReportMetric(median(turning), "us/turn")
			b.ReportMetric(0, "ns/op")
		})
	}
}
