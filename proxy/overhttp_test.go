package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// overHTTP carries the calls of a generated client over the JSON API, with another JSON library than the one that is
// tested, so that one test can be about both wires. It does not know the types of properties whose JSON differs from
// that of the library: char and timespan.
type overHTTP struct{ *sidecar }

// Invoke implements grpc.ClientConnInterface.
func (c overHTTP) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	verb, path, body, err := httpRequest(method, args.(proto.Message))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, verb, "http://"+c.proxy.HTTPAddr().String()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return httpFailure(response.StatusCode, text)
	}
	if text, err = retyped(text, longValue); err != nil {
		return err
	}
	return protojson.Unmarshal(text, reply.(proto.Message))
}

// NewStream implements grpc.ClientConnInterface.
func (overHTTP) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams over HTTP")
}

// httpRequest returns route and body of a call.
func httpRequest(method string, request proto.Message) (verb, path string, body []byte, err error) {
	request = proto.Clone(request)
	m := request.ProtoReflect()
	service, rpc, _ := strings.Cut(strings.TrimPrefix(method, "/sidebus.v1."), "/")
	if service == "Admin" {
		return adminRequest(rpc, m)
	}
	entity := m.Descriptor().Fields().ByName("source")
	if entity == nil {
		entity = m.Descriptor().Fields().ByName("target")
	}
	path = route(m.Get(entity).String()) + "/" + strings.ToLower(service)
	m.Clear(entity)
	if body, err = protojson.Marshal(request); err != nil {
		return "", "", nil, err
	}
	if rpc == "List" {
		query, err := queryOf(body)
		return http.MethodGet, path + query, nil, err
	}
	body, err = retyped(body, shortValue)
	return http.MethodPost, path + ":" + strings.ToLower(rpc[:1]) + rpc[1:], body, err
}

// route returns the path of a resource, each name escaped. Names of subscriptions and rules have no slash.
func route(resource string) string {
	below := ""
	for _, kind := range []string{"/rules/", "/subscriptions/"} {
		if at := strings.LastIndex(resource, kind); at > len("topics") && strings.HasPrefix(resource, "topics/") {
			below = kind + url.PathEscape(resource[at+len(kind):]) + below
			resource = resource[:at]
		}
	}
	kind, name, _ := strings.Cut(resource, "/")
	return "/v1/" + kind + "/" + url.PathEscape(name) + below
}

// adminRequest is httpRequest of a call of Admin.
func adminRequest(rpc string, m protoreflect.Message) (verb, path string, body []byte, err error) {
	verbs := map[string]string{"Ensure": "PUT", "Create": "POST", "Get": "GET", "List": "GET", "Update": "PATCH", "Delete": "DELETE"}
	kind := ""
	for prefix, method := range verbs {
		if rest, ok := strings.CutPrefix(rpc, prefix); ok {
			verb, kind = method, strings.TrimSuffix(strings.TrimSuffix(rest, "s"), "Runtime")
		}
	}
	fields, query := m.Descriptor().Fields(), url.Values{}
	above := map[string]protoreflect.Name{"Subscription": "topic", "Rule": "subscription"}[kind]
	switch {
	case fields.ByName("name") != nil:
		path = route(m.Get(fields.ByName("name")).String())
	case above != "":
		path = route(m.Get(fields.ByName(above)).String()) + "/" + strings.ToLower(kind) + "s"
	default:
		path = "/v1/" + strings.ToLower(kind) + "s"
	}
	if strings.HasSuffix(rpc, "Runtime") {
		path += "/runtime"
	}
	for _, name := range []protoreflect.Name{"page_size", "page_token", "name_prefix"} {
		if field := fields.ByName(name); field != nil && m.Has(field) {
			query.Set(field.JSONName(), m.Get(field).String())
		}
	}
	if field := fields.ByName("update_mask"); field != nil && m.Has(field) {
		query.Set("updateMask", strings.Join(m.Get(field).Message().Interface().(*fieldmaskpb.FieldMask).GetPaths(), ","))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if description := fields.ByName(protoreflect.Name(strings.ToLower(kind))); description != nil && description.Message() != nil {
		if body, err = protojson.Marshal(m.Get(description).Message().Interface()); err == nil {
			body, err = retyped(body, shortValue)
		}
	}
	return verb, path, body, err
}

// queryOf turns a flat JSON object into a query.
func queryOf(body []byte) (string, error) {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil || len(fields) == 0 {
		return "", err
	}
	query := url.Values{}
	for name, value := range fields {
		query.Set(name, fmt.Sprint(value))
	}
	return "?" + query.Encode(), nil
}

// httpFailure returns the gRPC form of a failure over HTTP; its message is the status and the body.
func httpFailure(statusCode int, text []byte) error {
	var body struct {
		Reason  string
		Details map[string]string
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("%d %s: %w", statusCode, text, err)
	}
	expected, ok := statuses[body.Reason]
	if !ok || expected.http != statusCode {
		return fmt.Errorf("reason %s with HTTP status %d", body.Reason, statusCode)
	}
	info := &errdetails.ErrorInfo{Reason: body.Reason, Domain: "sidebus", Metadata: body.Details}
	failed, err := status.New(expected.grpc, fmt.Sprintf("%d %s", statusCode, text)).WithDetails(info)
	if err != nil {
		return err
	}
	return failed.Err()
}

// statuses are the rows of ERR that tests meet.
var statuses = map[string]struct {
	grpc codes.Code
	http int
}{
	"INVALID_ARGUMENT":       {codes.InvalidArgument, 400},
	"ARGUMENT_OUT_OF_RANGE":  {codes.OutOfRange, 400},
	"INVALID_OPERATION":      {codes.FailedPrecondition, 400},
	"PARTITION_KEY_MISMATCH": {codes.InvalidArgument, 400},
	"FILTER_INVALID":         {codes.InvalidArgument, 400},
	"ENTITY_NOT_FOUND":       {codes.NotFound, 404},
	"MESSAGE_NOT_FOUND":      {codes.NotFound, 404},
	"RULE_NOT_FOUND":         {codes.NotFound, 404},
	"ENTITY_ALREADY_EXISTS":  {codes.AlreadyExists, 409},
	"RULE_ALREADY_EXISTS":    {codes.AlreadyExists, 409},
	"ACTION_INVALID":         {codes.InvalidArgument, 400},
	"ENTITY_DISABLED":        {codes.FailedPrecondition, 409},
	"PROPERTY_IMMUTABLE":     {codes.FailedPrecondition, 409},
	"MESSAGE_SIZE_EXCEEDED":  {codes.InvalidArgument, 413},
	"QUOTA_EXCEEDED":         {codes.ResourceExhausted, 507},
	"STORE_UNAVAILABLE":      {codes.Unavailable, 503},

	"SESSION_REQUIRED":         {codes.FailedPrecondition, 400},
	"SESSION_ID_MISSING":       {codes.InvalidArgument, 400},
	"SESSION_NOT_SUPPORTED":    {codes.FailedPrecondition, 400},
	"SESSION_CANNOT_BE_LOCKED": {codes.Aborted, 409},
	"SESSION_LOCK_LOST":        {codes.FailedPrecondition, 410},
	"SESSION_STATE_TOO_LARGE":  {codes.InvalidArgument, 413},
	"PRECONDITION_FAILED":      {codes.FailedPrecondition, 412},
	"ENTITY_FULL":              {codes.ResourceExhausted, 507},
	"SERVICE_TIMEOUT":          {codes.DeadlineExceeded, 504},
	"NO_MATCHING_SUBSCRIPTION": {codes.FailedPrecondition, 409},
}

// retyped rewrites every property of a JSON text.
func retyped(text []byte, rewrite func(json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	if err := walk(value, rewrite); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func walk(value any, rewrite func(json.RawMessage) (json.RawMessage, error)) error {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if err := walk(element, rewrite); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			properties, ok := member.(map[string]any)
			if name != "properties" && name != "parameters" || !ok {
				if err := walk(member, rewrite); err != nil {
					return err
				}
				continue
			}
			for property, old := range properties {
				raw, err := json.Marshal(old)
				if err == nil {
					properties[property], err = rewrite(raw)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// shortValue turns {"int32Value":5} into {"type":"int32","value":5}.
func shortValue(raw json.RawMessage) (json.RawMessage, error) {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return nil, err
	}
	for kind, value := range kinds {
		if kind == "nullValue" {
			return json.RawMessage("null"), nil
		}
		return json.Marshal(map[string]any{"type": strings.TrimSuffix(kind, "Value"), "value": value})
	}
	return raw, nil
}

var wholeNumber = regexp.MustCompile(`^-?\d+$`)

// longValue is the opposite of shortValue, and knows the short forms too.
func longValue(raw json.RawMessage) (json.RawMessage, error) {
	kind, value := "", raw
	switch text := string(raw); {
	case text == "null":
		kind = "null"
	case text == "true" || text == "false":
		kind = "bool"
	case text[0] == '"':
		kind = "string"
	case text[0] == '{':
		var typed struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(raw, &typed); err != nil {
			return nil, err
		}
		kind, value = typed.Type, typed.Value
	case wholeNumber.MatchString(text):
		kind = "int64"
	default:
		kind = "double"
	}
	return json.Marshal(map[string]json.RawMessage{kind + "Value": value})
}
