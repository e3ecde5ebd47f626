package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// What one call looks at. The page calls again for more.
const (
	findsAtMost = 50
	looksAtMost = 2500
	findTime    = 2 * time.Second
	findsAtOnce = 4               // calls under way, because each holds up to 2 MiB of messages, and its answer
	enterTime   = 5 * time.Second // that a further one waits
	answerSize  = 4 << 20         // bytes of messages in an answer; the last one may go beyond
	maxWords    = 1024            // bytes, because each word is searched in each message
)

// shelf is a group of messages of an entity, as a page names it.
type shelf struct {
	Entity    string `json:"entity"`
	SubQueue  string `json:"subQueue"`
	State     string `json:"state"`
	SessionID string `json:"sessionId"`
}

// wanted are messages to find.
type wanted struct {
	shelf

	From   string `json:"from"`   // the lowest sequence number
	Filter string `json:"filter"` // SQL, as of rules and of Resubmit
	Words  string `json:"words"`  // each must be in an id, a text, a property or the body

	Group *groupKey `json:"group"` // only dead letters of it
}

// found is the answer.
type found struct {
	Messages []json.RawMessage `json:"messages"`
	Looked   int               `json:"looked"`           // messages that were looked at
	Next     string            `json:"next,omitempty"`   // where to go on; none: that were all
	Failed   int               `json:"failed,omitempty"` // messages for which the filter has no result
	Failure  string            `json:"failure,omitempty"`
}

// find answers the messages that match. It changes nothing, as peek, so the read-only console has it too.
func (c *Console) find(w http.ResponseWriter, r *http.Request) {
	var want wanted
	source, err := c.shelfOf(w, r, &want, &want.shelf)
	if err != nil {
		refuse(w, err)
		return
	}
	if err := c.enter(r.Context()); err != nil {
		refuse(w, err)
		return
	}
	defer c.leave()
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	answer, err := c.search(ctx, source, &want)
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// shelfOf reads a request about a shelf, and returns the source it names, on which the caller has Listen.
func (c *Console) shelfOf(
	w http.ResponseWriter, r *http.Request, request any, of *shelf,
) (source semantics.Source, err error) {
	caller, err := c.authenticate(r)
	if err != nil {
		return source, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTrial))
	if err == nil {
		err = json.Unmarshal(body, request)
	}
	if err != nil {
		return source, semantics.Errorf(semantics.InvalidArgument, "the body must be JSON with an entity: %v", err)
	}
	source = semantics.Source{Path: of.Entity, Session: of.SessionID}
	var known bool
	if source.SubQueue, known = subQueues[of.SubQueue]; !known {
		return source, semantics.InvalidField("subQueue", "is %q, must be DEAD_LETTER, TRANSFER_DEAD_LETTER or empty",
			semantics.Shorten(of.SubQueue))
	}
	if _, known := shows[of.State]; !known {
		return source, semantics.InvalidField("state", "is %q, must be AVAILABLE, LOCKED, DEFERRED, SCHEDULED or empty",
			semantics.Shorten(of.State))
	}
	return source, caller.Permit(mayCount(source.String()))
}

// subQueues are the sub-queues by the names of the API. Another name is refused: what is meant for dead letters must
// not look at the messages of the queue.
var subQueues = map[string]semantics.SubQueue{
	"": semantics.MainQueue, semantics.MainQueue.String(): semantics.MainQueue,
	semantics.DeadLetterQueue.String():         semantics.DeadLetterQueue,
	semantics.TransferDeadLetterQueue.String(): semantics.TransferDeadLetterQueue,
}

// enter waits, for a while, until few enough calls look at messages; leave must follow.
func (c *Console) enter(ctx context.Context) error {
	patience := time.NewTimer(enterTime)
	defer patience.Stop()
	select {
	case c.finds <- struct{}{}:
		return nil
	case <-patience.C:
		e := semantics.Errorf(
			semantics.Throttled, "%d searches of the console are under way, as many as at most; try again", findsAtOnce,
		)
		e.RetryAfter = time.Second
		return e
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // refuse translates it
	}
}

func (c *Console) leave() { <-c.finds }

// shows are the groups of messages, by the names of the API.
var shows = map[string]semantics.Show{
	"": semantics.ShowAll, "AVAILABLE": semantics.ShowAvailable, "LOCKED": semantics.ShowLocked,
	"DEFERRED":  semantics.ShowDeferred,
	"SCHEDULED": semantics.ShowScheduled,
}

// search looks at one page of messages after the other until it has found or looked at enough.
func (c *Console) search(ctx context.Context, source semantics.Source, want *wanted) (*found, error) {
	matches, err := want.matcher()
	if err != nil {
		return nil, err
	}
	limit := broker.MaxPeekMessages
	if want.Filter == "" && want.Words == "" && want.Group == nil {
		limit = findsAtMost // all of them match
	}
	from, err := want.from()
	if err != nil {
		return nil, err
	}
	answer, size := &found{Messages: []json.RawMessage{}}, 0
	isFull := func() bool { return len(answer.Messages) == findsAtMost || size >= answerSize }
	for began := time.Now(); ; {
		page, err := c.config.Broker.Peek(ctx, source, from, limit, shows[want.State])
		if err != nil {
			return nil, err
		}
		for i, m := range page {
			from = m.SequenceNumber + 1
			answer.Looked++
			isMatch, err := matches(m)
			switch {
			case err != nil:
				answer.fail(m, err)
			case isMatch:
				message := wirejson.Encode(wire.ReceivedFrom(page[i:i+1], true)[0])
				answer.Messages, size = append(answer.Messages, message), size+len(message)
			}
			if isFull() {
				break
			}
		}
		switch {
		case len(page) == 0:
			return answer, nil
		case isFull(), answer.Looked >= looksAtMost, time.Since(began) > findTime:
			answer.Next = strconv.FormatInt(from, 10)
			return answer, nil
		}
	}
}

// from returns where to begin.
func (want *wanted) from() (int64, error) {
	if want.From == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(want.From, 10, 64)
	if err != nil {
		return 0, semantics.InvalidField("from", "is %q, must be a number", semantics.Shorten(want.From))
	}
	return from, nil
}

func (f *found) fail(m *semantics.Received, err error) {
	if f.Failed++; f.Failed == 1 {
		f.Failure = "message " + strconv.FormatInt(m.SequenceNumber, 10) + ": " + err.Error()
	}
}

// matcher returns a function that reports whether a message matches.
func (want *wanted) matcher() (func(*semantics.Received) (bool, error), error) {
	if len(want.Words) > maxWords {
		return nil, semantics.InvalidField("words", "must be at most %d bytes long", maxWords)
	}
	words := strings.Fields(strings.ToLower(want.Words))
	var sql *filter.Filter
	if strings.TrimSpace(want.Filter) != "" {
		var err error
		if sql, err = filter.Parse(want.Filter, nil); err != nil {
			return nil, err
		}
	}
	return func(m *semantics.Received) (bool, error) {
		switch {
		case want.Group != nil && (groupKey{reasonOf(m), m.DeadLetterSource}) != *want.Group,
			len(words) > 0 && !hasAll(haystack(m), words):
			return false, nil
		}
		if sql == nil {
			return true, nil
		}
		return sql.Matches(filter.OfReceived(m))
	}, nil
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// haystack is the text of a message in which words are searched, in lower case.
func haystack(m *semantics.Received) string {
	var text strings.Builder
	for _, part := range []string{
		strconv.FormatInt(m.SequenceNumber, 10), m.MessageID, m.SessionID, m.CorrelationID, m.Subject, m.To, m.ReplyTo,
		m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource,
	} {
		text.WriteString(part)
		text.WriteByte('\n')
	}
	for name, value := range m.Properties {
		text.WriteString(name)
		text.WriteByte('=')
		text.WriteString(plain(value))
		text.WriteByte('\n')
	}
	text.Write(m.Body)
	return strings.ToLower(text.String())
}

// plain returns a property as a person writes it.
func plain(v semantics.Value) string {
	switch v.Type() {
	case semantics.TypeBool:
		return strconv.FormatBool(v.Bool())
	case semantics.TypeByte, semantics.TypeSByte, semantics.TypeInt16, semantics.TypeUint16, semantics.TypeInt32,
		semantics.TypeUint32, semantics.TypeInt64:
		return strconv.FormatInt(v.Int(), 10)
	case semantics.TypeUint64:
		return strconv.FormatUint(v.Uint(), 10)
	case semantics.TypeFloat, semantics.TypeDouble:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.Text()
	}
}
