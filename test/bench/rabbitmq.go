package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sidebus/sidebus/test/figures"
)

const prefetch = 500

// rabbitQuorum is one node with a quorum queue, of this system or of another one in a folder. Each of the callers waits
// for the confirm of its message.
func rabbitQuorum(root string) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) { return openRabbit(ctx, root, dir) }
}

func openRabbit(ctx context.Context, root, dir string) (*opened, error) {
	node, err := startRabbit(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	publishing, err := amqp.Dial(node.url)
	if err != nil {
		node.stop()
		return nil, err
	}
	consuming, err := amqp.Dial(node.url)
	if err != nil {
		node.stop()
		return nil, err
	}
	channel, err := consuming.Channel()
	if err == nil {
		_, err = channel.QueueDeclare("bench", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	}
	if err != nil {
		node.stop()
		return nil, err
	}
	carry := func(ctx context.Context, messages int) error {
		acknowledged := make(chan error, 1)
		go func() { acknowledged <- consume(consuming, messages) }()
		publish := func(more func() bool) error { return confirm(ctx, publishing, more) }
		if err := fromCallers(messages, publish); err != nil {
			return err
		}
		return <-acknowledged
	}
	version, _ := consuming.Properties["version"].(string)
	own := ""
	if root != "" {
		own = version
	}
	return &opened{
		version:  own,
		round:    carrying(processes{"client": figures.OwnCPU, "server": node.cpu}, carry),
		versions: map[string]string{"rabbitmq": version, "amqp091-go": moduleVersion("github.com/rabbitmq/amqp091-go")},
		settings: map[string]string{
			"client": "64 callers, a channel each, wait for the confirm of each message; prefetch 500, an ack for each message",
			"server": "one node, quorum queue, persistent messages, no plugins; TCP",
		},
		stop: func() { _ = publishing.Close(); _ = consuming.Close(); node.stop() },
	}, nil
}

// confirm publishes one message after the other on a channel of its own.
func confirm(ctx context.Context, conn *amqp.Connection, more func() bool) error {
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	defer channel.Close() //nolint:errcheck // every message was confirmed
	if err := channel.Confirm(false); err != nil {
		return err
	}
	body := make([]byte, bodySize)
	for more() {
		sent, err := channel.PublishWithDeferredConfirmWithContext(
			ctx, "", "bench", true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body},
		)
		if err != nil {
			return err
		}
		if is, err := sent.WaitContext(ctx); err != nil || !is {
			return fmt.Errorf("not confirmed: %w", err)
		}
	}
	return nil
}

// consume acknowledges each message. It returns when the broker has processed the last acknowledgement.
func consume(conn *amqp.Connection, messages int) error {
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	defer channel.Close() //nolint:errcheck // every message was acknowledged
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.Consume("bench", "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for range messages {
		d, is := <-deliveries
		if !is {
			return errors.New("the broker closed the channel")
		}
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	_, err = channel.QueueDeclarePassive("bench", true, false, false, false, nil) // answered after the acknowledgements
	return err
}
