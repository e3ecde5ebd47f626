package azure

import (
	"strconv"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// TestNothingAcknowledgedIsLostWithRedis kills Redis, which writes each change to its disk, under a sender and then
// under a receiver. What a send has acknowledged arrives, and what a completion has acknowledged does not arrive again.
func TestNothingAcknowledgedIsLostWithRedis(t *testing.T) {
	t.Parallel()
	durable := []string{"--appendfsync", "always"}
	server := redistest.Start(t, durable...)
	t.Cleanup(server.Stop)
	s := sidecartest.Start(t, "--store", server.URL, "--namespace", "n", "--amqp-addr", "127.0.0.1:0")
	l := open(t, s, queue(t, s, `{"lockDuration":"5s","maxDeliveryCount":1000}`), nil)
	kill := func() {
		server.Kill()
		server.Restart(t, durable...)
	}

	const count, kills = 400, 3
	tried, missing := make(chan struct{}, count), make(chan map[string]bool)
	go func() {
		acknowledged := map[string]bool{}
		for i := range count { // what fails is not sent again: it may be there or not
			body := strconv.Itoa(i)
			if l.send.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body)}, nil) == nil {
				acknowledged[body] = true
			}
			tried <- struct{}{}
		}
		missing <- acknowledged
	}()
	for range kills {
		for range count / (kills + 1) {
			<-tried
		}
		kill()
	}
	want := <-missing
	if len(want) < count/2 {
		t.Fatalf("only %d of %d sends succeeded", len(want), count)
	}

	completed, left := map[int64]bool{}, kills // by number: the SDK repeats a send whose answer was lost
	for len(want) > 0 {
		for _, m := range get(t, l.receive, 1) {
			if completed[*m.SequenceNumber] {
				t.Errorf("message %d arrived after its completion", *m.SequenceNumber)
			}
			killed := make(chan struct{})
			if left > 0 && len(want) < count*left/(kills+1) {
				left--
				go func() {
					defer close(killed)
					kill()
				}()
			} else {
				close(killed)
			}
			completed[*m.SequenceNumber] = l.receive.CompleteMessage(patient(t), m, nil) == nil
			<-killed
			delete(want, string(m.Body))
		}
	}
}
