package azure

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestTopicsAndSubscriptions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Must(t, "PUT", "/v1/topics/news", `{}`)
	s.Must(t, "PUT", "/v1/topics/news/subscriptions/all", `{"maxDeliveryCount":1}`)
	s.Must(t, "PUT", "/v1/topics/news/subscriptions/eu", `{}`)
	s.Must(t, "DELETE", "/v1/topics/news/subscriptions/eu/rules/$Default", "")
	s.Must(t, "PUT", "/v1/topics/news/subscriptions/eu/rules/eu", `{"filter":{"sql":{"expression":"region = 'eu'"}}}`)

	client := connect(t, connectionString(s))
	sender, err := client.NewSender("news", nil)
	must(t, err)
	for _, region := range []string{"us", "eu"} {
		must(t, sender.SendMessage(patient(t), &azservicebus.Message{
			Body: []byte(region), ApplicationProperties: map[string]any{"region": region},
		}, nil))
	}
	eu, err := client.NewReceiverForSubscription("news", "eu", nil)
	must(t, err)
	m := get(t, eu, 1)[0]
	if string(m.Body) != "eu" || *m.SequenceNumber != 1 || *m.EnqueuedSequenceNumber != 2 {
		t.Errorf("got %s with %d of %d", m.Body, *m.SequenceNumber, *m.EnqueuedSequenceNumber)
	}
	must(t, eu.CompleteMessage(patient(t), m, nil))

	all, err := client.NewReceiverForSubscription("News", "All", nil)
	must(t, err)
	for _, m := range get(t, all, 2) { // the only delivery, so that an abandoned message becomes a dead letter
		must(t, all.AbandonMessage(patient(t), m, nil))
	}
	dead, err := client.NewReceiverForSubscription("news", "all", &azservicebus.ReceiverOptions{
		SubQueue: azservicebus.SubQueueDeadLetter,
	})
	must(t, err)
	for _, m := range get(t, dead, 2) {
		if !strings.Contains(*m.DeadLetterReason, "MaxDeliveryCount") {
			t.Errorf("reason is %q", *m.DeadLetterReason)
		}
		must(t, dead.CompleteMessage(patient(t), m, nil))
	}

	numbers, err := sender.ScheduleMessages(patient(t), []*azservicebus.Message{{Body: []byte("later")}}, distant(), nil)
	must(t, err)
	must(t, sender.CancelScheduledMessages(patient(t), numbers, nil))
}
