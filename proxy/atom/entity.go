package atom

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/paging"
	"github.com/sidebus/sidebus/semantics"
)

// find runs a call for what the path names: a subscription, or a queue or topic, which paths do not tell apart.
func (x *exchange) find(call func(kind semantics.Kind) error) error {
	if x.route.target == aSubscription {
		return call(semantics.SubscriptionKind)
	}
	err := call(semantics.QueueKind)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		err = call(semantics.TopicKind)
	}
	return err
}

func (x *exchange) getEntity(ctx context.Context) (int, []byte, error) {
	var found semantics.Entity
	err := x.find(func(kind semantics.Kind) (err error) {
		found, err = x.Broker.GetEntity(ctx, kind, x.route.path)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	r, err := x.resource(ctx, found)
	return http.StatusOK, x.single(r), err
}

// resource returns an entity with its counts. One that was deleted meanwhile has none.
func (x *exchange) resource(ctx context.Context, e semantics.Entity) (resource, error) {
	c := counted{Entity: e, host: x.request.Host}
	var err error
	c.Runtime, err = x.Broker.Runtime(ctx, e.Kind, e.Name)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		err = nil
	}
	return resource{
		id: e.Name, title: e.OwnName(), created: e.CreatedAt, updated: e.UpdatedAt, describe: c.describe,
	}, err
}

// putEntity creates an entity, or replaces the description of one (ENT-6, ENT-7).
func (x *exchange) putEntity(ctx context.Context) (int, []byte, error) {
	description, isUpdate, err := x.read()
	if err != nil {
		return 0, nil, err
	}
	kind, err := x.kindOf(description)
	if err != nil {
		return 0, nil, err
	}
	options, given, err := parseOptions(kind, description)
	if err == nil {
		err = x.checkDestinations(ctx, options)
	}
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusCreated
	var e semantics.Entity
	if isUpdate {
		status = http.StatusOK
		e, err = x.Broker.UpdateEntity(ctx, kind, x.route.path, options, changed(kind, given))
	} else {
		var rules []semantics.Rule
		if rules, err = firstRules(description); err == nil {
			e, err = x.Broker.CreateEntity(ctx, kind, x.route.path, options, given, rules...)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	r, err := x.resource(ctx, e)
	return status, x.single(r), err
}

// kindOf returns the kind of a description, which must be that of the path.
func (x *exchange) kindOf(description *element) (semantics.Kind, error) {
	for kind, name := range descriptions {
		if name == description.name && (kind == semantics.SubscriptionKind) == (x.route.target == aSubscription) {
			return kind, nil
		}
	}
	return 0, semantics.InvalidField(
		"entry", "has the description %q, which is not one of an entity with this path", semantics.Shorten(description.name),
	)
}

// checkDestinations refuses a client that forwards to an entity that it may not manage: otherwise it would get at
// messages and entities of others.
func (x *exchange) checkDestinations(ctx context.Context, options semantics.Options) error {
	for _, name := range semantics.DestinationOptions() {
		o, _ := semantics.OptionNamed(name)
		path := *o.Value.(semantics.TextOption).At(&options)
		if path == "" {
			continue
		}
		if err := access.Permit(ctx, access.Right{Claims: access.Manage, Path: path}); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) deleteEntity(ctx context.Context) (int, []byte, error) {
	err := x.find(func(kind semantics.Kind) error { return x.Broker.DeleteEntity(ctx, kind, x.route.path) })
	return http.StatusOK, nil, err
}

func (x *exchange) listQueues(ctx context.Context) (int, []byte, error) {
	return x.listEntities(ctx, semantics.QueueKind, "Queues")
}

func (x *exchange) listTopics(ctx context.Context) (int, []byte, error) {
	return x.listEntities(ctx, semantics.TopicKind, "Topics")
}

func (x *exchange) listSubscriptions(ctx context.Context) (int, []byte, error) {
	return x.listEntities(ctx, semantics.SubscriptionKind, "Subscriptions")
}

func (x *exchange) listEntities(ctx context.Context, kind semantics.Kind, title string) (int, []byte, error) {
	return list(x, title, func(token string) ([]semantics.Entity, string, error) {
		return x.Broker.ListEntities(ctx, kind, x.route.path, semantics.MaxPageSize, token)
	}, func(e semantics.Entity) (resource, error) { return x.resource(ctx, e) })
}

// list returns the page of a listing that the request asks for (ENT-17).
func list[T any](
	x *exchange, title string, page func(token string) ([]T, string, error), describe func(T) (resource, error),
) (int, []byte, error) {
	skip, err := x.count("$skip", 0, 0, maxSkip)
	if err != nil {
		return 0, nil, err
	}
	top, err := x.count("$top", semantics.MaxPageSize, 1, semantics.MaxPageSize)
	if err != nil {
		return 0, nil, err
	}
	rows, err := paging.Window(skip, top+1, page) // one more shows that there is a next page
	if err != nil {
		return 0, nil, err
	}
	next := ""
	if len(rows) > top {
		rows, next = rows[:top], x.nextPage(skip+top, top)
	}
	resources := make([]resource, len(rows))
	for i, row := range rows {
		if resources[i], err = describe(row); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, x.feed(title, next, resources), nil
}

// maxSkip is more than any listing has.
const maxSkip = 10_000_000

// count returns a number of the query.
func (x *exchange) count(name string, usual, least, most int) (int, error) {
	query := x.request.URL.Query()
	if !query.Has(name) {
		return usual, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, semantics.FieldError(
			semantics.ArgumentOutOfRange, name, "is %q, must be %d to %d", semantics.Shorten(query.Get(name)), least, most,
		)
	}
	return n, nil
}

// nextPage returns the address of the next page.
func (x *exchange) nextPage(skip, top int) string {
	next := x.origin() + x.request.URL.EscapedPath() + "?$skip=" + strconv.Itoa(skip) + "&$top=" + strconv.Itoa(top)
	if version := x.request.URL.Query().Get("api-version"); version != "" {
		next += "&api-version=" + escapeQuery(version)
	}
	return next
}

// getNamespace describes the namespace, of which a sidecar knows only the name.
func (x *exchange) getNamespace(context.Context) (int, []byte, error) {
	return http.StatusOK, x.single(resource{
		id: "$namespaceinfo", title: x.Namespace, describe: func(d *document) {
			d.description("NamespaceInfo", func() {
				d.text("CreatedTime", "0001-01-01T00:00:00Z")
				d.text("MessagingSKU", "Standard")
				d.text("ModifiedTime", "0001-01-01T00:00:00Z")
				d.text("Name", x.Namespace)
				d.text("NamespaceType", "Messaging")
			})
		},
	}), nil
}
