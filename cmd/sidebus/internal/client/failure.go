package client

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/semantics"
)

// Failure is a call that a sidecar refused or could not carry out.
type Failure struct {
	Reason   semantics.Code // empty when there was no answer of a sidecar
	Message  string
	Details  map[string]string
	Resource string // the entity that it is about, where the request has named it
	SQL      string // the text that it is about, if any
	IsSend   bool   // the call was to bring something into the entity

	RetryAfter time.Duration // when to try again; zero when nothing is known
}

// Error returns reason, text, what to do next, and where in an SQL text the fault is.
func (f *Failure) Error() string {
	if f.Reason == "" {
		return f.Message
	}
	text := fmt.Sprintf("%s: %s", f.Reason, paths.ReplaceAllString(f.Message, `"topics/$1/subscriptions/$2"`))
	if f.Reason == semantics.EntityAlreadyExists && !f.isOfAnotherKind() {
		text, _, _ = strings.Cut(text, "; ") // which call of the API to make instead; next names the command
	}
	if next := f.next(); next != "" {
		text += "; " + next
	}
	return goDurations.ReplaceAllStringFunc(text, shorter) + Caret(f.SQL, f.Message)
}

// paths are those of subscriptions as a sidecar writes them, "news/Subscriptions/eu".
var paths = regexp.MustCompile(`"([^"]+)/Subscriptions/([^"/]+)"`)

// goDurations are those that a sidecar writes, 168h0m0s. What is in quotes is a text of the user.
var goDurations = regexp.MustCompile(`"[^"]*"|\b(?:\d+h)?\d+m\d+(?:\.\d+)?s\b`)

func shorter(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil { // it is in quotes
		return text
	}
	return duration.Text(d)
}

// IsUnknown reports whether the call may have taken effect all the same.
func (f *Failure) IsUnknown() bool {
	return f.Reason == "" || f.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown
}

// isOfAnotherKind reports whether a name is taken by a topic instead of a queue, or the other way round.
func (f *Failure) isOfAnotherKind() bool { return strings.Contains(f.Message, "choose another name") }

// next returns what to do, "" if the message says it.
func (f *Failure) next() string {
	switch f.Reason {
	case semantics.EntityNotFound:
		name := Name(f.Resource)
		if name == "" {
			return ""
		}
		list := `"sidebus entity list" lists what exists`
		switch Kind(f.Resource) {
		case semantics.TopicKind:
			list = `"sidebus entity list topics" lists what exists`
		case semantics.SubscriptionKind:
			topic, _ := TopicOf(f.Resource)
			list = fmt.Sprintf(`"sidebus entity list %s" lists what exists`, OneLine(topic))
		default:
		}
		if f.IsSend && Kind(f.Resource) == semantics.QueueKind {
			return fmt.Sprintf(
				`"sidebus entity create %s" creates it, %s; a topic is written topics/%[1]s`, OneLine(name), list,
			)
		}
		if f.IsSend {
			return fmt.Sprintf(`"sidebus entity create %s" creates it, %s`, OneLine(name), list)
		}
		if Kind(f.Resource) == semantics.TopicKind && strings.Count(f.Resource, "/") > 1 {
			list += "; a subscription is written topics/TOPIC/subscriptions/NAME"
		}
		return list
	case semantics.EntityAlreadyExists:
		if f.isOfAnotherKind() {
			return ""
		}
		return `"sidebus entity ensure" keeps it, "sidebus entity update" changes it`
	case semantics.RuleNotFound:
		return `"sidebus rule list" shows them`
	case semantics.EntityDisabled:
		name := f.Details[semantics.DetailEntity]
		if f.Resource != "" {
			name = Name(f.Resource)
		}
		return fmt.Sprintf(`"sidebus entity update %s --set status=ACTIVE" enables it`, OneLine(name))
	case semantics.RuleAlreadyExists:
		return `a rule cannot be changed; delete it with "sidebus rule delete" and add it again`
	case semantics.EntityFull:
		return "receive or purge messages, or raise maxSizeInMegabytes or maxMessageCount"
	case semantics.SessionIDMissing:
		return "specify --session"
	case semantics.SessionRequired:
		return "specify --session or --next-session"
	case semantics.SessionCannotBeLocked:
		return `"sidebus session show" shows until when it is locked, --wait waits for it`
	case semantics.StoreUnavailable:
		switch {
		case f.IsUnknown() && strings.Contains(f.Message, "requestId"): // what to do stands there
			return "it may have taken effect"
		case f.IsUnknown():
			return "it may have taken effect; check before you repeat it"
		}
		return afterCause(f.Details[semantics.DetailCause])
	case semantics.ServiceTimeout, semantics.Throttled, semantics.ConflictInProgress:
		return "try again"
	case semantics.Unauthenticated:
		return "prove who you are with --token-file, --client-cert-file or --sas-key-file"
	case semantics.Internal:
		return "see the log of the sidecar"
	default:
		return ""
	}
}

// afterCause is what to do about a Redis that a sidecar cannot use.
func afterCause(cause string) string {
	switch cause {
	case "":
		return "try again"
	case "redis_noauth", "redis_wrongpass", "redis_noperm":
		return fmt.Sprintf("the cause is %s; check the user and the password of --store in the sidecar", cause)
	default:
		return fmt.Sprintf("the cause is %s; try again", cause)
	}
}

// ResourceOf returns the resource name in a request that is that of the entity with this path, empty if there is none.
func ResourceOf(request any, path string) string {
	var names []string
	if r, ok := request.(interface{ GetSource() string }); ok {
		names = append(names, r.GetSource())
	}
	if r, ok := request.(interface{ GetTarget() string }); ok {
		names = append(names, r.GetTarget())
	}
	if r, ok := request.(interface{ GetName() string }); ok {
		names = append(names, r.GetName())
	}
	if r, ok := request.(interface{ GetTopic() string }); ok {
		names = append(names, r.GetTopic())
	}
	if r, ok := request.(interface{ GetSubscription() string }); ok {
		names = append(names, r.GetSubscription())
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/rules/")
		topic, _ := TopicOf(name)
		for _, candidate := range []string{name, topic} {
			if _, rest, _ := strings.Cut(candidate, "/"); rest != "" && semantics.Fold(rest) == semantics.Fold(path) {
				return candidate
			}
		}
	}
	return ""
}

// translate turns the error of a call into a Failure.
func (c *Client) translate(request any, err error) error {
	answer := status.Convert(err)
	failure := &Failure{Message: answer.Message()}
	for _, detail := range answer.Details() {
		switch info := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason, failure.Details = semantics.Code(info.GetReason()), info.GetMetadata()
			failure.SQL, failure.IsSend = sqlOf(request, failure), isSend(request)
			failure.Resource = ResourceOf(request, failure.Details[semantics.DetailEntity])
		case *errdetails.RetryInfo:
			failure.RetryAfter = info.GetRetryDelay().AsDuration()
		}
	}
	if failure.Reason != "" {
		return failure
	}
	switch answer.Code() {
	case codes.Unavailable:
		if strings.Contains(answer.Message(), "looked like an HTTP/1.1 header") { // in gRPC's words
			return &Failure{Message: fmt.Sprintf(
				"%s is an address of HTTP, not of gRPC; set the gRPC address of the sidecar, "+
					"127.0.0.1:7421 by default, with --grpc-addr or SIDEBUS_GRPC_ADDR", c.addr,
			)}
		}
		return &Failure{
			Message: fmt.Sprintf(
				`no sidecar answers at %s: %s; start one with "sidebus serve", or set its gRPC address with --grpc-addr or SIDEBUS_GRPC_ADDR`,
				c.addr,
				cause(answer.Message()),
			),
		}
	case codes.DeadlineExceeded:
		return &Failure{
			Message: fmt.Sprintf(
				"the sidecar at %s did not answer within %s; check that this is its gRPC address, or raise --timeout",
				c.addr, duration.Text(c.timeout),
			),
		}
	case codes.Unimplemented:
		return &Failure{
			Message: fmt.Sprintf(
				"the server at %s does not know this call: %s; check that it is a sidecar, and not older than this sidebus",
				c.addr, answer.Message(),
			),
		}
	default:
		return &Failure{Message: fmt.Sprintf("the call of %s failed: %s: %s", c.addr, answer.Code(), answer.Message())}
	}
}

// cause takes out of gRPC's words for a connection that failed what the system said.
func cause(text string) string {
	for _, before := range []string{"Error while dialing: ", "connection error: desc = "} {
		if _, after, ok := strings.Cut(text, before); ok {
			text = strings.Trim(after, `"`)
		}
	}
	return text
}
