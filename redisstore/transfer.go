package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// Destination implements semantics.Transfers.
func (s *Store) Destination(ctx context.Context, path string) (semantics.Destination, error) {
	r, err := s.run(ctx, "destination", s.keys(path))
	if err != nil || r.status != "OK" {
		return semantics.Destination{Path: path}, err
	}
	kind := oneOf(r.text(), semantics.QueueKind, semantics.TopicKind)
	return semantics.Destination{Kind: kind, Path: r.text(), Incarnation: r.number()}, r.failure()
}

// transferNote is what a source stores about its transfer while it is under way: "<number>:<nonce>:<begun
// ms>:<kind>:<incarnation>:<path>", and when dead letters are resubmitted ":<how>".
type transferNote struct {
	id    string // "<number>:<nonce>"
	nonce uint64
	to    semantics.Destination
	how   *semantics.Resubmitting
}

// noteOf returns the part of the note with the destination of a transfer.
func noteOf(to semantics.Destination) string {
	return fmt.Sprintf("%s:%d:%s", to.Kind, to.Incarnation, to.Path)
}

func readNote(text string) (transferNote, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) < 6 {
		return transferNote{}, unreadable(fmt.Errorf("a source has the transfer %q", text))
	}
	nonce, err1 := strconv.ParseUint(parts[1], 10, 64)
	incarnation, err2 := strconv.ParseInt(parts[4], 10, 64)
	if err1 != nil || err2 != nil {
		return transferNote{}, unreadable(fmt.Errorf("a source has the transfer %q", text))
	}
	kind := oneOf(parts[3], semantics.QueueKind, semantics.TopicKind)
	path, how, _ := strings.Cut(parts[5], ":")
	return transferNote{
		id: parts[0] + ":" + parts[1], nonce: nonce,
		to: semantics.Destination{Path: path, Kind: kind, Incarnation: incarnation}, how: readHow(how),
	}, nil
}

// transferID is the ID of a transfer: "<incarnation of the source>:<number>:<nonce>". If Redis forgot a change, a
// source may use a number again, so only the nonce distinguishes two transfers.
func transferID(incarnation, id string) string { return incarnation + ":" + id }

func splitTransferID(full string) (incarnation, id string) {
	incarnation, id, _ = strings.Cut(full, ":")
	return incarnation, id
}

// BeginTransfer implements semantics.Transfers.
func (s *Store) BeginTransfer(
	ctx context.Context, source semantics.Source, to semantics.Destination, limit int,
) (semantics.Transfer, error) {
	limit, bytes, err := s.transferBounds(ctx, to, limit)
	if err != nil {
		return semantics.Transfer{}, err
	}
	for {
		transfer, left, err := s.beginOnce(ctx, source, to, limit, bytes)
		if err != nil || !left {
			return transfer, err
		}
		if ctx.Err() != nil {
			return semantics.Transfer{}, semantics.CancelledBy(ctx)
		}
	}
}

// transferBounds returns how many messages and bytes a transfer may have, so that the one script that stores all its
// copies stays short.
func (s *Store) transferBounds(
	ctx context.Context, to semantics.Destination, limit int,
) (messages int, bytes int64, err error) {
	limit, bytes = min(limit, maxScriptMessages), semantics.MaxAnswerBytes
	if to.Kind != semantics.TopicKind || to.Incarnation == 0 {
		return limit, bytes, nil
	}
	topic := cmp.Or(to.Definition, to.Path) // all of it may arrive in one partition
	subscriptions := redis.NewIntCmd(ctx, "hlen", s.keys(topic).key("subscriptions"))
	if err := s.redis(ctx).Process(ctx, subscriptions); err != nil {
		return 0, 0, storeError(err, false)
	}
	each := max(1, subscriptions.Val())
	return max(1, min(limit, mostPublish/int(each))), max(1, min(bytes, mostPublish<<14/each)), nil
}

// beginOnce runs the script. left reports whether nothing was set aside because too much was due first.
func (s *Store) beginOnce(
	ctx context.Context, source semantics.Source, to semantics.Destination, limit int, bytes int64,
) (transfer semantics.Transfer, left bool, err error) {
	r, err := s.run(
		ctx, "begin_transfer", s.keysOf(source), s.now(), prefixOf(source.SubQueue), semantics.Fold(to.Path),
		noteOf(to), limit, bytes, newNonce(),
	)
	if err != nil {
		return transfer, false, err
	}
	if r.status == string(semantics.EntityNotFound) {
		return transfer, false, s.notFound(ctx, source.Path)
	}
	s.apply(ctx, source.Path, r)
	if r.status != "OK" {
		return transfer, false, semantics.ErrForwardingChanged
	}
	left = r.number() == 1
	transfer, err = s.readTransfer(ctx, source, r)
	return transfer, left && err == nil && transfer.ID == "", err
}

// readTransfer reads the answer of begin_transfer.lua or begin_resubmission.lua, and the messages. Without messages
// there is no transfer.
func (s *Store) readTransfer(
	ctx context.Context, source semantics.Source, r *reply,
) (transfer semantics.Transfer, err error) {
	incarnation, age, text := r.text(), time.Duration(r.number())*time.Millisecond, r.text()
	back, spans := readBackAgain(r), r.list()
	if err := r.failure(); err != nil || text == "" {
		return transfer, err
	}
	note, err := readNote(text)
	if err != nil {
		return transfer, err
	}
	toRead, err := back.spans(spans)
	if err != nil || len(toRead) == 0 {
		return transfer, err
	}
	found, err := s.readFound(ctx, source, back, toRead)
	if err != nil {
		return transfer, err
	}
	transfer = semantics.Transfer{
		Source: source, ID: transferID(incarnation, note.id),
		Seed: transferID(incarnation, strconv.FormatUint(note.nonce, 10)), To: note.to, Age: age, Resubmits: note.how,
	}
	for _, e := range found {
		e.nonce, e.lockedUntil = note.nonce, never
		transfer.Messages = append(transfer.Messages, e.received(s.sealing))
	}
	return transfer, nil
}

// never is the end of the locks of messages that were set aside: see lua/lib/transfer/locks_set_aside.lua.
var never = time.UnixMilli(253402300799000).UTC()

// outcomes are why a destination refused a message, by the letters of lua/lib/transfer/note_arrival.lua.
var outcomes = map[byte]semantics.Code{
	'd': semantics.EntityDisabled, 'f': semantics.EntityFull, 'q': semantics.QuotaExceeded,
	's': semantics.MessageSizeExceeded,
	'u': semantics.NoMatchingSubscription, 'm': semantics.SessionIDMissing,
	notCarried: semantics.Internal,
}

const notCarried = '-'

// readArrivals reads the outcomes of so many messages, "" when all of the transfer were stored.
func readArrivals(text string, transfer semantics.Transfer, messages int) []semantics.Arrival {
	arrivals := make([]semantics.Arrival, messages)
	for i := range arrivals {
		if place := transfer.Place(i); place < len(text) {
			arrivals[i].Refused = outcomes[text[place]]
		}
	}
	return arrivals
}

// lastAndPlaces returns whether a transfer must arrive now and, if not all of its messages are carried, which are.
func lastAndPlaces(transfer semantics.Transfer, isLast bool) string {
	if transfer.Carried == nil {
		return strconv.Itoa(flag(isLast))
	}
	places := bytes.Repeat([]byte{notCarried}, len(transfer.Messages))
	for _, place := range transfer.Carried {
		places[place] = '.'
	}
	return strconv.Itoa(flag(isLast)) + string(places)
}

// arrivalField returns the field in which a destination stores the last transfer of a source.
func arrivalField(source semantics.Source, incarnation string) string {
	return incarnation + ":" + prefixOf(source.SubQueue) + ":" + semantics.Fold(keptAt(source))
}

// Arrive implements semantics.Transfers.
func (s *Store) Arrive(
	ctx context.Context, transfer semantics.Transfer, version int64, arrivals []semantics.Publication, isLast bool,
) ([]semantics.Arrival, error) {
	var r *reply
	var err error
	// One Redis forgets the last things first: the arrival only together with the end at the source, which follows. Of
	// two, that of the destination may forget alone what the other has removed.
	lasts := ctx // of the arrival alone: what else is run for it has no instant, to which the fence adds a level
	if s.areApart(transfer.Source.Path, transfer.To.Path) {
		lasts = s.fencedBy(ctx, behindArrival)
	}
	incarnation, id := splitTransferID(transfer.ID)
	args := []any{
		s.now(), transfer.To.Incarnation, arrivalField(transfer.Source, incarnation), id,
		lastAndPlaces(transfer, isLast),
	}
	if transfer.To.Kind == semantics.TopicKind {
		bypass := transfer.Resubmits != nil && transfer.Resubmits.BypassDuplicates
		r, err = s.arriveInTopic(ctx, lasts, transfer.To.Path, version, arrivals, bypass, args)
	} else {
		how := ""
		if transfer.Resubmits != nil {
			how = howToResubmit(*transfer.Resubmits)
		}
		r, err = s.arriveInQueue(ctx, lasts, transfer.To.Path, arrivals, append(args, how))
	}
	switch {
	case err != nil:
		return nil, err
	case r.unmet != nil: // the transfer stays open, and its repetition finds what has arrived
		return nil, r.unmet
	case r.status == string(semantics.EntityNotFound) && transfer.To.Incarnation == semantics.AnyIncarnation:
		return nil, semantics.NotFound(transfer.To.Path)
	case r.status == "NOT_YET", r.status == string(semantics.EntityNotFound) && !isLast:
		return nil, semantics.ErrNotYet
	case r.status == "OVERTAKEN":
		return nil, s.renumber(ctx, transfer, r)
	case r.status == string(semantics.EntityNotFound):
		refused := make([]semantics.Arrival, len(arrivals))
		for i := range refused {
			refused[i].Refused = semantics.EntityNotFound
		}
		return refused, nil
	default: // OK
		all := readArrivals(r.text(), transfer, len(arrivals))
		for i := 0; i < len(all) && r.more(); i++ {
			all[i].Stored = readStored(r.number())
		}
		return all, r.failure()
	}
}

// renumber sets the number of a transfer that was overtaken to one with which it can arrive. It does nothing if the
// transfer has ended. r is the answer of the destination.
func (s *Store) renumber(ctx context.Context, transfer semantics.Transfer, r *reply) error {
	incarnation, id := splitTransferID(transfer.ID)
	seen := r.number()
	if err := r.failure(); err != nil {
		return err
	}
	keys := s.keysOf(transfer.Source)
	if _, err := s.run(ctx, "renumber_transfer", keys, prefixOf(transfer.Source.SubQueue), incarnation, id,
		seen); err != nil {
		return err
	}
	return semantics.ErrOvertaken
}

// arriveInQueue runs the script and reads its reply up to the outcomes.
func (s *Store) arriveInQueue(
	ctx, lasts context.Context, path string, arrivals []semantics.Publication, args []any,
) (*reply, error) {
	for _, a := range arrivals {
		payload, err := s.sealing.encode(a.Message)
		if err != nil {
			return nil, err
		}
		m := a.Message
		args = append(
			args, sizeAndLifetime(m), dueMillis(a.ExpiresAt), m.MessageID, m.Partition(), sessionKey(m.SessionID),
			payload,
		)
	}
	r, err := s.run(lasts, "arrive", s.keys(path), args...)
	if err == nil && r.status == "OK" {
		s.apply(ctx, path, r)
	}
	return r, err
}

// arriveInTopic runs the script, and again with more keys if it needs them, and reads its reply up to the outcomes.
func (s *Store) arriveInTopic(
	ctx, lasts context.Context, topic string, version int64, arrivals []semantics.Publication, bypass bool, args []any,
) (*reply, error) {
	fanOuts, bytes := make([]*fanOut, len(arrivals)), int64(0)
	for i, a := range arrivals {
		var err error
		if fanOuts[i], err = s.sealing.newFanOut(a, false); err != nil {
			return nil, err
		}
		bytes += fanOuts[i].bytes
	}
	d := destinationsOf(topic, fanOuts)
	var all []string // the entities of the topic and of every subscription, where they are needed
	for {
		more, levels := s.appendKeys(slices.Clone(all), d)
		given := append(args[:len(args):len(args)], version, bytes, len(all), levels)
		for i, a := range arrivals {
			m := a.Message
			id := m.MessageID
			if bypass {
				id = ""
			}
			given = append(given, m.Size(), dueMillis(a.ExpiresAt), id, m.Partition(), fanOuts[i].bytes)
			given = fanOuts[i].append(given, d.index)
		}
		r, err := s.run(lasts, "arrive_in_topic", with(s.keys(topic), more...), given...)
		if err != nil {
			return nil, err
		}
		switch r.status {
		case "NEEDS_KEYS":
			err = s.learnLevels(d, r)
		case "NEEDS_ALL":
			all, err = s.everyEntity(ctx, topic, strconv.FormatInt(version, 10))
		case "ROUTES_CHANGED":
			err = semantics.ErrRoutesChanged
		case "OK":
			s.apply(ctx, topic, r)
			notifications := r.list()
			s.setAlarms(ctx, s.applyCopies(d, notifications)...)
			r.adopt(notifications)
			return r, r.failure()
		default:
			return r, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// fateOf returns the fate of a message for the script, and the letter of its cause.
func fateOf(fate semantics.Fate) (letter, cause string) {
	if fate.DeadLetter == nil {
		return "r", ""
	}
	letter, cause = "t", "a"
	if fate.KeepsQueue {
		letter = "k"
	}
	for known, reason := range causes {
		if fate.DeadLetter.Reason != nil && reason == *fate.DeadLetter.Reason {
			cause = string(known)
		}
	}
	return letter, cause
}

// EndTransfer implements semantics.Transfers.
func (s *Store) EndTransfer(ctx context.Context, transfer semantics.Transfer, fates []semantics.Fate) error {
	incarnation, id := splitTransferID(transfer.ID)
	args := []any{s.now(), prefixOf(transfer.Source.SubQueue), incarnation, id}
	for i, m := range transfer.Messages {
		if fates[i].Stays { // messages without a fate are released
			continue
		}
		l, _ := lockOf(m.LockToken)
		letter, cause := fateOf(fates[i])
		var texts semantics.DeadLetterTexts
		if fates[i].DeadLetter != nil {
			texts = *fates[i].DeadLetter
		}
		args = append(args, l.position, letter, cause, textOrNone(texts.Reason), textOrNone(texts.Description))
	}
	path := keptAt(transfer.Source)
	r, err := s.run(ctx, "end_transfer", s.keys(path), args...)
	switch {
	case err != nil:
		return err
	case r.status == "OVER":
		return nil
	case r.status == string(semantics.EntityFull):
		actual := r.number()
		return semantics.Full(path, semantics.BoundUndelivered, actual, r.number(), actual)
	default: // OK
		s.apply(ctx, path, r)
		s.apply(ctx, path+transfersSuffix, r)
		return r.failure()
	}
}
