package push

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Headers of a call and of its answer.
const (
	sourceHeader      = "Sidebus-Source"             // the resource the message is from
	sessionHeader     = "Sidebus-Session-Lock-Token" // of the session it is of, to settle it by calls
	settleHeader      = "Sidebus-Settle"             // of the answer: the verb, where the status does not say it
	reasonHeader      = "Sidebus-Reason"
	descriptionHeader = "Sidebus-Description"
)

// Bounds of a call.
const (
	dialTimeout     = 5 * time.Second
	idleTimeout     = time.Second // of a connection, less than any app's, so that it is not us who find it closed
	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 64 << 10 // that is read and dropped so that the connection can be used again
	discardTimeout  = time.Second
)

// outcome is what became of a push, as metrics say it: the verb of the settlement, or one of these.
type outcome string

const (
	leftToApp   outcome = "left"        // to the app, which settles it later
	timedOut    outcome = "timeout"     // no answer in time: abandoned
	noAnswer    outcome = "no_answer"   // the connection broke after the call was made: abandoned
	unreachable outcome = "unreachable" // no connection: released
	interrupted outcome = "interrupted" // by the end of the sidecar: released
	lockLost    outcome = "lock_lost"   // the message was not the handler's any more
	unsettled   outcome = "unsettled"   // the settlement failed
)

// verdict is what is to become of a message.
type settlement struct {
	outcome outcome
	verb    string               // in metrics; "" with settle nil
	settle  semantics.Settlement // nil: nothing
	isFault bool                 // the app has failed the message
	detail  string               // what the app said, or why there is no answer, for the log
}

// dialer opens connections to apps.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// newClient makes a client for one target. It knows no proxies: the app is beside the sidecar.
func newClient(t target, dial dialer, connections int) *http.Client {
	if t.socket != "" {
		over := dial
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return over(ctx, "unix", t.socket) }
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dial, MaxIdleConnsPerHost: connections, IdleConnTimeout: idleTimeout,
			TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: maxAnswerHeader, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errLockLost and errStopped are why the context of a call ends early.
var (
	errLockLost = errors.New("the lock of the message is lost")
	errStopped  = errors.New("the sidecar stops")
)

// call pushes one message and gives what is to become of it. reached is called when there is a connection.
func (h *handler) call(
	ctx context.Context, m *semantics.Received, source semantics.Source, reached func(),
) (settlement, error) {
	timed, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	var isConnected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		isConnected.Store(true)
		reached()
	}}
	request, err := http.NewRequestWithContext(
		httptrace.WithClientTrace(timed, trace), http.MethodPost, h.target.url, bytes.NewReader(m.Body),
	)
	if err != nil {
		return settlement{}, err // of a URL that was checked
	}
	h.fill(request.Header, m, source)
	response, err := h.client.Do(request)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // only read from
		discard(response.Body)
		return h.settlementFor(response), nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errLockLost):
		return settlement{outcome: lockLost}, nil
	case cause != nil:
		return h.release(interrupted), nil
	case !isConnected.Load():
		return h.release(unreachable), err
	case timed.Err() != nil:
		return h.abandon(timedOut, nil, "no answer within "+h.Timeout.String()), nil
	default:
		return h.abandon(noAnswer, nil, plain(err)), nil
	}
}

// plain gives an error of a client without the address, which may hold a password.
func plain(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// fill writes the headers of a call.
func (h *handler) fill(header http.Header, m *semantics.Received, source semantics.Source) {
	brokerproperties.Write(header, m, writeTrace(header, m)...)
	header.Set(sourceHeader, h.Source)
	if !source.SessionLock.IsZero() {
		header.Set(sessionHeader, source.SessionLock.String())
	}
	header.Set("User-Agent", "sidebus")
}

// traceHeaders are those of the W3C trace context. They stand as they are, not in quotes as other properties.
var traceHeaders = []string{"traceparent", "tracestate"}

const maxTrace = 512 // bytes that must be passed on

// writeTrace passes on the trace context of a message, and gives the names of what it has written.
func writeTrace(header http.Header, m *semantics.Received) (written []string) {
	for name, value := range m.Properties {
		for _, trace := range traceHeaders {
			if strings.EqualFold(name, trace) && value.Type() == semantics.TypeString && isVisible(value.Text()) {
				header[trace] = []string{value.Text()}
				written = append(written, trace)
			}
		}
	}
	return written
}

func isVisible(s string) bool {
	isOther := func(r rune) bool { return r < ' ' || r > '~' }
	return s != "" && len(s) <= maxTrace && !strings.ContainsFunc(s, isOther) && strings.TrimSpace(s) == s
}

// discard reads an answer to its end, if that is near, so that the connection can be used again. One that cannot be
// read to its end is an answer all the same.
func discard(body io.ReadCloser) {
	cut := time.AfterFunc(discardTimeout, func() { _ = body.Close() }) // whoever reads finds out
	_, _ = io.CopyN(io.Discard, body, maxAnswerBody)
	cut.Stop()
}

// judge says what an answer means.
func (h *handler) settlementFor(response *http.Response) settlement {
	detail := "it answered " + response.Status
	switch asked := strings.ToLower(response.Header.Get(settleHeader)); {
	case asked == "dead-letter":
		return h.deadLetter(response.Header)
	case asked == "defer":
		return settlement{
			outcome: obs.Defer,
			verb:    obs.Defer,
			settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code,
				error,
			) {
				return h.broker.Defer(ctx, s, tokens, nil)
			},
		}
	case asked == "release":
		return h.release(obs.Release)
	case asked != "":
		return h.abandon(obs.Abandon, nil, detail+" with "+settleHeader+": "+strconv.QuoteToASCII(cutText(asked, 80)))
	case response.StatusCode == http.StatusAccepted:
		return settlement{outcome: leftToApp}
	case response.StatusCode >= 200 && response.StatusCode <= 299:
		return settlement{outcome: obs.Complete, verb: obs.Complete, settle: h.broker.Complete}
	default:
		return h.abandon(obs.Abandon, retryAfter(response.Header.Get("Retry-After")), detail)
	}
}

func (h *handler) release(as outcome) settlement {
	return settlement{outcome: as, verb: obs.Release, settle: h.broker.Release}
}

func (h *handler) abandon(as outcome, delay *time.Duration, detail string) settlement {
	return settlement{
		outcome: as,
		verb:    obs.Abandon,
		isFault: true,
		detail:  detail,
		settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.Abandon(ctx, s, tokens, semantics.AbandonOptions{Delay: delay})
		},
	}
}

func (h *handler) deadLetter(header http.Header) settlement {
	options := broker.DeadLetterOptions{
		Reason:      textOf(header, reasonHeader),
		Description: textOf(header, descriptionHeader),
	}
	return settlement{
		outcome: obs.DeadLetter,
		verb:    obs.DeadLetter,
		settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.DeadLetter(ctx, s, tokens, options)
		},
	}
}

// textOf reads a text from a header: UTF-8, or escaped as in RFC 8187 (REST-12). nil: there is none.
func textOf(header http.Header, name string) *string {
	if len(header.Values(name)) == 0 {
		return nil
	}
	text := header.Get(name)
	const prefix = "utf-8''"
	if len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
		if plain, err := url.PathUnescape(text[len(prefix):]); err == nil {
			text = plain
		}
	}
	text = cutText(strings.ToValidUTF8(text, "\uFFFD"), semantics.MaxDeadLetterText)
	return &text
}

// cutText leaves the first characters of a text.
func cutText(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}

// retryAfter reads when the app wants the message again: seconds, or an instant. nil: it does not say. It is at most
// what a message can be delayed.
func retryAfter(text string) *time.Duration {
	var delay time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		delay = time.Duration(
			min(seconds, uint64(semantics.MaxDelay/time.Second)),
		) * time.Second //nolint:gosec // a few days
	} else if at, err := http.ParseTime(text); err == nil {
		delay = min(max(time.Until(at), 0), semantics.MaxDelay)
	} else {
		return nil
	}
	return &delay
}
