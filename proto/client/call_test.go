package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// script is a connection to a sidecar that answers as a test wants, in a bubble whose time is not real.
type script struct {
	grpc.ClientConnInterface

	mu      sync.Mutex
	calls   []time.Duration // since it began
	began   time.Time
	answers []any // for each call in turn an error or a message; the last one for all that follow
	seen    []proto.Message
}

func newScript(answers ...any) *script { return &script{began: time.Now(), answers: answers} }

func (s *script) Invoke(ctx context.Context, _ string, request, reply any, _ ...grpc.CallOption) error {
	s.mu.Lock()
	answer := s.answers[min(len(s.calls), len(s.answers)-1)]
	s.calls = append(s.calls, time.Since(s.began))
	s.seen = append(s.seen, proto.Clone(request.(proto.Message)))
	s.mu.Unlock()
	switch a := answer.(type) {
	case error:
		return a
	case proto.Message:
		proto.Merge(reply.(proto.Message), a)
	case func(context.Context) error:
		return a(ctx)
	}
	return nil
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func failure(code codes.Code, reason string, retryAfter time.Duration, details map[string]string) error {
	s := status.New(code, "as scripted")
	info := &errdetails.ErrorInfo{Reason: reason, Domain: "sidebus", Metadata: details}
	if retryAfter == 0 {
		s, _ = s.WithDetails(info)
	} else {
		s, _ = s.WithDetails(info, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	return s.Err()
}

var (
	broke     = status.Error(codes.Unavailable, "connection reset")
	redisAway = failure(codes.Unavailable, "STORE_UNAVAILABLE", time.Second, nil)
	unclear   = failure(codes.Unavailable, "STORE_UNAVAILABLE", time.Second, map[string]string{"outcome": "unknown"})
	throttled = failure(codes.ResourceExhausted, "THROTTLED", 7*time.Second, nil)
	full      = failure(codes.ResourceExhausted, "ENTITY_FULL", time.Second, nil)
	done      = &sidebusv1.SendResponse{Results: []*sidebusv1.SendResponse_Result{{SequenceNumber: 1, MessageId: "m"}}}
)

func settledAs(reason *string) *sidebusv1.SettleResponse {
	return &sidebusv1.SettleResponse{Results: []*sidebusv1.SettleResponse_Result{{LockToken: "t", Reason: reason}}}
}

func settleOne(c *client.Client) error {
	r, err := c.NewReceiverForQueue("q", nil)
	if err != nil {
		return err
	}
	return r.CompleteMessage(context.Background(), &client.ReceivedMessage{LockToken: "t"}, nil)
}

func sendOne(c *client.Client) error {
	s, err := c.NewSender("q", nil)
	if err != nil {
		return err
	}
	return s.SendMessage(context.Background(), text("x"), nil)
}

func cancelOne(c *client.Client) error {
	s, err := c.NewSender("q", nil)
	if err != nil {
		return err
	}
	return s.CancelScheduledMessages(context.Background(), []int64{1}, nil)
}

// What passes is repeated, what does not is returned at once, and what would not be safe is not repeated.
func TestERR_3_WhatIsRepeated(t *testing.T) {
	t.Parallel()
	lost := new("MESSAGE_LOCK_LOST")
	for name, c := range map[string]struct {
		call      func(*client.Client) error
		answers   []any
		calls     int
		want      error // nil: success
		isUnknown bool
	}{
		"send, broken":                   {sendOne, []any{broke, broke, done}, 3, nil, false},
		"send, Redis away":               {sendOne, []any{redisAway, unclear, done}, 3, nil, false},
		"send, throttled":                {sendOne, []any{throttled, done}, 2, nil, false},
		"send, full":                     {sendOne, []any{full, done}, 1, client.CodeEntityFull, false},
		"settle, broken":                 {settleOne, []any{broke, settledAs(nil)}, 2, nil, false},
		"settle, lost":                   {settleOne, []any{settledAs(lost)}, 1, client.CodeMessageLockLost, false},
		"settle, unknown, lost":          {settleOne, []any{unclear, settledAs(lost)}, 2, nil, false},
		"settle, broken, lost":           {settleOne, []any{broke, settledAs(lost)}, 2, nil, false},
		"settle, refused, lost":          {settleOne, []any{redisAway, settledAs(lost)}, 2, client.CodeMessageLockLost, false},
		"settle, unknown, refused, lost": {settleOne, []any{unclear, redisAway, settledAs(lost)}, 3, nil, false},
		"settle, unknown, session lost":  {settleOne, []any{unclear, settledAs(new("SESSION_LOCK_LOST"))}, 2, client.CodeSessionLockLost, false},
		"cancel, Redis away":             {cancelOne, []any{redisAway, &sidebusv1.CancelScheduledResponse{}}, 2, nil, false},
		"cancel, unknown":                {cancelOne, []any{unclear, &sidebusv1.CancelScheduledResponse{}}, 1, client.CodeStoreUnavailable, true},
		"cancel, broken":                 {cancelOne, []any{broke, &sidebusv1.CancelScheduledResponse{}}, 1, client.CodeConnectionLost, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript(c.answers...)
				sidebus := client.NewFromConn(s, nil)
				defer sidebus.Close()
				err := c.call(sidebus)
				if !errors.Is(err, c.want) || s.count() != c.calls {
					t.Errorf("got %v after %d calls, want %v after %d", err, s.count(), c.want, c.calls)
				}
				if err != nil && client.ErrorOf(err).OutcomeUnknown != c.isUnknown {
					t.Errorf("outcome unknown: %t, want %t", !c.isUnknown, c.isUnknown)
				}
			})
		})
	}
}

// Pauses grow to 5 s, are at least what the sidecar asks for, and end before the sidecar forgets the request id.
func TestIDEM_1_RepeatsEndInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(broke)
		sidebus := client.NewFromConn(s, nil)
		defer sidebus.Close()
		err := sendOne(sidebus)
		failed := client.ErrorOf(err)
		if !errors.Is(err, client.CodeConnectionLost) || !failed.OutcomeUnknown || !failed.Retryable || failed.RequestID == "" {
			t.Errorf("got %#v", failed)
		}
		for i, request := range s.seen {
			if id := request.(*sidebusv1.SendRequest).GetRequestId(); id != failed.RequestID {
				t.Errorf("try %d has the request id %q, want %q", i, id, failed.RequestID)
			}
		}
		last := s.calls[len(s.calls)-1]
		if last > 110*time.Second || last < 90*time.Second {
			t.Errorf("the last try was after %s", last)
		}
		for i := 1; i < len(s.calls); i++ {
			want := min(100*time.Millisecond<<(i-1), 5*time.Second)
			if pause := s.calls[i] - s.calls[i-1]; pause < want || pause > want*5/4 {
				t.Errorf("pause %d is %s, want %s to a quarter more", i, pause, want)
			}
		}
	})
}

func TestTHR_2_WaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(throttled, done)
		sidebus := client.NewFromConn(s, nil)
		defer sidebus.Close()
		if err := sendOne(sidebus); err != nil || s.calls[1] < 7*time.Second || s.calls[1] > 9*time.Second {
			t.Errorf("got %v, calls at %v", err, s.calls)
		}
	})
}

// RetryTimeout bounds the repeats, and one below 0 means a single try. A context ends them too, and the error wraps
// both causes.
func TestERR_3_WhoWaitsHowLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for timeout, most := range map[time.Duration]int{-1: 1, time.Second: 4} {
			s := newScript(broke)
			sidebus := client.NewFromConn(s, &client.Options{RetryTimeout: timeout})
			if err := sendOne(sidebus); !errors.Is(err, client.CodeConnectionLost) || s.count() > most {
				t.Errorf("timeout %s: got %v after %d calls", timeout, err, s.count())
			}
			_ = sidebus.Close()
		}
		sidebus := client.NewFromConn(newScript(redisAway), nil)
		defer sidebus.Close()
		sender, err := sidebus.NewSender("q", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err = sender.SendMessage(ctx, text("x"), nil)
		if !errors.Is(err, client.CodeStoreUnavailable) || !errors.Is(err, context.DeadlineExceeded) || status.Code(client.ErrorOf(err)) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

// A call whose context ends while it runs may have taken effect.
func TestERR_6_CancelledCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sidebus := client.NewFromConn(newScript(func(ctx context.Context) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}), nil)
		defer sidebus.Close()
		sender, err := sidebus.NewSender("q", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err = sender.SendMessage(ctx, text("x"), nil)
		if failed := client.ErrorOf(err); failed.Code != client.CodeCancelled || !errors.Is(err, context.Canceled) || !failed.OutcomeUnknown {
			t.Errorf("got %v", err)
		}
	})
}

// renewing is a sidecar with one message, or one session, whose lock a client renews.
type renewing struct {
	grpc.ClientConnInterface

	mu       sync.Mutex
	began    time.Time
	renewals []time.Duration
	isLost   bool
	refuses  bool // to settle
	fails    int  // so many renewals to come
}

const lockTime = 30 * time.Second

func (r *renewing) Invoke(_ context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := timestamppb.New(time.Now().Add(lockTime))
	switch answer := reply.(type) {
	case *sidebusv1.ReceiveResponse:
		answer.Messages = []*sidebusv1.ReceivedMessage{{LockToken: new("t"), LockedUntil: until}}
	case *sidebusv1.SessionsAcceptResponse:
		answer.Session = &sidebusv1.Session{SessionId: "s", LockToken: "t", LockedUntil: until}
	case *sidebusv1.RenewLocksResponse, *sidebusv1.SessionsRenewLockResponse:
		r.renewals = append(r.renewals, time.Since(r.began))
		if r.fails > 0 {
			r.fails--
			return failure(codes.Internal, "INTERNAL", time.Second, nil)
		}
		if locks, isOfMessage := answer.(*sidebusv1.RenewLocksResponse); isOfMessage {
			row := &sidebusv1.RenewLocksResponse_Result{LockToken: "t", LockedUntil: until}
			if r.isLost {
				row = &sidebusv1.RenewLocksResponse_Result{LockToken: "t", Reason: new("MESSAGE_LOCK_LOST")}
			}
			locks.Results = append(locks.Results, row)
			return nil
		}
		if r.isLost {
			return failure(codes.FailedPrecondition, "SESSION_LOCK_LOST", 0, nil)
		}
		answer.(*sidebusv1.SessionsRenewLockResponse).LockedUntil = until
	case *sidebusv1.SettleResponse:
		if r.refuses {
			row := &sidebusv1.SettleResponse_Result{LockToken: "t", Reason: new("MESSAGE_SIZE_EXCEEDED")}
			answer.Results = append(answer.Results, row)
		}
	}
	return nil
}

func (r *renewing) times() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.renewals)
}

// Locks of messages and of sessions are renewed until they are settled, lost or closed, for as long as was asked for.
func TestLOCK_3_AutomaticRenewal(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		isLost bool
		fails  int
		settle time.Duration // after which the message is settled, or the session closed
		want   []time.Duration
	}{
		"for as long as asked":  {false, 0, time.Hour, []time.Duration{10 * s, 20 * s, 30 * s, 40 * s}},
		"until it is settled":   {false, 0, 25 * s, []time.Duration{10 * s, 20 * s}},
		"until it is lost":      {true, 0, time.Hour, []time.Duration{10 * s}},
		"again after a failure": {false, 2, 35 * s, []time.Duration{10 * s, 11 * s, 12 * s, 22 * s, 32 * s}},
	} {
		for _, kind := range []string{"message", "session"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := &renewing{began: time.Now(), isLost: c.isLost, fails: c.fails}
					sidebus := client.NewFromConn(r, nil)
					defer sidebus.Close()
					var settle func() error
					if kind == "message" {
						receiver := newReceiver(t, sidebus, "q", &client.ReceiverOptions{MaxAutoRenew: 45 * s})
						m := receiveOne(t, receiver)
						settle = func() error { return receiver.CompleteMessage(t.Context(), m, nil) }
					} else {
						session, err := sidebus.AcceptNextSessionForQueue(t.Context(), "q", &client.SessionReceiverOptions{MaxAutoRenew: 45 * s})
						if err != nil {
							t.Fatal(err)
						}
						settle = func() error { return session.Close(t.Context()) }
					}
					<-time.After(c.settle)
					if err := settle(); err != nil {
						t.Error(err)
					}
					<-time.After(time.Minute)
					if got := r.times(); !slices.Equal(got, c.want) {
						t.Errorf("renewed after %v, want %v", got, c.want)
					}
				})
			})
		}
	}
}

// A message whose settlement was refused is still locked, so its lock is renewed.
func TestLOCK_3_RenewalAfterARefusedSettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &renewing{began: time.Now(), refuses: true}
		sidebus := client.NewFromConn(r, nil)
		defer sidebus.Close()
		receiver := newReceiver(t, sidebus, "q", &client.ReceiverOptions{MaxAutoRenew: 25 * time.Second})
		if err := receiver.CompleteMessage(t.Context(), receiveOne(t, receiver), nil); !errors.Is(err, client.ErrMessageTooLarge) {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Minute)
		if got, want := r.times(), []time.Duration{10 * time.Second, 20 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("renewed after %v, want %v", got, want)
		}
	})
}
