package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// TransactionResult is what became of a transaction that took effect.
type TransactionResult struct {
	Results  []OperationResult // in the order of the operations
	Repeated bool              // it took effect before, under the same request id

	Operations []semantics.Operation // as they were run; nil if Repeated
}

// OperationResult is what became of one of its operations.
type OperationResult struct {
	Sent    []semantics.SendResult // of a send
	Version int64                  // of the new state of a session, 0 for none
}

// Transact runs operations, all of them in one atomic step or none (TX-11). It checks the arguments of each as
// its verb does, and fills in message ids. The failure of an operation is that of its verb, with DetailOperation; a
// token that does not hold fails all with MESSAGE_LOCK_LOST. With a request id, a repeat within two minutes returns the
// first answer (TX-12). Further failures: TRANSACTION_TOO_LARGE (TX-3), INVALID_ARGUMENT for a session whose state is
// set twice, and those of the store: see semantics.Transactor. When the store cannot be reached it is tried again for
// some seconds, as a send is (SEND-2).
func (b *Broker) Transact(
	ctx context.Context, requestID *string, operations []semantics.Operation,
) (*TransactionResult, error) {
	if err := b.checkOperations(operations); err != nil {
		return nil, err
	}
	var once *semantics.Once
	if requestID != nil {
		if err := checkRequestID(*requestID); err != nil {
			return nil, err
		}
		once = &semantics.Once{RequestID: *requestID, Digest: digestOfOperations(operations)}
	}
	if err := b.admit(costOf(operations)); err != nil {
		return nil, err
	}
	return b.transact(ctx, once, operations)
}

// transact runs operations that were checked.
func (b *Broker) transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) (*TransactionResult, error) {
	messages := messagesOf(operations)
	seed := semantics.Once{Seed: semantics.NewRandomUUID().String()}
	if once != nil {
		once.Seed = seed.Seed
	}
	made := fillIDs(seed, messages)
	stamped := b.stamps.addToAll(ctx, operations)
	var outcome semantics.TransactionOutcome
	err := b.patiently(ctx, func() error {
		outcome = b.store.Transact(ctx, once, operations)
		return outcome.Err
	})
	if semantics.CodeOf(err).Took() {
		b.afterTransaction(ctx, operations)
	}
	if err != nil {
		clearIDs(messages, made)
		stamped.undo()
		if once != nil {
			err = withNextStep(
				err, "repeat it with the same id within "+semantics.RequestsKeptFor.String()+", which does nothing twice",
			)
		}
		return nil, err
	}
	result := &TransactionResult{
		Results: make([]OperationResult, len(operations)), Repeated: outcome.Repeats != nil,
	}
	if !result.Repeated {
		result.Operations = operations
	}
	place := 0
	for i, o := range operations {
		done := &result.Results[i]
		done.Version = outcome.Results[i].Version
		for j, m := range o.Messages {
			id := m.MessageID
			if outcome.Repeats != nil && made[place] {
				id = semantics.IDFrom(outcome.Repeats.Seed, place)
			}
			done.Sent = append(done.Sent, semantics.SendResult{Stored: outcome.Results[i].Stored[j], MessageID: id})
			place++
		}
	}
	return result, nil
}

// afterTransaction notes the locks that ended, and makes the copies of what topics have got. A sweeper makes them if
// that fails.
func (b *Broker) afterTransaction(ctx context.Context, operations []semantics.Operation) {
	for _, o := range operations {
		if o.Verb.Settles() {
			b.held.ended(o.Source, o.Tokens, make([]semantics.Code, len(o.Tokens)))
		}
	}
	done := map[string]bool{}
	for _, o := range operations {
		if topic := semantics.Fold(o.Source.Path); o.Verb == semantics.OperationSend && o.IsTopic && !done[topic] {
			done[topic] = true
			for range semantics.MaxTransactionItems / activateStep {
				if more, err := b.activateSome(context.WithoutCancel(ctx), o.Source.Path); err != nil || !more {
					break
				}
			}
		}
	}
}

// checkOperations checks the arguments of all operations and their bounds, and parses their addresses.
func (b *Broker) checkOperations(operations []semantics.Operation) error {
	if len(operations) == 0 {
		return semantics.InvalidField("operations", "must contain at least one operation")
	}
	if n := len(operations); n > semantics.MaxOperations {
		return semantics.TransactionLarge("operations", int64(n), semantics.MaxOperations)
	}
	var total transactionLoad
	states := map[semantics.Source]bool{}
	for i := range operations {
		o := &operations[i]
		err := b.checkOperation(o)
		if err == nil && o.Verb == semantics.OperationSetState {
			if states[o.Source.Fold()] {
				err = semantics.InvalidField("operations", "sets the state of one session twice")
			}
			states[o.Source.Fold()] = true
		}
		if err != nil {
			return semantics.RefusedOperation(err, i)
		}
		total.add(o)
	}
	return total.check()
}

// checkOperation checks one operation as the Broker's method of its verb does.
func (b *Broker) checkOperation(o *semantics.Operation) (err error) {
	switch o.Verb {
	case semantics.OperationSend:
		if err = checkTarget(o); err == nil {
			err = checkBatch(o.Messages)
		}
		for _, m := range o.Messages {
			m.ScheduledAt = m.ScheduledAt.UTC().Truncate(time.Millisecond)
		}
		return err
	case semantics.OperationCancel:
		if err = checkTarget(o); err == nil {
			err = checkNumbers(o.Numbers, MaxCancelNumbers)
		}
		return err
	case semantics.OperationSetState:
		o.Source, err = b.checkHeldSession(o.Source)
		return err
	case semantics.OperationAbandon:
		err = checkDelay(o.Abandon.Delay)
	case semantics.OperationDeadLetter:
		return b.checkDeadLetter(o)
	case semantics.OperationComplete, semantics.OperationDefer:
	}
	if err == nil {
		err = semantics.CheckChanges(o.Properties)
	}
	if err == nil {
		o.Source, err = b.checkTokens(o.Source, o.Tokens, semantics.MaxSettleTokens)
	}
	return err
}

func (b *Broker) checkDeadLetter(o *semantics.Operation) (err error) {
	options := DeadLetterOptions{Reason: o.Texts.Reason, Description: o.Texts.Description, Properties: o.Properties}
	if o.Texts, o.Properties, err = options.split(); err != nil {
		return err
	}
	if o.Source.SubQueue.IsDeadLetters() {
		return semantics.Errorf(semantics.InvalidOperation, deadLetterSourceText).
			With(semantics.DetailSubQueue, o.Source.SubQueue.String())
	}
	o.Source, err = b.checkTokens(o.Source, o.Tokens, semantics.MaxSettleTokens)
	return err
}

func checkTarget(o *semantics.Operation) error {
	target, err := semantics.Target{Path: o.Source.Path, IsTopic: o.IsTopic}.Parse()
	o.Source = semantics.Source{Path: target.Path}
	return err
}

// transactionLoad is what the operations of a transaction have together.
type transactionLoad struct {
	items, ending int
	bytes         int64
}

func (l *transactionLoad) add(o *semantics.Operation) {
	l.items += len(o.Messages) + len(o.Tokens) + len(o.Numbers)
	if o.Verb.MayDeadLetter() {
		l.ending += len(o.Tokens)
	}
	l.bytes += int64(len(o.State))
	for _, m := range o.Messages {
		l.bytes += m.Size()
	}
	l.bytes += int64(len(o.Tokens)) * sizeOfChanges(o)
}

// sizeOfChanges returns how many bytes each message that an operation settles gets.
func sizeOfChanges(o *semantics.Operation) int64 {
	size := 0
	for name, value := range o.Properties {
		size += len(name) + value.Size()
	}
	for _, text := range []*string{o.Texts.Reason, o.Texts.Description} {
		if text != nil {
			size += len(*text)
		}
	}
	return int64(size)
}

func (l *transactionLoad) check() error {
	switch {
	case l.items > semantics.MaxTransactionItems:
		return semantics.TransactionLarge(
			"messages, tokens and numbers", int64(l.items), semantics.MaxTransactionItems,
		)
	case l.ending > semantics.MaxDeadLetterTokens:
		return semantics.TransactionLarge(
			"messages to abandon or dead-letter", int64(l.ending), semantics.MaxDeadLetterTokens,
		)
	case l.bytes > semantics.MaxTransactionBytes:
		return semantics.TransactionLarge("bytes of messages, states and changes", l.bytes, semantics.MaxTransactionBytes)
	default:
		return nil
	}
}

// costOf is what the operations cost when they are called alone (QUOTA-10).
func costOf(operations []semantics.Operation) int {
	cost := 0
	for _, o := range operations {
		cost += max(callCost, len(o.Messages)+len(o.Tokens))
	}
	return cost
}

func messagesOf(operations []semantics.Operation) []*semantics.Message {
	var all []*semantics.Message
	for _, o := range operations {
		all = append(all, o.Messages...)
	}
	return all
}

// digestOfOperations returns a digest that distinguishes the operations of one transaction from others: by what they
// do, where, and to which messages; of contents only their sizes, as digestOf. It is kept by the store, so it must stay
// what it is from version to version.
func digestOfOperations(operations []semantics.Operation) string {
	hash := sha256.New()
	write := func(text string) {
		length := binary.BigEndian.AppendUint64(nil, uint64(len(text)))
		hash.Write(append(length, text...))
	}
	count := func(n int) { write(strconv.Itoa(n)) }
	// optional distinguishes what is absent from what is empty.
	optional := func(is bool, text func() string) {
		if write(strconv.FormatBool(is)); is {
			write(text())
		}
	}
	for _, o := range operations {
		count(int(o.Verb))
		write(o.Source.Fold().String())
		write(o.Source.SessionLock.String())
		write(strconv.FormatBool(o.IsTopic))
		write(digestOf(o.Messages))
		count(len(o.Tokens))
		for _, token := range o.Tokens {
			write(token.String())
		}
		count(len(o.Numbers))
		for _, number := range o.Numbers {
			write(strconv.FormatInt(number, 10))
		}
		optional(o.Abandon.Delay != nil, func() string { return o.Abandon.Delay.String() })
		write(strconv.FormatBool(o.Abandon.SkipOrder))
		optional(o.Texts.Reason != nil, func() string { return *o.Texts.Reason })
		optional(o.Texts.Description != nil, func() string { return *o.Texts.Description })
		count(len(o.Properties))
		for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
			write(name)
			count(int(o.Properties[name].Type()))
			count(o.Properties[name].Size())
		}
		optional(o.State != nil, func() string { return strconv.Itoa(len(o.State)) })
		optional(o.Version != nil, func() string { return strconv.FormatInt(*o.Version, 10) })
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}
