// Package verbs has the verbs for people and scripts who look after a sidecar, its queues and topics, a file each.
package verbs

import "github.com/alecthomas/kong"

// Grammar are the verbs as the parser reads them.
type Grammar struct {
	VersionFlag kong.VersionFlag `name:"version" help:"Print the version and exit."`

	Wait    waitCommand    `cmd:"" help:"Wait until the sidecar is ready. The exit code is 1 if it is not ready in time."`
	Drain   drainCommand   `cmd:"" help:"Stop new receives on the sidecar, wait until clients hold no messages or sessions, and print how many they still hold."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	HelpOf     helpCommand       `cmd:"" name:"help" help:"Show the help of a command."`

	Send    sendCommand    `cmd:"" group:"verbs" help:"Send messages."`
	Receive receiveCommand `cmd:"" group:"verbs" help:"Receive messages and settle them."`
	Peek    peekCommand    `cmd:"" group:"verbs" help:"Show messages without receiving them."`
	Session sessionCommand `cmd:"" group:"verbs" help:"List sessions, read and set their state, unblock them."`
	DLQ     dlqCommand     `cmd:"" name:"dlq" group:"verbs" help:"List, count, resubmit, edit and delete dead letters."`
	Purge   purgeCommand   `cmd:"" group:"verbs" help:"Delete many messages."`
	Entity  entityCommand  `cmd:"" group:"verbs" help:"Manage queues, topics and subscriptions."`
	Rule    ruleCommand    `cmd:"" group:"verbs" help:"Manage and test the rules of subscriptions."`
	Top     topCommand     `cmd:"" group:"verbs" help:"Show the fullest queues and subscriptions, refreshed."`
	Stats   statsCommand   `cmd:"" group:"verbs" help:"Count the messages of queues, topics and subscriptions."`
}

// helpCommand is listed only: "help VERB" is parsed as "VERB --help".
type helpCommand struct {
	Verb []string `arg:"" optional:"" help:"The command, such as send or dlq list."`
}

// Run does nothing.
func (helpCommand) Run() error { return nil }
