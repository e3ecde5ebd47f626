package client

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/semantics"
)

// Failure is a call that a sidecar refused or could not carry out.
type Failure struct {
	Reason   semantics.Code // empty when there was no answer of a sidecar
	Message  string
	Details  map[string]string
	Resource string // the entity that it is about, where the request has named it

	RetryAfter time.Duration // when to try again; zero when nothing is known
}

// Error gives reason, text, and what to do next where the text does not say it.
func (f *Failure) Error() string {
	if f.Reason == "" {
		return f.Message
	}
	text := fmt.Sprintf("%s: %s", f.Reason, f.Message)
	if next := f.next(); next != "" {
		text += "; " + next
	}
	return text
}

// IsUnknown reports whether the call may have taken effect all the same.
func (f *Failure) IsUnknown() bool {
	return f.Reason == "" || f.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown
}

func (f *Failure) next() string {
	switch f.Reason {
	case semantics.EntityAlreadyExists:
		return `"sidebus entity ensure" takes what is there, "sidebus entity update" changes it`
	case semantics.EntityDisabled:
		name := f.Details[semantics.DetailEntity]
		if f.Resource != "" {
			name = Name(f.Resource)
		}
		return fmt.Sprintf(`"sidebus entity update %s --set status=ACTIVE" does that`, OneLine(name))
	case semantics.RuleAlreadyExists:
		return `rules are not changed; "sidebus rule delete" makes room for another one`
	case semantics.EntityFull:
		return "receive or purge messages, or raise maxSizeInMegabytes or maxMessageCount"
	case semantics.SessionRequired:
		return "--session or --next-session says which"
	case semantics.SessionCannotBeLocked:
		return `"sidebus session show" tells more, and --wait waits for it`
	case semantics.StoreUnavailable:
		if f.IsUnknown() {
			return "it may have taken effect, so look before you repeat it"
		}
		return "try again"
	case semantics.ServiceTimeout, semantics.Throttled, semantics.ConflictInProgress:
		return "try again"
	case semantics.Internal:
		return "the log of the sidecar says more"
	default:
		return ""
	}
}

// resourceOf gives the resource name in a request that is that of the entity with this path, empty if there is none.
func resourceOf(request any, path string) string {
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
	for _, name := range names {
		if _, rest, _ := strings.Cut(name, "/"); semantics.Fold(rest) == semantics.Fold(path) {
			return name
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
			failure.Resource = resourceOf(request, failure.Details[semantics.DetailEntity])
		case *errdetails.RetryInfo:
			failure.RetryAfter = info.GetRetryDelay().AsDuration()
		}
	}
	if failure.Reason != "" {
		return failure
	}
	switch answer.Code() {
	case codes.Unavailable:
		return &Failure{Message: fmt.Sprintf(`no sidecar answers at %s: %s; start one with "sidebus serve", or name its gRPC address with --grpc-addr or SIDEBUS_GRPC_ADDR`,
			c.addr, cause(answer.Message()))}
	case codes.DeadlineExceeded:
		return &Failure{Message: fmt.Sprintf("the sidecar at %s did not answer within %s; is it its gRPC address? --timeout gives it longer", c.addr, c.timeout)}
	case codes.Unimplemented:
		return &Failure{Message: fmt.Sprintf("what answers at %s does not know this verb: %s; is it a sidecar, and as new as this sidebus?", c.addr, answer.Message())}
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
