package access

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/externalscaler"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// calls returns the rights that each RPC needs, by its full name (the table of AUTH-3). The Service Bus REST API uses
// those of the corresponding RPC.
var calls = map[string]func(proto.Message) []Right{
	sidebusv1.Messages_Send_FullMethodName:               to(Send),
	sidebusv1.Messages_CancelScheduled_FullMethodName:    to(Send),
	sidebusv1.Messages_Publish_FullMethodName:            to(Send),
	sidebusv1.Messages_Request_FullMethodName:            rightsOfRequest,
	sidebusv1.Messages_Receive_FullMethodName:            to(Listen),
	sidebusv1.Messages_CompleteAndReceive_FullMethodName: to(Listen),
	sidebusv1.Messages_ReceiveDeferred_FullMethodName:    to(Listen),
	sidebusv1.Messages_ReceiveBySequence_FullMethodName:  to(Listen),
	sidebusv1.Messages_Peek_FullMethodName:               to(Listen),
	sidebusv1.Messages_Complete_FullMethodName:           settle,
	sidebusv1.Messages_Abandon_FullMethodName:            settle,
	sidebusv1.Messages_Defer_FullMethodName:              settle,
	sidebusv1.Messages_Release_FullMethodName:            settle,
	sidebusv1.Messages_DeadLetter_FullMethodName:         settle,
	sidebusv1.Messages_RenewLocks_FullMethodName:         to(Listen),
	sidebusv1.Messages_Reactivate_FullMethodName:         to(Listen),
	sidebusv1.Messages_DeleteBySequence_FullMethodName:   to(Listen),
	sidebusv1.Messages_Subscribe_FullMethodName:          rightsOfSubscribe,
	sidebusv1.Messages_Purge_FullMethodName:              rightsOfPurge,
	sidebusv1.Messages_Resubmit_FullMethodName:           rightsOfResubmit,

	sidebusv1.Sessions_Accept_FullMethodName:    to(Listen),
	sidebusv1.Sessions_RenewLock_FullMethodName: to(Listen),
	sidebusv1.Sessions_Close_FullMethodName:     to(Listen),
	sidebusv1.Sessions_GetState_FullMethodName:  to(Listen),
	sidebusv1.Sessions_SetState_FullMethodName:  to(Listen),
	sidebusv1.Sessions_List_FullMethodName:      to(Listen),
	sidebusv1.Sessions_Unblock_FullMethodName:   to(Listen),

	sidebusv1.Sessions_DeadLetterRest_FullMethodName: to(Listen),

	sidebusv1.Transactions_Transact_FullMethodName: rightsOfOperations,
	sidebusv1.Transactions_Begin_FullMethodName:    none,
	sidebusv1.Transactions_Add_FullMethodName:      rightsOfOperations,
	sidebusv1.Transactions_Commit_FullMethodName:   none,
	sidebusv1.Transactions_Rollback_FullMethodName: none,

	sidebusv1.Admin_EnsureQueue_FullMethodName:            manage,
	sidebusv1.Admin_CreateQueue_FullMethodName:            manage,
	sidebusv1.Admin_GetQueue_FullMethodName:               manage,
	sidebusv1.Admin_ListQueues_FullMethodName:             manage,
	sidebusv1.Admin_UpdateQueue_FullMethodName:            manage,
	sidebusv1.Admin_DeleteQueue_FullMethodName:            manage,
	sidebusv1.Admin_GetQueueRuntime_FullMethodName:        manage,
	sidebusv1.Admin_EnsureTopic_FullMethodName:            manage,
	sidebusv1.Admin_CreateTopic_FullMethodName:            manage,
	sidebusv1.Admin_GetTopic_FullMethodName:               manage,
	sidebusv1.Admin_ListTopics_FullMethodName:             manage,
	sidebusv1.Admin_UpdateTopic_FullMethodName:            manage,
	sidebusv1.Admin_DeleteTopic_FullMethodName:            manage,
	sidebusv1.Admin_GetTopicRuntime_FullMethodName:        manage,
	sidebusv1.Admin_EnsureSubscription_FullMethodName:     manage,
	sidebusv1.Admin_CreateSubscription_FullMethodName:     manage,
	sidebusv1.Admin_GetSubscription_FullMethodName:        manage,
	sidebusv1.Admin_ListSubscriptions_FullMethodName:      manage,
	sidebusv1.Admin_UpdateSubscription_FullMethodName:     manage,
	sidebusv1.Admin_DeleteSubscription_FullMethodName:     manage,
	sidebusv1.Admin_GetSubscriptionRuntime_FullMethodName: manage,

	sidebusv1.Admin_EnsureRule_FullMethodName: manage,
	sidebusv1.Admin_CreateRule_FullMethodName: manage,
	sidebusv1.Admin_GetRule_FullMethodName:    to(Listen),
	sidebusv1.Admin_ListRules_FullMethodName:  to(Listen),
	sidebusv1.Admin_DeleteRule_FullMethodName: manage,

	externalscaler.ExternalScaler_IsActive_FullMethodName:       rightsOfScaler,
	externalscaler.ExternalScaler_StreamIsActive_FullMethodName: rightsOfScaler,
	externalscaler.ExternalScaler_GetMetricSpec_FullMethodName:  rightsOfScaler,
	externalscaler.ExternalScaler_GetMetrics_FullMethodName:     rightsOfScaler,
}

// to returns the function for calls that need the claims on the one entity that the request names.
func to(claims Claims) func(proto.Message) []Right {
	return func(request proto.Message) []Right { return []Right{{Claims: claims, Path: named(request)}} }
}

// settle returns the rights of calls that end locks of messages.
func settle(request proto.Message) []Right {
	return []Right{{Claims: Listen, Path: named(request), Settles: true}}
}

// none is for calls that need no right before their transaction is known: Commit asks for those of its operations
// (RightOf), and Rollback does nothing to an entity.
func none(proto.Message) []Right { return nil }

// rightsOfOperations are those of the calls that the operations of a transaction are.
func rightsOfOperations(request proto.Message) (rights []Right) {
	for _, operation := range request.(interface{ GetOperations() []*sidebusv1.Operation }).GetOperations() {
		field := operation.ProtoReflect().WhichOneof(operation.ProtoReflect().Descriptor().Oneofs().Get(0))
		if field == nil {
			continue // the call is refused later
		}
		right := Right{Claims: Listen, Settles: operation.GetSetSessionState() == nil}
		if operation.GetSend() != nil || operation.GetCancelScheduled() != nil {
			right = Right{Claims: Send}
		}
		right.Path = named(operation.ProtoReflect().Get(field).Message().Interface())
		rights = append(rights, right)
	}
	return rights
}

// rightsOfScaler are those of who scales the receivers of a source: to learn how much there is to receive needs no more
// than to receive it.
func rightsOfScaler(request proto.Message) []Right {
	ref, ok := request.(*externalscaler.ScaledObjectRef)
	if !ok {
		ref = request.(*externalscaler.GetMetricsRequest).GetScaledObjectRef()
	}
	return []Right{{Claims: Listen, Path: pathOf(ref.GetScalerMetadata()["source"])}}
}

// RightOf returns the right that an operation of a transaction needs.
func RightOf(o semantics.Operation) Right {
	if o.Verb == semantics.OperationSend || o.Verb == semantics.OperationCancel {
		return Right{Claims: Send, Path: o.Source.Path}
	}
	return Right{Claims: Listen, Path: o.Source.Path, Settles: o.Verb != semantics.OperationSetState}
}

// named returns the path of the entity in a request, or "" if there is none.
func named(request proto.Message) string {
	switch r := request.(type) {
	case interface{ GetTarget() string }:
		return pathOf(r.GetTarget())
	case interface{ GetSource() string }:
		return pathOf(r.GetSource())
	case interface{ GetName() string }:
		return pathOf(r.GetName())
	case interface{ GetSubscription() string }:
		return pathOf(r.GetSubscription())
	case *sidebusv1.CreateSubscriptionRequest: // what it creates, as EnsureSubscription
		return semantics.SubscriptionPath(pathOf(r.GetTopic()), r.GetSubscription().GetName())
	case interface{ GetTopic() string }:
		return pathOf(r.GetTopic())
	case *sidebusv1.CreateQueueRequest:
		return r.GetQueue().GetName()
	case *sidebusv1.CreateTopicRequest:
		return r.GetTopic().GetName()
	default:
		return ""
	}
}

// pathOf returns the path of the entity in a resource name; for a rule, its subscription. Malformed names are returned
// unchanged: a SAS rule for one entity does not permit them, and other callers get the error later.
func pathOf(resource string) string {
	for _, prefix := range []string{"queues/", "topics/"} {
		if path, ok := strings.CutPrefix(resource, prefix); ok {
			resource = path
			break
		}
	}
	if at := strings.LastIndex(resource, "/rules/"); at >= 0 &&
		strings.IndexByte(resource[at+len("/rules/"):], '/') < 0 {
		if _, _, ofSubscription := semantics.SplitSubscription(resource[:at]); ofSubscription {
			return resource[:at]
		}
	}
	return resource
}

// manage returns the rights of calls that need Manage on the entity, and on those that it forwards to: otherwise a SAS
// rule for one entity would give access to others.
func manage(request proto.Message) []Right {
	rights := to(Manage)(request)
	var described proto.Message
	switch r := request.(type) {
	case interface{ GetQueue() *sidebusv1.Queue }:
		described = r.GetQueue()
	case interface{ GetTopic() *sidebusv1.Topic }:
		described = r.GetTopic()
	case interface {
		GetSubscription() *sidebusv1.Subscription
	}:
		described = r.GetSubscription()
	}
	for _, path := range destinationsOf(described) {
		rights = append(rights, Right{Claims: Manage, Path: path})
	}
	return rights
}

// destinationsOf returns the paths that the options of an entity forward to. The description may be nil.
func destinationsOf(described proto.Message) (paths []string) {
	if described == nil {
		return nil
	}
	m := described.ProtoReflect()
	for _, option := range semantics.DestinationOptions() {
		field := m.Descriptor().Fields().ByJSONName(option)
		if field == nil {
			continue
		}
		if path := m.Get(field).String(); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

func rightsOfRequest(request proto.Message) []Right {
	r := request.(*sidebusv1.RequestRequest)
	return []Right{{Claims: Send, Path: pathOf(r.GetTarget())}, {Claims: Listen, Path: pathOf(r.GetReplyTo())}}
}

func rightsOfSubscribe(request proto.Message) []Right {
	return []Right{{Claims: Listen, Path: pathOf(request.(*sidebusv1.SubscribeRequest).GetOpen().GetSource())}}
}

// rightsOfPurge: with a limit of messages, a purge is an operation of a receiver; otherwise it clears the entity, or a
// session that others may have locked (PURGE-6, PURGE-7).
func rightsOfPurge(request proto.Message) []Right {
	r := request.(*sidebusv1.PurgeRequest)
	if r.MaxMessages != nil && r.SessionId == nil {
		return to(Listen)(request)
	}
	return to(Manage)(request)
}

// rightsOfResubmit: a resubmit to where the dead letters came from is a receive and a send; to another entity it needs
// Manage on both.
func rightsOfResubmit(request proto.Message) []Right {
	r := request.(*sidebusv1.ResubmitRequest)
	source, target := pathOf(r.GetSource()), pathOf(r.GetTarget())
	if target == "" || semantics.Fold(r.GetSource()) == semantics.Fold(r.GetTarget()) {
		return []Right{{Claims: Listen | Send, Path: source}}
	}
	return []Right{{Claims: Manage, Path: source}, {Claims: Manage, Path: target}}
}
