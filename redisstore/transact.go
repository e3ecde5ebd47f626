package redisstore

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// transaction is a Transact on its way to the script.
type transaction struct {
	sealing    sealing
	once       *semantics.Once
	operations []semantics.Operation
	outcomes   [][]merged // by operation, what becomes of properties that a settlement changes

	entities []string       // paths of what the operations are about, each once
	places   map[string]int // in entities, by folded path
	lists    []keyList      // by entity
}

// keyList are the entities of a topic and of all its subscriptions, by a version of its routes, where a transaction
// must add up what they hold.
type keyList struct {
	keys   []string
	routes string
}

// Transact implements semantics.Transactor.
func (s *Store) Transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) semantics.TransactionOutcome {
	t := &transaction{sealing: s.sealing, once: once, operations: operations, places: map[string]int{}}
	err := s.shareAtomicity(operations)
	if err == nil {
		err = s.prepareTransaction(ctx, t)
	}
	if err != nil {
		return semantics.TransactionOutcome{Err: err}
	}
	for {
		outcome, again := s.runTransaction(ctx, t)
		if !again {
			return outcome
		}
	}
}

// shareAtomicity refuses operations on entities that no script can change together (TX-7): those in different slots of
// a cluster. In one Redis any script can change all keys.
func (s *Store) shareAtomicity(operations []semantics.Operation) error {
	first := operations[0].Source.Path
	for i, o := range operations {
		if s.areApart(first, o.Source.Path) {
			return semantics.RefusedOperation(semantics.EntitiesApart(first, o.Source.Path), i)
		}
	}
	return nil
}

// moves returns how many messages the script may copy, and their bytes as far as their tokens tell.
func (t *transaction) moves() (messages int, bytes int64) {
	for _, o := range t.operations {
		for _, token := range o.Tokens {
			if l, ok := lockOf(token); ok && o.Verb.MayDeadLetter() {
				messages, bytes = messages+1, bytes+l.size
			}
		}
	}
	return messages, bytes
}

// prepareTransaction finds the entities, makes the transfer dead-letter queues that operations name, and merges
// properties. It changes nothing that a client sees.
func (s *Store) prepareTransaction(ctx context.Context, t *transaction) error {
	t.outcomes = make([][]merged, len(t.operations))
	for i, o := range t.operations {
		path := keptAt(o.Source)
		if t.places[semantics.Fold(path)] == 0 {
			t.entities = append(t.entities, path)
			t.places[semantics.Fold(path)] = len(t.entities)
		}
		if o.Source.SubQueue == semantics.TransferDeadLetterQueue {
			r, err := s.run(ctx, "open_transfers", s.keys(o.Source.Path), s.now(), flag(true))
			if err == nil && r.status != "OK" {
				err = semantics.RefusedOperation(s.notFound(ctx, o.Source.Path), i)
			}
			if err != nil {
				return err
			}
		}
		if len(o.Properties) > 0 {
			var err error
			if t.outcomes[i], err = s.merge(ctx, o.Source, o.Tokens, o.Properties); err != nil {
				return err
			}
		}
	}
	t.lists = make([]keyList, len(t.entities))
	return nil
}

// runTransaction runs the script. It reports whether it is to be run again because a list was missing; then nothing was
// done.
func (s *Store) runTransaction(ctx context.Context, t *transaction) (semantics.TransactionOutcome, bool) {
	failed := func(err error) (semantics.TransactionOutcome, bool) {
		return semantics.TransactionOutcome{Err: err}, false
	}
	args, err := t.args(s.now())
	if err != nil {
		return failed(err)
	}
	first := t.operations[0].Source
	lasts := s.lastingAgain(ctx) // a repeat finds its changes made
	r, err := s.run(lasts, t.script(), with(s.keys(first.Path), s.keysOfMembers(t)...), args...)
	if err != nil {
		return failed(err)
	}
	switch r.status {
	case "NEEDS_ALL":
		places := r.list()
		for places.more() {
			if err := s.listTopic(ctx, t, int(places.number())-1); err != nil {
				return failed(err)
			}
		}
		r.adopt(places)
		return semantics.TransactionOutcome{Err: r.failure()}, r.failure() == nil
	case "TOO_LARGE":
		messages, _ := t.moves()
		return failed(cmp.Or(semantics.CheckMoves(messages, r.number()), r.failure()))
	case "REFUSED":
		place := int(r.number())
		return failed(semantics.RefusedOperation(s.refusal(ctx, t, place, r), place))
	case "OTHER_MESSAGES":
		return failed(semantics.OtherMessages(first.Path, t.once.RequestID))
	case "AGAIN":
		seed, answer := r.text(), strings.Fields(r.text())
		numbers, err := readAnswer(semantics.CountNumbers(t.operations), answer)
		if err != nil {
			return failed(err)
		}
		return semantics.TransactionOutcome{
			Results: semantics.ResultsOf(t.operations, numbers),
			Repeats: &semantics.Repetition{Seed: seed},
			Err:     r.unmet,
		}, false
	default: // OK
		results, err := s.readTransaction(ctx, t, r)
		return semantics.TransactionOutcome{Results: results, Err: cmp.Or(err, r.unmet)}, false
	}
}

// script returns the script that runs the operations: a full Redis settles, cancels and clears states (ERR-7).
func (t *transaction) script() string {
	for _, o := range t.operations {
		if o.Verb == semantics.OperationSend || o.State != nil {
			return "transact"
		}
	}
	return "transact_settling"
}

// keysOfMembers returns the keys of all entities as lua/lib/transaction/open_members.lua takes them.
func (s *Store) keysOfMembers(t *transaction) []string {
	var keys []string
	for _, path := range t.entities {
		own := s.keys(path)
		keys = append(append(keys, own.all()...), own.key("owner"))
	}
	for _, list := range t.lists {
		keys = append(keys, list.keys...)
	}
	return keys
}

// listTopic adds to the transaction the list that adds up the topic of one of its entities.
func (s *Store) listTopic(ctx context.Context, t *transaction, entity int) error {
	topic := t.entities[entity]
	if of, _, ok := semantics.SplitSubscription(topic); ok {
		topic = of
	}
	found, err := s.presentRoster(ctx, topic)
	if err != nil {
		return err
	}
	t.lists[entity] = keyList{keys: s.entities(topic, found.names), routes: found.version}
	total := 0
	for _, list := range t.lists {
		total += len(list.keys)
	}
	if most := s.options.TopicLimits.sums(); total > most {
		return semantics.TransactionLarge(
			"topics and subscriptions whose bytes are added up", int64(total), int64(most),
		)
	}
	return nil
}

// readTransaction passes on the notifications and reads the results.
func (s *Store) readTransaction(ctx context.Context, t *transaction, r *reply) ([]semantics.OperationResult, error) {
	notifications, numbers := r.list(), r.list()
	var alarms []alarm
	for notifications.more() {
		path := t.entities[notifications.number()-1]
		if at := s.readNotifications(path, notifications); at > 0 {
			alarms = append(alarms, alarm{name: semantics.Fold(path), at: at})
		}
	}
	s.setAlarms(ctx, alarms...)
	stored := make([]semantics.Stored, semantics.CountNumbers(t.operations))
	for i := range stored {
		stored[i] = readStored(numbers.number())
	}
	r.adopt(notifications)
	r.adopt(numbers)
	return semantics.ResultsOf(t.operations, stored), r.failure()
}

// refusal reads why an operation cannot be run.
func (s *Store) refusal(ctx context.Context, t *transaction, place int, r *reply) error {
	o := t.operations[place]
	path := o.Source.Path
	code, _ := r.items[r.at].(string)
	switch semantics.Code(code) { //nolint:exhaustive // what is common to sends and states is below
	case semantics.EntityNotFound:
		if o.Verb == semantics.OperationSend || o.Verb == semantics.OperationCancel {
			return semantics.NotFound(path)
		}
		return s.notFound(ctx, path)
	case semantics.SessionRequired, semantics.SessionNotSupported, semantics.SessionLockLost:
		return semantics.SessionFailure(semantics.Code(code), path)
	case semantics.MessageLockLost:
		_, index := r.text(), r.number()
		return semantics.LockLost(path, int(index))
	case "CHANGES":
		_, index := r.text(), r.number()
		return semantics.UnfitChanges(t.outcomes[place][index].code, path, int(index))
	case semantics.MessageNotFound:
		r.text()
		var missing []int64
		for r.more() {
			missing = append(missing, r.number())
		}
		return semantics.NumbersNotFound(path, semantics.Scheduled, missing)
	}
	if o.Verb != semantics.OperationSetState {
		_, err := readSendResult(path, len(o.Messages), r)
		return err
	}
	return stateRefusal(o, r)
}

// stateRefusal reads why a state cannot be set.
func stateRefusal(o semantics.Operation, r *reply) error {
	path := o.Source.Path
	switch semantics.Code(r.text()) {
	case semantics.SessionStateTooLarge:
		return semantics.StateTooLarge(path, r.number(), r.number())
	case semantics.PreconditionFailed:
		return semantics.StateVersionDiffers(path, r.number(), *o.Version)
	case semantics.QuotaExceeded:
		return semantics.TooManyStates(path, r.number())
	case semantics.EntityDisabled:
		return semantics.Disabled(path, r.text())
	default: // ENTITY_FULL
		if topic, _, ok := semantics.SplitSubscription(path); ok {
			path = topic // which all its subscriptions share the size of
		}
		what, actual, limit, dead := r.text(), r.number(), r.number(), r.number()
		return semantics.Full(path, semantics.Bound(what), actual, limit, dead)
	}
}

// args returns the arguments of transact.lua.
func (t *transaction) args(now string) ([]any, error) {
	messages, bytes := t.moves()
	if messages == 1 {
		bytes = 0
	}
	args := []any{
		now, headOf(len(t.operations), t.once), len(t.entities), semantics.MaxSessionStates, bytes,
		semantics.MaxDeadLetterMoveSize,
	}
	for _, list := range t.lists {
		args = append(args, strconv.Itoa(len(list.keys))+":"+list.routes)
	}
	for i, o := range t.operations {
		var err error
		if args, err = t.appendOperation(args, o, t.outcomes[i]); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// appendOperation adds an operation as the header of transact.lua has it.
func (t *transaction) appendOperation(args []any, o semantics.Operation, outcomes []merged) ([]any, error) {
	head := func(verb string, first, second any, items, extras int) {
		args = append(
			args, verb, t.places[semantics.Fold(keptAt(o.Source))], prefixOf(o.Source.SubQueue), sessionToken(o.Source),
			first, second, items, extras,
		)
	}
	switch o.Verb {
	case semantics.OperationSend:
		head("send", kindWord(o.IsTopic), "", len(o.Messages), 0)
		return t.appendSent(args, o.Messages)
	case semantics.OperationCancel:
		numbers := onceEach(o.Numbers)
		head("cancel", "", "", len(numbers), 0)
		return appendNumbers(args, numbers), nil
	case semantics.OperationSetState:
		expected := int64(-1)
		if o.Version != nil {
			expected = *o.Version
		}
		if o.State == nil {
			head("set_state", expected, "", 0, 0)
			return args, nil
		}
		head("set_state", expected, newMark(), 1, 1)
		return append(args, t.sealing.sealState(o.Source.Path, o.State), len(o.State)), nil
	case semantics.OperationComplete:
		head("complete", "", "", len(o.Tokens), len(o.Tokens))
		args = appendLocks(args, o.Tokens)
		for _, token := range o.Tokens {
			l, _ := lockOf(token)
			args = append(args, l.id())
		}
		return args, nil
	case semantics.OperationAbandon:
		delay := int64(ownDelay)
		if o.Abandon.Delay != nil {
			delay = o.Abandon.Delay.Milliseconds()
		}
		head("abandon", delay, flag(o.Abandon.SkipOrder), len(o.Tokens), len(outcomes))
	case semantics.OperationDefer:
		head("defer", "", "", len(o.Tokens), len(outcomes))
	case semantics.OperationDeadLetter:
		head("dead_letter", textOrNone(o.Texts.Reason), textOrNone(o.Texts.Description), len(o.Tokens), len(outcomes))
	}
	args = appendLocks(args, o.Tokens)
	for _, outcome := range outcomes {
		args = append(args, outcome.argument())
	}
	return args, nil
}

// kindWord returns what a send goes to.
func kindWord(isTopic bool) string {
	if isTopic {
		return "topic"
	}
	return "queue"
}

// appendSent adds messages in the keyed form of send.lua.
func (t *transaction) appendSent(args []any, messages []*semantics.Message) ([]any, error) {
	for _, m := range messages {
		payload, err := t.sealing.encode(m)
		if err != nil {
			return nil, err
		}
		args = append(
			args, sizeAndLifetime(m), dueMillis(m.ScheduledAt), m.MessageID, m.Partition(), sessionKey(m.SessionID),
			payload,
		)
	}
	return args, nil
}
