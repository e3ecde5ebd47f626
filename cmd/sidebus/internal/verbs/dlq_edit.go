package verbs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type dlqEditCommand struct {
	dlqQueue

	Number int64  `name:"number" required:"" placeholder:"N" help:"Sequence number of the dead letter."`
	To     string `name:"to" placeholder:"TARGET" help:"Queue, such as orders, or topic, such as topics/news. Default: the queue itself. Required for a subscription."`
	JSON   bool   `name:"json" help:"Edit the message as JSON instead of YAML."`

	confirmation
	clientSettings
}

// Run lets the operator edit a dead letter, sends what was edited and removes the dead letter.
//
// The message cannot be lost wherever this is killed. While the editor runs, the dead letter stays as it is and nothing
// is locked. After the confirmation it is locked, so that no other client resubmits it, the edited message is sent, and
// only when the sidecar has stored that is the dead letter completed. Between the last two steps both exist: the dead
// letter returns when its lock expires. A repeat of the same edit within two minutes has the same request id, which the
// sidecar does not store twice.
func (d *dlqEditCommand) Run(ctx context.Context, to terminal.Streams) error {
	target := d.To
	switch {
	case target == "" && client.Kind(d.resource()) == semantics.SubscriptionKind:
		return cli.Misuse(
			"--to is missing: a message cannot be sent to a subscription alone; use --to topics/TOPIC or --to QUEUE",
		)
	case target == "":
		target = d.resource()
	}
	if err := d.check(to); err != nil {
		return err
	}
	e := &editing{flags: d, to: to, target: client.Resource(target)}
	err := d.operate(ctx, to, func(ctx context.Context, o *operator) (err error) {
		e.original, err = o.peekAt(ctx, d.resource(), d.Number, d.subQueue())
		return err
	})
	if err != nil {
		return err
	}
	e.original.ScheduledEnqueueTime = nil // it has passed
	return e.run(ctx)
}

// editing is one edit under way.
type editing struct {
	flags    *dlqEditCommand
	to       terminal.Streams
	o        *operator // nil while the editor runs
	original *sidebusv1.Message
	target   string
	path     string // of the file in the editor
}

// run edits a dead letter. The file is kept only if there was a failure after a change.
func (e *editing) run(ctx context.Context) error {
	before, err := e.write()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "sidebus-edit-")
	if err != nil {
		return fmt.Errorf("create a file for the editor: %w", err)
	}
	e.path = filepath.Join(directory, fmt.Sprintf("dead-letter-%d.%s", e.flags.Number, e.format()))
	err = e.edit(ctx, before)
	if err == nil {
		return os.RemoveAll(directory)
	}
	if text, readErr := os.ReadFile(e.path); readErr == nil && !bytes.Equal(text, before) {
		return fmt.Errorf("%w\nthe edited text is kept in %s", err, e.path)
	}
	return errors.Join(err, os.RemoveAll(directory))
}

func (e *editing) format() string {
	if e.flags.JSON {
		return "json"
	}
	return "yaml"
}

// edit goes from the text of the dead letter to the new message.
func (e *editing) edit(ctx context.Context, before []byte) error {
	if err := os.WriteFile(e.path, before, 0o600); err != nil {
		return fmt.Errorf("create a file for the editor: %w", err)
	}
	if err := e.runEditor(ctx); err != nil {
		return err
	}
	after, err := os.ReadFile(e.path)
	if err != nil {
		return fmt.Errorf("read the edited file: %w", err)
	}
	old, err := e.read(before)
	if err != nil {
		return err
	}
	edited, err := e.read(after)
	if err != nil {
		return err
	}
	if proto.Equal(old, edited) {
		fmt.Fprintf(
			e.to.Stderr,
			"sidebus: no changes, nothing was sent; \"sidebus dlq resubmit %s --number %d\" sends the message as it is\n",
			client.Name(e.flags.resource()), e.flags.Number,
		)
		return nil
	}
	for _, line := range e.differences(old, edited) {
		fmt.Fprintln(e.to.Stderr, line)
	}
	if proto.Equal(contentOf(old), contentOf(edited)) {
		edited.Content = e.original.GetContent() // byte for byte: the editor's form loses spaces and escapes of JSON
	}
	text := fmt.Sprintf(
		"This sends the edited message to %s and deletes dead letter %d of %s.", e.target, e.flags.Number, e.flags.resource(),
	)
	return e.flags.operate(ctx, e.to, func(ctx context.Context, o *operator) error {
		e.o = o
		if err := o.agree(ctx, &e.flags.confirmation, text); err != nil {
			return err
		}
		return e.replace(ctx, edited)
	})
}

// contentOf is a message with the body of m alone.
func contentOf(m *sidebusv1.Message) *sidebusv1.Message {
	return &sidebusv1.Message{Content: m.GetContent()}
}

// runEditor runs $VISUAL or $EDITOR on the file. They may have arguments. An interrupt from the keyboard is for the
// editor.
func (e *editing) runEditor(ctx context.Context) error {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt)
	defer signal.Stop(ignored)
	ctx = context.WithoutCancel(ctx) // the editor decides what an interrupt does
	//nolint:gosec // the operator's own editor
	command := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", e.path)
	if file, isFile := e.to.Stdin.(*os.File); isFile { // only a file is not read ahead
		command.Stdin = file
	}
	command.Stdout, command.Stderr = e.to.Stderr, e.to.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf(
			"the editor %q failed, and nothing was sent: %w; VISUAL or EDITOR names the editor", editor, err,
		)
	}
	return nil
}

// write returns the text to edit.
func (e *editing) write() ([]byte, error) {
	document := client.JSON(e.original)
	var text bytes.Buffer
	if e.flags.JSON {
		err := yamlfile.WriteJSON(&text, document)
		return text.Bytes(), err
	}
	nodes, err := yamlfile.FromJSON(document)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&text, "# Dead letter %d of %s. It is sent to %s when you save, close the editor and confirm.\n"+
		"# Without changes nothing is sent. The body is text, json, or body in base64.\n", e.flags.Number, e.flags.resource(), e.target)
	err = yamlfile.Write(&text, nodes)
	return text.Bytes(), err
}

// read reads an edited text.
func (e *editing) read(text []byte) (*sidebusv1.Message, error) {
	node, err := yamlfile.Parse(e.path, text)
	if err != nil {
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	document, err := node.Document()
	if err != nil {
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	m, err := client.ReadMessage(document)
	if err != nil {
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	return m, nil
}

// differences shows what was changed, a line each.
func (e *editing) differences(before, after *sidebusv1.Message) []string {
	was, is := lines(before), lines(after)
	var all []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			all = append(all, e.to.PaintError(terminal.Red, "- "+line))
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			all = append(all, e.to.PaintError(terminal.Green, "+ "+line))
		}
	}
	return all
}

// lines are the properties of a message, each "name: value".
func lines(m *sidebusv1.Message) []string {
	var all []string
	for name, value := range m.GetProperties() {
		text := client.Values(map[string]*sidebusv1.Value{name: value})
		_, text, _ = bytes.Cut(text, []byte(":"))
		all = append(all, client.OneLine("properties."+name+": "+strings.TrimSuffix(string(text), "}")))
	}
	slices.Sort(all)
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.IsMap() || !m.ProtoReflect().Has(field) {
			continue
		}
		one := &sidebusv1.Message{}
		one.ProtoReflect().Set(field, m.ProtoReflect().Get(field))
		text := strings.TrimSuffix(strings.TrimPrefix(string(client.JSON(one)), "{"), "}")
		const none = `"properties":{}` // which is written in any case
		text = strings.TrimSuffix(strings.TrimPrefix(text, none+","), ","+none)
		_, text, _ = strings.Cut(text, ":")
		all = append(all, client.OneLine(field.JSONName()+": "+text))
	}
	return all
}

// replace locks the dead letter, sends the edited message and completes the dead letter, in this order.
func (e *editing) replace(ctx context.Context, edited *sidebusv1.Message) error {
	locked, err := e.o.ReceiveBySequence(ctx, &sidebusv1.ReceiveBySequenceRequest{
		Source: e.flags.resource(), SubQueue: e.flags.subQueue(), SequenceNumbers: []int64{e.flags.Number},
	})
	if err != nil {
		return fmt.Errorf("nothing was sent: %w", err)
	}
	if len(locked.GetMessages()) != 1 {
		return fmt.Errorf(
			"nothing was sent: dead letter %d of %s is gone or locked by another client; list the dead letters to see what is left", e.flags.Number, e.flags.resource(),
		)
	}
	ctx = context.WithoutCancel(ctx) // a signal does not separate the steps that follow
	tokens := []string{locked.GetMessages()[0].GetLockToken()}
	answer, err := e.send(ctx, edited, locked.GetMessages()[0])
	if err != nil {
		_, released := e.o.Client.Release(ctx, &sidebusv1.ReleaseRequest{
			Source: e.flags.resource(), SubQueue: e.flags.subQueue(), LockTokens: tokens,
		})
		return errors.Join(fmt.Errorf("dead letter %d stays: %w", e.flags.Number, err), released)
	}
	settled, err := e.o.Client.Complete(ctx, &sidebusv1.CompleteRequest{
		Source: e.flags.resource(), SubQueue: e.flags.subQueue(), LockTokens: tokens,
	})
	if err == nil && settled.GetResults()[0].GetReason() != "" {
		err = errors.New(settled.GetResults()[0].GetReason())
	}
	number := answer.GetResults()[0].GetSequenceNumber()
	if err != nil {
		return fmt.Errorf(
			"the edited message was sent to %s with number %d, but dead letter %d could not be deleted: %w", e.target,
			number, e.flags.Number, err,
		)
	}
	if e.o.asJSON {
		return e.o.results(answer)
	}
	return e.o.say(
		"sent the edited message to %s with number %d and deleted dead letter %d", e.target, number, e.flags.Number,
	)
}

// send sends the edited message in place of the dead letter that is locked. A queue that was deleted and created again
// counts from 1 again, so the number alone could lead to another dead letter than the one that was edited.
func (e *editing) send(
	ctx context.Context, edited *sidebusv1.Message, locked *sidebusv1.ReceivedMessage,
) (*sidebusv1.SendResponse, error) {
	now, err := client.Sent(locked)
	if err != nil {
		return nil, err
	}
	if now.ScheduledEnqueueTime = nil; !proto.Equal(now, e.original) {
		return nil, errors.New("it is not the message that you edited, and nothing was sent; list the dead letters to find yours")
	}
	answer, err := e.o.Send(ctx, &sidebusv1.SendRequest{
		Target:    e.target,
		Messages:  []*sidebusv1.Message{edited},
		RequestId: proto.String(e.requestID(edited, locked)),
	})
	if err == nil && answer.GetResults()[0].GetDeduplicated() {
		err = fmt.Errorf("%s dropped the edited message as a duplicate; change its messageId", e.target)
	}
	return answer, err
}

// requestID is the same for the same edit of the same dead letter. The time distinguishes dead letters with the same
// number.
func (e *editing) requestID(edited *sidebusv1.Message, locked *sidebusv1.ReceivedMessage) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s %s", e.flags.resource(), e.flags.subQueue(), e.flags.Number,
		locked.GetEnqueuedTime().AsTime(), client.JSON(edited)))
	return "edit-" + hex.EncodeToString(sum[:16])
}
