package proxy_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// puppet is a sidecar that says what a test wants it to say, in a bubble.
type puppet struct {
	grpc.ClientConnInterface

	t        *testing.T
	requests chan *sidebusv1.SubscribeRequest
	failures chan error // that Handle told

	events chan *sidebusv1.SubscribeResponse // of the last stream; closed: it breaks
}

// puppetStream is the client's side of a stream to a puppet.
type puppetStream struct {
	grpc.ClientStream

	ctx      context.Context //nolint:containedctx // of a call
	requests chan<- *sidebusv1.SubscribeRequest
	events   <-chan *sidebusv1.SubscribeResponse
	closed   chan struct{} // by the client
}

// NewStream opens the one stream that Handle needs.
func (p *puppet) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	p.events = make(chan *sidebusv1.SubscribeResponse, 10)
	return &puppetStream{ctx: ctx, requests: p.requests, events: p.events, closed: make(chan struct{})}, nil
}

func (s *puppetStream) SendMsg(r any) error {
	s.requests <- r.(*sidebusv1.SubscribeRequest)
	return nil
}

func (s *puppetStream) RecvMsg(into any) error {
	select {
	case r, isOpen := <-s.events:
		if !isOpen {
			return io.ErrUnexpectedEOF
		}
		proto.Merge(into.(*sidebusv1.SubscribeResponse), r)
		return nil
	case <-s.closed:
		return io.EOF
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *puppetStream) CloseSend() error {
	close(s.closed)
	return nil
}

// playing runs Handle against a puppet and delivers one message.
func playing(t *testing.T, handler client.Handler, play func(t *testing.T, p *puppet, h handled)) {
	t.Helper()
	playingOver(t, &sidebusv1.SubscribeOpen{Source: orders}, handler, play)
}

// playingOver is playing with options. The lock of the message ends after a minute.
func playingOver(t *testing.T, open *sidebusv1.SubscribeOpen, handler client.Handler, play func(t *testing.T, p *puppet, h handled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{t: t, requests: make(chan *sidebusv1.SubscribeRequest, 10), failures: make(chan error, 10)}
		h := handleOver(t, p, open, handler, onError(func(err error) { p.failures <- err }))
		p.opens()
		message := &sidebusv1.ReceivedMessage{LockToken: new("token"), LockedUntil: timestamppb.New(time.Now().Add(time.Minute))}
		p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Deliveries{Deliveries: &sidebusv1.SubscribeDeliveries{
			Deliveries: []*sidebusv1.SubscribeDelivery{{Messages: []*sidebusv1.ReceivedMessage{message}}},
		}}})
		play(t, p, h)
	})
}

func (p *puppet) says(r *sidebusv1.SubscribeResponse) { p.events <- r }

func (p *puppet) opens() {
	p.t.Helper()
	if r := p.next(); r.GetOpen() == nil {
		p.t.Fatalf("asked for %v before it opened", r)
	}
	p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Opened{Opened: &sidebusv1.SubscribeOpened{}}})
}

// settles waits for a settlement of the message and answers it with a failure, or else with a row.
func (p *puppet) settles(failure *sidebusv1.Failure, reason *string) *sidebusv1.SubscribeSettle {
	p.t.Helper()
	r := p.next()
	p.answers(r, failure, reason)
	return r.GetSettle()
}

func (p *puppet) answers(r *sidebusv1.SubscribeRequest, failure *sidebusv1.Failure, reason *string) {
	p.t.Helper()
	if tokens := r.GetSettle().GetLockTokens(); !slices.Equal(tokens, []string{"token"}) {
		p.t.Fatalf("asked for %v, not for a settlement", r)
	}
	answer := &sidebusv1.SubscribeResponse{RequestId: r.GetRequestId()}
	if failure != nil {
		answer.Response = &sidebusv1.SubscribeResponse_Failure{Failure: failure}
	} else {
		rows := []*sidebusv1.SettleResponse_Result{{LockToken: "token", Reason: reason}}
		answer.Response = &sidebusv1.SubscribeResponse_Settled{Settled: &sidebusv1.SettleResponse{Results: rows}}
	}
	p.says(answer)
}

// isQuiet checks that Handle makes no call and reports no failure, while there is time for all of it.
func (p *puppet) isQuiet(span time.Duration) {
	p.t.Helper()
	select {
	case r := <-p.requests:
		p.t.Errorf("asked for %v", r)
	case err := <-p.failures:
		p.t.Errorf("told of %v", err)
	case <-time.After(span):
	}
}

// tells waits for a failure of that reason.
func (p *puppet) tells(reason string) {
	p.t.Helper()
	var refused *client.Error
	if err := p.told(); !errors.As(err, &refused) || string(refused.Code) != reason {
		p.t.Errorf("told of %v, want %s", err, reason)
	}
}

// next waits for the next request.
func (p *puppet) next() *sidebusv1.SubscribeRequest {
	p.t.Helper()
	select {
	case r := <-p.requests:
		return r
	case <-time.After(time.Hour):
		p.t.Fatal("asked for nothing")
		return nil
	}
}

// told waits for a failure.
func (p *puppet) told() error {
	p.t.Helper()
	select {
	case err := <-p.failures:
		return err
	case <-time.After(time.Hour):
		p.t.Fatal("told of nothing")
		return nil
	}
}

func (p *puppet) losesLock() {
	p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_LocksLost{
		LocksLost: &sidebusv1.SubscribeLocksLost{LockTokens: []string{"token"}},
	}})
}

var (
	downForNow = &sidebusv1.Failure{Reason: "STORE_UNAVAILABLE", Retryable: true}
	unclear    = &sidebusv1.Failure{Reason: "STORE_UNAVAILABLE", Retryable: true, Details: map[string]string{"outcome": "unknown"}}
	tooFast    = &sidebusv1.Failure{Reason: "THROTTLED", Retryable: true, RetryAfter: durationpb.New(7 * time.Second)}
	tooLong    = &sidebusv1.Failure{Reason: "ARGUMENT_OUT_OF_RANGE"}
)

func succeed(context.Context, *client.HandledMessage) error { return nil }

// A settlement that is refused for a reason that passes is tried again, the same one, with longer and longer pauses.
func TestERR_3_RefusedSettlementIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome error
		verb    func(*sidebusv1.SubscribeSettle) bool
	}{
		"complete":    {nil, func(s *sidebusv1.SubscribeSettle) bool { return s.GetComplete() != nil }},
		"abandon":     {errors.New("not now"), func(s *sidebusv1.SubscribeSettle) bool { return s.GetAbandon() != nil }},
		"dead-letter": {client.DeadLetter(errors.New("never")), func(s *sidebusv1.SubscribeSettle) bool { return s.GetDeadLetter().GetDescription() == "never" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := func(context.Context, *client.HandledMessage) error { return c.outcome }
			playing(t, handler, func(t *testing.T, p *puppet, _ handled) {
				last, pauses := time.Now(), []time.Duration(nil)
				for range 12 {
					if s := p.settles(downForNow, nil); !c.verb(s) {
						t.Errorf("tried %v", s)
					}
					pauses, last = append(pauses, time.Since(last)), time.Now()
				}
				const ms = time.Millisecond
				want := []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1280 * ms, 2560 * ms, 5000 * ms, 5000 * ms}
				if !slices.Equal(pauses, want) {
					t.Errorf("pauses of %v, want %v", pauses, want)
				}
				p.settles(nil, nil)
				p.isQuiet(time.Minute)
			})
		})
	}
}

func TestTHR_2_HandleWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	playing(t, succeed, func(t *testing.T, p *puppet, _ handled) {
		began := time.Now()
		p.settles(tooFast, nil)
		p.settles(nil, nil)
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("tried again after %s, want 7s", took)
		}
		p.isQuiet(time.Minute)
	})
}

// When the outcome of a try is unknown, a lost lock means that the settlement took effect.
func TestERR_6_LockLostAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	lost := new("MESSAGE_LOCK_LOST")
	for name, c := range map[string]struct {
		play  func(p *puppet)
		tells string
	}{
		"unknown, lost":          {func(p *puppet) { p.settles(unclear, nil); p.settles(nil, lost) }, ""},
		"unknown, refused, lost": {func(p *puppet) { p.settles(unclear, nil); p.settles(downForNow, nil); p.settles(nil, lost) }, ""},
		"unknown, told of the loss": {func(p *puppet) {
			p.settles(unclear, nil)
			p.losesLock()
			p.settles(nil, lost)
		}, ""},
		"lost":          {func(p *puppet) { p.settles(nil, lost) }, "MESSAGE_LOCK_LOST"},
		"refused, lost": {func(p *puppet) { p.settles(downForNow, nil); p.settles(nil, lost) }, "MESSAGE_LOCK_LOST"},
		"refused, told of the loss": {func(p *puppet) {
			p.settles(tooFast, nil)
			p.losesLock()
			p.settles(nil, lost)
		}, "MESSAGE_LOCK_LOST"},
		"refused, told of the loss, refused": {func(p *puppet) {
			p.settles(tooFast, nil)
			p.losesLock()
			p.settles(downForNow, nil)
		}, "STORE_UNAVAILABLE"},
		"unknown, session lost": {func(p *puppet) { p.settles(unclear, nil); p.settles(nil, new("SESSION_LOCK_LOST")) }, "SESSION_LOCK_LOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playing(t, succeed, func(_ *testing.T, p *puppet, _ handled) {
				c.play(p)
				if c.tells != "" {
					p.tells(c.tells)
				}
				p.isQuiet(time.Minute)
			})
		})
	}
}

func TestERR_3_WhatDoesNotPassIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	playing(t, succeed, func(_ *testing.T, p *puppet, _ handled) {
		p.settles(tooLong, nil)
		p.tells("ARGUMENT_OUT_OF_RANGE")
		p.isQuiet(time.Minute)
	})
}

// A stream that breaks, and Handle that is to end, do not wait for a settlement that does not succeed.
func TestERR_3_TriesEndWithTheStream(t *testing.T) {
	t.Parallel()
	t.Run("it breaks", func(t *testing.T) {
		t.Parallel()
		playing(t, succeed, func(_ *testing.T, p *puppet, _ handled) {
			p.settles(tooFast, nil)
			synctest.Wait()
			close(p.events)
			p.tells("THROTTLED")
			if err := p.told(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("told of %v, want the end of the stream", err)
			}
			p.opens() // the next one
		})
	})
	t.Run("Handle ends", func(t *testing.T) {
		t.Parallel()
		playing(t, succeed, func(t *testing.T, p *puppet, h handled) {
			p.settles(downForNow, nil)
			began := time.Now()
			h.stop()
			if r := p.next(); r.GetCredits() == nil || r.GetCredits().GetCredits() != 0 {
				t.Errorf("asked for %v, not for a pause", r)
			}
			for {
				select {
				case r := <-p.requests:
					p.answers(r, downForNow, nil)
				case err := <-h.done:
					if took := time.Since(began); err != nil || took != 10*time.Second {
						t.Errorf("got %v after %s, want nothing after 10s", err, took)
					}
					p.tells("STORE_UNAVAILABLE")
					return
				}
			}
		})
	})
}

// A settlement that the handler makes is tried again too, until its context ends.
func TestERR_3_HandlersOwnSettlementIsTriedAgain(t *testing.T) {
	t.Parallel()
	var outcome error
	handler := func(ctx context.Context, m *client.HandledMessage) error {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Millisecond)
		defer cancel()
		outcome = m.Complete(ctx)
		return errors.New("abandoned")
	}
	playing(t, handler, func(t *testing.T, p *puppet, _ handled) {
		p.settles(downForNow, nil)
		p.settles(downForNow, nil)
		if s := p.settles(nil, nil); s.GetAbandon() == nil {
			t.Errorf("tried %v", s)
		}
		var refused *client.Error
		if !errors.As(outcome, &refused) || string(refused.Code) != "STORE_UNAVAILABLE" {
			t.Errorf("got %v", outcome)
		}
		p.isQuiet(time.Minute)
	})
}
