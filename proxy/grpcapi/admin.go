package grpcapi

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Admin serves sidebus.v1.Admin. It is safe for concurrent use.
type Admin struct {
	sidebusv1.UnimplementedAdminServer

	broker *broker.Broker
}

// NewAdmin returns an Admin over broker.
func NewAdmin(broker *broker.Broker) *Admin { return &Admin{broker: broker} }

// entityRequest is what all requests about one existing entity have in common.
type entityRequest interface {
	proto.Message
	GetName() string
}

// pageRequest is what all requests for a page of entities have in common.
type pageRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
	GetNamePrefix() string
}

// pathOf returns the path of the entity that a request names.
func (a *Admin) pathOf(kind semantics.Kind, request entityRequest) (string, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return "", err
	}
	return pathOf(kind, "name", request.GetName())
}

// ensure creates an entity if its name is free; see broker.Broker.EnsureEntity.
func (a *Admin) ensure(
	ctx context.Context, kind semantics.Kind, request entityRequest, d wire.Description, rules ...semantics.Rule,
) (broker.Ensured, error) {
	path, err := a.pathOf(kind, request)
	if err != nil {
		return broker.Ensured{}, err
	}
	if err := checkSameName(path, d); err != nil {
		return broker.Ensured{}, err
	}
	options, given, err := wire.OptionsOf(kind, d)
	if err != nil {
		return broker.Ensured{}, err
	}
	return a.broker.EnsureEntity(ctx, kind, path, options, given, rules...)
}

func differencesFrom(differences []semantics.Difference) []*sidebusv1.Difference {
	all := make([]*sidebusv1.Difference, len(differences))
	for i, d := range differences {
		all[i] = &sidebusv1.Difference{Option: d.Option, Present: d.Present, Asked: d.Asked}
	}
	return all
}

// create creates an entity; see broker.Broker.CreateEntity.
func (a *Admin) create(
	ctx context.Context, kind semantics.Kind, path string, d wire.Description, rules ...semantics.Rule,
) (semantics.Entity, error) {
	options, given, err := wire.OptionsOf(kind, d)
	if err != nil {
		return semantics.Entity{}, err
	}
	return a.broker.CreateEntity(ctx, kind, path, options, given, rules...)
}

// get reads an entity; see broker.Broker.GetEntity.
func (a *Admin) get(ctx context.Context, kind semantics.Kind, request entityRequest) (semantics.Entity, error) {
	path, err := a.pathOf(kind, request)
	if err != nil {
		return semantics.Entity{}, err
	}
	return a.broker.GetEntity(ctx, kind, path)
}

// list returns one page of entities, or of the subscriptions of a topic; see broker.Broker.ListEntitiesByPrefix.
func (a *Admin) list(
	ctx context.Context, kind semantics.Kind, topic string, request pageRequest,
) ([]semantics.Entity, string, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, "", err
	}
	return a.broker.ListEntitiesByPrefix(
		ctx, kind, topic, request.GetNamePrefix(), int(request.GetPageSize()), request.GetPageToken(),
	)
}

// update changes options of an entity; see broker.Broker.UpdateEntity.
func (a *Admin) update(
	ctx context.Context, kind semantics.Kind, request entityRequest, d wire.Description, mask *fieldmaskpb.FieldMask,
) (semantics.Entity, error) {
	path, err := a.pathOf(kind, request)
	if err != nil {
		return semantics.Entity{}, err
	}
	if err := checkSameName(path, d); err != nil {
		return semantics.Entity{}, err
	}
	options, names, err := wire.OptionsOf(kind, d)
	if err != nil {
		return semantics.Entity{}, err
	}
	if mask != nil {
		names = wire.MaskOf(d, mask.GetPaths()) // one that is absent has its default in options
	}
	return a.broker.UpdateEntity(ctx, kind, path, options, names)
}

// remove removes an entity; see broker.Broker.DeleteEntity.
func (a *Admin) remove(ctx context.Context, kind semantics.Kind, request entityRequest) error {
	path, err := a.pathOf(kind, request)
	if err != nil {
		return err
	}
	return a.broker.DeleteEntity(ctx, kind, path)
}

// runtime returns the counts of an entity; see broker.Broker.Runtime.
func (a *Admin) runtime(ctx context.Context, kind semantics.Kind, request entityRequest) (semantics.Runtime, error) {
	path, err := a.pathOf(kind, request)
	if err != nil {
		return semantics.Runtime{}, err
	}
	return a.broker.Runtime(ctx, kind, path)
}

// checkSameName rejects a description whose name differs from the name in the request.
func checkSameName(path string, d wire.Description) error {
	name := path
	if _, own, ok := semantics.SplitSubscription(path); ok {
		name = own
	}
	if other := d.GetName(); other != "" && semantics.Fold(other) != semantics.Fold(name) {
		return semantics.InvalidField("name", "is %q in the description and %q in the request", other, name)
	}
	return nil
}
