package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// resource is an entity's name in the API.
func resource(path string) string {
	if topic, name, is := semantics.SplitSubscription(path); is {
		return "topics/" + topic + "/subscriptions/" + name
	}
	if path == news {
		return "topics/" + path
	}
	return "queues/" + path
}

func side(source semantics.Source) sidebusv1.SubQueue_Kind {
	if source.SubQueue == semantics.DeadLetterQueue {
		return sidebusv1.SubQueue_DEAD_LETTER
	}
	return sidebusv1.SubQueue_NONE
}

func sessionLockOf(source semantics.Source) *string {
	if source.SessionLock.IsZero() {
		return nil
	}
	text := source.SessionLock.String()
	return &text
}

// asSemantics returns a failure of a call over gRPC as the sidecar has it inside. For clients, a sidecar that cannot be
// reached is an outage, like an outage of Redis. A call without an answer has an unknown outcome.
func asSemantics(err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			return &semantics.Error{Code: semantics.Code(info.Reason), Message: s.Message(), Details: info.Metadata}
		}
	}
	if s.Code() != codes.Unavailable && s.Code() != codes.DeadlineExceeded && s.Code() != codes.Canceled {
		return err
	}
	failure := semantics.Errorf(semantics.StoreUnavailable, "%s", s.Message())
	if !strings.Contains(s.Message(), "while dialing") {
		failure.Details = map[string]string{semantics.DetailOutcome: semantics.OutcomeUnknown}
	}
	return failure
}

// jsonConn carries the calls of a generated client over the JSON API.
type jsonConn struct{ client *http.Client }

// NewStream implements grpc.ClientConnInterface.
func (jsonConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams over HTTP")
}

// Invoke implements grpc.ClientConnInterface.
func (c jsonConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	verb, path, body, err := jsonRequest(method, args.(proto.Message))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, verb, "http://localhost/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return unanswered(err)
	}
	if response.StatusCode == http.StatusOK {
		if text, err = withoutProperties(text); err != nil {
			return err
		}
		return protojson.Unmarshal(text, reply.(proto.Message))
	}
	var failed struct {
		Reason  string
		Details map[string]string
	}
	if err := json.Unmarshal(text, &failed); err != nil || failed.Reason == "" {
		return fmt.Errorf("%d %s: %w", response.StatusCode, text, err)
	}
	info := &errdetails.ErrorInfo{Reason: failed.Reason, Metadata: failed.Details}
	full, err := status.New(codes.Unknown, string(text)).WithDetails(info)
	if err != nil {
		return err
	}
	return full.Err()
}

// withoutProperties leaves the properties of messages away, whose JSON is not that of protojson.
func withoutProperties(text []byte) ([]byte, error) {
	var answer map[string]json.RawMessage
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(text, &answer); err != nil || answer["messages"] == nil {
		return text, err
	}
	if err := json.Unmarshal(answer["messages"], &messages); err != nil {
		return nil, err
	}
	for _, m := range messages {
		delete(m, "properties")
	}
	var err error
	if answer["messages"], err = json.Marshal(messages); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// unanswered converts a failure of HTTP to the form that gRPC has.
func unanswered(err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return status.Error(codes.Unavailable, "while dialing: "+err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}

// jsonRequest returns route and body of a call, as far as histories make it.
func jsonRequest(method string, request proto.Message) (verb, path string, body []byte, err error) {
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/sidebus.v1."), "/")
	switch q := request.(type) {
	case *sidebusv1.CreateRuleRequest:
		verb, path, request = http.MethodPost, q.GetSubscription()+"/rules", q.GetRule()
	case *sidebusv1.DeleteSubscriptionRequest:
		return http.MethodDelete, q.GetName(), nil, nil
	case *sidebusv1.DeleteRuleRequest:
		return http.MethodDelete, q.GetName(), nil, nil
	default:
		request = proto.Clone(request)
		m := request.ProtoReflect()
		entity := m.Descriptor().Fields().ByName("source")
		if entity == nil {
			entity = m.Descriptor().Fields().ByName("target")
		}
		verb = http.MethodPost
		path = m.Get(entity).String() + "/" + strings.ToLower(service) + ":" + strings.ToLower(rpc[:1]) + rpc[1:]
		m.Clear(entity)
	}
	body, err = protojson.Marshal(request)
	return verb, path, body, err
}

// createSubscription goes past all sidecars: none takes a lock as short as that.
func (p *outside) createSubscription(ctx context.Context, path string, rules []semantics.Rule) (isNew bool, err error) {
	_, isNew, err = p.store.CreateSubscription(ctx, path, subscriptionOptions(), rules)
	return isNew, err
}

func (p *outside) deleteSubscription(ctx context.Context, path string) error {
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.admin.DeleteSubscription(ctx, &sidebusv1.DeleteSubscriptionRequest{Name: resource(path)})
		return err
	})
}

func (p *outside) createRule(ctx context.Context, subscription string, rule semantics.Rule) error {
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.admin.CreateRule(ctx, &sidebusv1.CreateRuleRequest{Subscription: resource(subscription), Rule: wireRule(rule)})
		return err
	})
}

func (p *outside) deleteRule(ctx context.Context, subscription, name string) error {
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.admin.DeleteRule(ctx, &sidebusv1.DeleteRuleRequest{Name: resource(subscription) + "/rules/" + url.PathEscape(name)})
		return err
	})
}

func wireRule(rule semantics.Rule) *sidebusv1.Rule {
	return &sidebusv1.Rule{Name: rule.Name, Filter: &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Correlation{
		Correlation: &sidebusv1.Rule_Correlation{Subject: rule.Filter.Correlation.Subject},
	}}}
}
