// Command news is a reader of the news: it takes what comes to a subscription and prints it, one news a line, as JSON,
// until it is told to stop. See README.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sidebus/sidebus/proto/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(
			os.Stderr,
			"usage: news SUBSCRIPTION, such as topics/news/subscriptions/europe, with the sidecar's address in $GRPC",
		)
		os.Exit(2)
	}
	if err := read(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "news:", err)
		os.Exit(1)
	}
}

// news is what the reader sees of a message.
type news struct {
	Number     int64  `json:"number"` // given by the topic, so the same in every subscription
	Text       string `json:"text"`
	RuleName   string `json:"ruleName"` // "" on a copy that no action made
	Edition    string `json:"edition"`  // set by the action of the digest
	TimeToLive string `json:"timeToLive"`
}

// read prints all news of a subscription. To its readers it is a queue: with two of them each news goes to one.
func read(ctx context.Context, subscription string) error {
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	topic, name, _ := strings.Cut(strings.TrimPrefix(subscription, "topics/"), "/subscriptions/")
	receiver, err := sidebus.NewReceiverForSubscription(topic, name, nil)
	if err != nil {
		return err
	}
	paper := json.NewEncoder(os.Stdout)
	return receiver.Handle(ctx, func(_ context.Context, m *client.HandledMessage) error {
		n := news{Number: m.EnqueuedSequenceNumber, Text: string(m.Body)}
		n.RuleName, _ = m.ApplicationProperties["RuleName"].(string)
		n.Edition, _ = m.ApplicationProperties["edition"].(string)
		if m.TimeToLive != nil {
			n.TimeToLive = m.TimeToLive.String()
		}
		return paper.Encode(n)
	}, &client.HandleOptions{OnError: func(err error) { fmt.Fprintln(os.Stderr, "news:", err) }})
}
