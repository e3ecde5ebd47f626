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

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Headers of the request to the app and of its response.
const (
	sourceHeader      = "Sidebus-Source"             // resource name of the source
	sessionHeader     = "Sidebus-Session-Lock-Token" // session lock token, to settle the message by calls
	settleHeader      = "Sidebus-Settle"             // of the response: the verb, if the status does not imply it
	reasonHeader      = "Sidebus-Reason"
	descriptionHeader = "Sidebus-Description"
)

// Limits of a call.
const (
	dialTimeout     = 5 * time.Second
	idleTimeout     = time.Second // of a connection; shorter than that of apps, so that calls meet no closed one
	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 64 << 10 // bytes discarded so that the connection can be reused
	discardTimeout  = time.Second
)

// Outcomes of a push that are not verbs, beside those of settling.
const (
	leftToApp   settling.Outcome = "left"        // the app settles the message later
	noAnswer    settling.Outcome = "no_answer"   // the connection broke during the call: abandoned
	unreachable settling.Outcome = "unreachable" // no connection: released
	interrupted settling.Outcome = "interrupted" // the sidecar stopped: released
)

// dialer opens connections to apps.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// newClient returns a client for one target. It uses no proxy: the app is in the same pod.
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

// Causes of the end of a call's context.
var (
	errLockLost = errors.New("the lock of the message was lost")
	errStopped  = errors.New("the sidecar is stopping")
)

// call pushes one message and returns how to settle it. It calls reached when it has a connection.
func (h *handler) call(p *push, reached func()) (settling.Settlement, error) {
	ctx, m := p.ctx, p.Received
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
		return settling.Settlement{}, err // cannot happen: the URL was checked
	}
	h.fill(request.Header, m, p.source)
	p.traced.Inject(request.Header)
	response, err := h.client.Do(request)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // only read from
		discard(response.Body)
		return h.settlementFor(response), nil
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errLockLost):
		return settling.Settlement{Outcome: settling.LockLost}, nil
	case cause != nil:
		return h.release(interrupted), nil
	case !isConnected.Load():
		return h.release(unreachable), err
	case timed.Err() != nil:
		return h.abandon(settling.TimedOut, nil, "no response within "+h.Timeout.String()), nil
	default:
		return h.abandon(noAnswer, nil, plain(err)), nil
	}
}

// plain returns an error of the client without the URL, which may contain a password.
func plain(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// fill sets the headers of a call.
func (h *handler) fill(header http.Header, m *semantics.Received, source semantics.Source) {
	brokerproperties.Write(header, m, writeTrace(header, m)...)
	header.Set(sourceHeader, h.Source)
	if !source.SessionLock.IsZero() {
		header.Set(sessionHeader, source.SessionLock.String())
	}
	header.Set("User-Agent", "sidebus")
}

// traceHeaders are those of the W3C trace context. Their values are written without quotes, unlike other properties.
var traceHeaders = []string{"traceparent", "tracestate"}

const maxTrace = 512 // bytes; longer values are written as other properties

// writeTrace writes the trace context of a message, and returns the names of the properties it has written.
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

// discard reads a short response body to its end, so that the connection can be reused.
func discard(body io.ReadCloser) {
	cut := time.AfterFunc(discardTimeout, func() { _ = body.Close() }) // CopyN then fails
	_, _ = io.CopyN(io.Discard, body, maxAnswerBody)
	cut.Stop()
}

// settlementFor returns what a response of the app means.
func (h *handler) settlementFor(response *http.Response) settling.Settlement {
	detail := "the app responded " + response.Status
	switch asked := strings.ToLower(response.Header.Get(settleHeader)); {
	case asked == "dead-letter":
		return h.deadLetter(response.Header)
	case asked == "defer":
		return settling.Defer(h.broker)
	case asked == "release":
		return h.release(obs.Release)
	case asked != "":
		asked = strconv.QuoteToASCII(semantics.Shorten(asked))
		return h.abandon(obs.Abandon, nil, detail+" with "+settleHeader+": "+asked)
	case response.StatusCode == http.StatusAccepted:
		return settling.Settlement{Outcome: leftToApp}
	case response.StatusCode >= 200 && response.StatusCode <= 299:
		return settling.Complete()
	default:
		return h.abandon(obs.Abandon, retryAfter(response.Header.Get("Retry-After")), detail)
	}
}

func (h *handler) release(as settling.Outcome) settling.Settlement {
	return settling.Release(h.broker, as)
}

func (h *handler) abandon(as settling.Outcome, delay *time.Duration, fault string) settling.Settlement {
	return settling.Abandon(h.broker, as, delay, fault)
}

func (h *handler) deadLetter(header http.Header) settling.Settlement {
	return settling.DeadLetter(h.broker, obs.DeadLetter, broker.DeadLetterOptions{
		Reason:      textOf(header, reasonHeader),
		Description: textOf(header, descriptionHeader),
	})
}

// textOf reads a text from a header, UTF-8 or escaped as in RFC 8187 (REST-12). It returns nil if there is none.
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
	text = semantics.Beginning(strings.ToValidUTF8(text, "\uFFFD"), semantics.MaxDeadLetterText)
	return &text
}

// retryAfter parses a Retry-After header, seconds or an HTTP date, at most the maximum delay of a message. It returns
// nil if there is none.
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
