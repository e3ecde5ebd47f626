package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sidebus/sidebus/test/figures"
)

const prefetch = 500

// rabbitQuorum is one node with a quorum queue. Each of the callers waits for the confirm of its message.
func rabbitQuorum(ctx context.Context, dir string) (*opened, error) {
	node, err := startRabbit(ctx, dir)
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
	return &opened{
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

type rabbitNode struct {
	url  string
	cpu  func() time.Duration
	stop func()
}

// rabbitPrograms are where packages put the server's own script. The one that Debian puts on PATH runs as the user
// rabbitmq only, with the files of the system.
var rabbitPrograms = []string{"/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"}

// startRabbit runs a node with its files in dir and a port mapper (epmd) of its own, so that it meets no other one.
func startRabbit(ctx context.Context, dir string) (*rabbitNode, error) {
	var program string
	for _, name := range rabbitPrograms {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, errors.New("rabbitmq-server is not installed; run test/install.sh rabbitmq, " +
			"or leave it out with -only")
	}
	port, mapper, distribution := freePort(), freePort(), freePort()
	env := append(
		os.Environ(), "HOME="+dir, "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT="+mapper,
		"RABBITMQ_NODENAME=bench-"+port+"@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT="+port,
		"RABBITMQ_DIST_PORT="+distribution, "RABBITMQ_MNESIA_BASE="+dir, "RABBITMQ_LOG_BASE="+dir,
		"RABBITMQ_CONFIG_FILE="+dir+"/none", "RABBITMQ_CONF_ENV_FILE="+dir+"/none",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+dir+"/none", "RABBITMQ_PID_FILE="+dir+"/pid",
	)
	epmd, command := exec.CommandContext(ctx, "epmd"), exec.CommandContext(ctx, program)
	epmd.Env, command.Env, command.Dir = env, env, dir
	if err := errors.Join(epmd.Start(), command.Start()); err != nil {
		return nil, err
	}
	pid := 0
	stop := func() {
		beam, err := os.FindProcess(pid)
		if pid == 0 || err != nil {
			beam = command.Process
		}
		_ = beam.Kill()
		_ = command.Wait() // the script ends with what it runs
		_ = epmd.Process.Kill()
		_ = epmd.Wait()
	}
	url := "amqp://guest:guest@127.0.0.1:" + port
	err := until(ctx, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		conn, err := amqp.Dial(url)
		if err != nil {
			return false
		}
		return conn.Close() == nil && pid > 0
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("%s does not answer: %w", program, err)
	}
	return &rabbitNode{url: url, cpu: figures.CPUOf(pid), stop: stop}, nil
}
