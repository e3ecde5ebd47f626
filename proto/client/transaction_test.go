package client_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// A worker completes a message of a session, stores how far it is and replies, all in one.
func TestTX_11_TransactInGo(t *testing.T) {
	t.Parallel()
	c := connect(t, target, nil)
	work, replies := queueOf(t, c, &sidebusv1.Queue{RequiresSession: proto.Bool(true)}), queueOf(t, c, &sidebusv1.Queue{})
	id := "s"
	_, err := newSender(t, c, work).SendMessages(t.Context(), []*client.Message{{Body: []byte("1"), SessionID: &id}}, nil)
	must(t, err)
	session, err := c.AcceptSessionForQueue(t.Context(), work, id, nil)
	must(t, err)
	message := receiveOne(t, session)
	var rows [][]client.SentMessage
	run := func() error {
		rows, err = c.Transact(t.Context(), func(tx *client.Tx) error {
			tx.SendToQueue(replies, text("done"))
			tx.SetSessionState(session, []byte("step 1"))
			tx.CompleteMessage(session, message)
			return nil
		}, nil)
		return err
	}
	must(t, run())
	if len(rows) != 3 || len(rows[0]) != 1 || rows[0][0].SequenceNumber != 1 {
		t.Errorf("got rows %+v", rows)
	}
	state, err := session.GetSessionState(t.Context(), nil)
	must(t, err)
	if string(state) != "step 1" {
		t.Errorf("the state is %q", state)
	}
	var failure *client.Error
	if err := run(); !errors.As(err, &failure) || failure.Code != client.CodeMessageLockLost || failure.Details["operation"] != "2" {
		t.Errorf("the same again as a new transaction: %v", err)
	}
	stop := errors.New("stop")
	if _, err := c.Transact(t.Context(), func(*client.Tx) error { return stop }, nil); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if got := receiveOne(t, newReceiver(t, c, replies, nil)); string(got.Body) != "done" || got.SequenceNumber != 1 {
		t.Errorf("the reply is %+v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
