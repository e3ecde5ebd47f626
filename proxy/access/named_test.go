package access_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// namesEntity reports whether a field of a request names an entity, as a resource or as a path, so that it needs a right.
// isKnown is false for a field that is in no list: a new one must be added to one of them.
func namesEntity(method string, p place) (names, isKnown bool) {
	if strings.HasPrefix(p.String(), "settle.") {
		return false, true // a stream knows its source; subscribe_request.go refuses another one
	}
	switch p.String() {
	case "rule.name", "subscription.rules.name", "rule.filter.correlation.reply_to", "subscription.rules.filter.correlation.reply_to":
		return false, true // a rule within its subscription, a value of messages
	case "subscription.name", "queue.name", "topic.name": // must agree with the name of the request; see checkSameName
		return method == "CreateQueue" || method == "CreateTopic", true
	}
	switch p.field.Name() {
	case "source", "target", "reply_to", "name", "topic", "subscription", "forward_to", "forward_dead_lettered_messages_to", "unmatched_to":
		return true, true
	case "user_metadata", "expression", "content_type", "correlation_id", "message_id", "reply_to_session_id", "session_id", "subject", "to",
		"warnings", "name_prefix", "page_token", "method", "lock_token", "lock_tokens", "session_lock_token", "message_ids", "description", "reason",
		"request_id", "filter", "id", "transaction_id":
		return false, true
	default:
		return false, false
	}
}

// place is a field of a request, and the messages on the way to it.
type place struct {
	way   []protoreflect.FieldDescriptor
	field protoreflect.FieldDescriptor
}

func (p place) String() string {
	var names []string
	for _, field := range append(slices.Clone(p.way), p.field) {
		names = append(names, string(field.Name()))
	}
	return strings.Join(names, ".")
}

// placesIn returns the fields of a request with a text, except those of messages that are sent.
func placesIn(of protoreflect.MessageDescriptor, way []protoreflect.FieldDescriptor) (places []place) {
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		switch {
		case field.IsMap(), slices.Contains(way, field):
		case field.Kind() == protoreflect.StringKind:
			places = append(places, place{way, field})
		case field.Kind() == protoreflect.MessageKind && field.Message().Parent() != nil && field.Message().FullName() != "sidebus.v1.Message" &&
			strings.HasPrefix(string(field.Message().FullName()), "sidebus.v1."):
			places = append(places, placesIn(field.Message(), append(slices.Clone(way), field))...)
		}
	}
	return places
}

// set sets a field of a request. Fields on the way to it are created, lists with one element.
func (p place) set(request protoreflect.Message, value string) {
	at := request
	for _, field := range p.way {
		switch {
		case !field.IsList():
			at = at.Mutable(field).Message()
		case at.Get(field).List().Len() > 0:
			at = at.Mutable(field).List().Get(0).Message()
		default:
			at = at.Mutable(field).List().AppendMutable().Message()
		}
	}
	at.Set(p.field, protoreflect.ValueOfString(value))
}

// requestWith returns a request that names "open" everywhere, except in one place.
func requestWith(t *testing.T, method protoreflect.MethodDescriptor, except place) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	request := kind.New()
	for _, p := range placesIn(method.Input(), nil) {
		if names, _ := namesEntity(string(method.Name()), p); names {
			p.set(request, "open")
		}
	}
	except.set(request, "secret")
	return request.Interface()
}

// No field of a request reaches an entity without a right: a caller who may do everything with one entity is refused as
// soon as any field names another one.
func TestAUTH_3_EveryEntityThatARequestNamesIsChecked(t *testing.T) {
	t.Parallel()
	caller, err := fixed(access.Identity{Name: "a", Handlers: true, Grants: []access.Grant{grant(t, all, "open")}}).Authenticate(access.Proof{Way: access.ByHandler})
	if err != nil {
		t.Fatal(err)
	}
	ctx := access.WithCaller(t.Context(), caller)
	seen := 0
	protoregistry.GlobalFiles.RangeFilesByPackage(sidebusv1.File_sidebus_v1_messages_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				method := file.Services().Get(i).Methods().Get(j)
				full := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
				for _, p := range placesIn(method.Input(), nil) {
					names, isKnown := namesEntity(string(method.Name()), p)
					if !isKnown {
						t.Errorf("%s: %s is in no list", full, p)
					}
					if !names {
						continue
					}
					seen++
					err := access.Check(ctx, full, requestWith(t, method, p))
					if semantics.CodeOf(err) != semantics.PermissionDenied || !strings.Contains(err.Error(), "secret") {
						t.Errorf("%s with another entity in %s: got %v", full, p, err)
					}
				}
			}
		}
		return true
	})
	if seen < 60 {
		t.Errorf("only %d fields name entities", seen)
	}
}
