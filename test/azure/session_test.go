package azure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func distant() time.Time { return time.Now().Add(time.Hour) }

func TestSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{"requiresSession":true,"lockDuration":"10s"}`)
	l := open(t, s, name, nil)
	send := func(session, body string) {
		t.Helper()
		must(t, l.send.SendMessage(patient(t), &azservicebus.Message{Body: []byte(body), SessionID: &session}, nil))
	}
	send("a", "1")
	send("a", "2")
	send("b", "3")

	a, err := l.AcceptSessionForQueue(patient(t), name, "a", nil)
	must(t, err)
	if a.SessionID() != "a" || !a.LockedUntil().After(time.Now()) {
		t.Errorf("session %q until %s", a.SessionID(), a.LockedUntil())
	}
	for i, m := range get(t, a, 2) {
		if string(m.Body) != []string{"1", "2"}[i] || *m.SessionID != "a" {
			t.Errorf("message %d is %s", i, m.Body)
		}
		must(t, a.CompleteMessage(patient(t), m, nil))
	}

	if state, err := a.GetSessionState(patient(t), nil); err != nil || state != nil {
		t.Errorf("state is %q, %v", state, err)
	}
	must(t, a.SetSessionState(patient(t), []byte("half"), nil))
	if state, err := a.GetSessionState(patient(t), nil); err != nil || string(state) != "half" {
		t.Errorf("state is %q, %v", state, err)
	}
	before := a.LockedUntil()
	must(t, a.RenewSessionLock(patient(t), nil))
	if !a.LockedUntil().After(before) {
		t.Errorf("renewed until %s, was %s", a.LockedUntil(), before)
	}

	other := connect(t, connectionString(s))
	brief, cancel := context.WithTimeout(patient(t), 2*time.Second)
	defer cancel()
	if _, err := other.AcceptSessionForQueue(brief, name, "a", nil); err == nil {
		t.Error("accepted twice")
	}
	next, err := other.AcceptNextSessionForQueue(patient(t), name, nil)
	must(t, err)
	if next.SessionID() != "b" {
		t.Errorf("the next session is %q", next.SessionID())
	}
	get(t, next, 1)
	must(t, next.Close(patient(t))) // without settling: it is free again at once, uncounted
	next, err = other.AcceptNextSessionForQueue(patient(t), name, nil)
	must(t, err)
	m := get(t, next, 1)[0]
	if string(m.Body) != "3" || m.DeliveryCount != 1 {
		t.Errorf("got %s, count %d", m.Body, m.DeliveryCount)
	}
	must(t, next.DeferMessage(patient(t), m, nil))
	deferred, err := next.ReceiveDeferredMessages(patient(t), []int64{*m.SequenceNumber}, nil)
	must(t, err)
	must(t, next.CompleteMessage(patient(t), deferred[0], nil))

	receiver, err := l.NewReceiverForQueue(name, nil)
	must(t, err)
	if _, err := receiver.ReceiveMessages(patient(t), 1, nil); err == nil {
		t.Error("received without a session")
	}
}

func TestNextSessionIsAwaited(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{"requiresSession":true}`)
	l := open(t, s, name, nil)
	accepted := make(chan error, 1)
	go func() {
		session, err := l.AcceptNextSessionForQueue(patient(t), name, nil)
		if err == nil && session.SessionID() != "late" {
			err = errors.New("accepted " + session.SessionID())
		}
		accepted <- err
	}()
	must(t, l.send.SendMessage(patient(t), &azservicebus.Message{SessionID: pointer("late")}, nil))
	must(t, <-accepted)
}

func TestSessionLockEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{"requiresSession":true,"lockDuration":"5s"}`)
	l := open(t, s, name, nil)
	must(t, l.send.SendMessage(patient(t), &azservicebus.Message{Body: []byte("x"), SessionID: pointer("a")}, nil))
	first, err := l.AcceptSessionForQueue(patient(t), name, "a", nil)
	must(t, err)
	m := get(t, first, 1)[0]
	other := connect(t, connectionString(s))
	again, err := other.AcceptNextSessionForQueue(patient(t), name, nil) // waits for the end of the lock
	must(t, err)
	if again.SessionID() != "a" {
		t.Errorf("the next session is %q", again.SessionID())
	}
	mine := get(t, again, 1)[0]
	must(t, again.CompleteMessage(patient(t), mine, nil))
	if err := first.CompleteMessage(patient(t), m, nil); err == nil {
		t.Error("completed with a lost lock")
	}
}
