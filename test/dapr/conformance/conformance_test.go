// Package conformance runs the suite that Dapr's own pub/sub components have to pass, over the socket, as Dapr's
// runtime would call.
package conformance

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/dapr/components-contrib/pubsub"
	suite "github.com/dapr/components-contrib/tests/conformance/pubsub"
	pubsubloader "github.com/dapr/dapr/pkg/components/pubsub"
	runtimepubsub "github.com/dapr/dapr/pkg/runtime/pubsub"
	"github.com/dapr/kit/logger"
	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) {
	// Dapr's metrics never end
	sidecartest.Main(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// component is one that plugs itself in, with what Dapr's runtime does for subscriptions in bulk to those that have
// none of their own.
type component struct {
	pubsub.PubSub
	pubsub.BulkPublisher
	pubsub.BulkSubscriber
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ component, publish, subscribe map[string]string }{
		"topic":          {},
		"queue":          {component: map[string]string{"entityKind": "queue"}},
		"topic sessions": {publish: map[string]string{"SessionId": "s"}, subscribe: map[string]string{"requireSessions": "true"}},
		"queue sessions": {
			component: map[string]string{"entityKind": "queue", "requireSessions": "true"},
			publish:   map[string]string{"SessionId": "s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(daprtest.Sockets(t), "sidebus.sock")
			sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--dapr-socket", socket)
			ps := pubsubloader.NewGRPCPubSub(logger.NewLogger("conformance"), socket)
			config, err := suite.NewTestConfig("sidebus", []string{"bulkpublish", "bulksubscribe"}, map[string]any{
				"pubsubName": "sidebus", "testTopicName": "conf", "testTopicForBulkSub": "conf-bulk",
				"testMultiTopic1Name": "conf-1", "testMultiTopic2Name": "conf-2",
				"checkInOrderProcessing": true, "waitDurationToPublish": "500ms", "maxReadDuration": "20s",
			})
			if err != nil {
				t.Fatal(err)
			}
			config.PublishMetadata, config.SubscribeMetadata, config.BulkSubscribeMetadata = c.publish, c.subscribe, c.subscribe
			properties := map[string]string{"consumerID": "conf"}
			maps.Copy(properties, c.component)
			suite.ConformanceTests(t, properties, component{ps, ps, runtimepubsub.NewDefaultBulkSubscriber(ps)}, config)
		})
	}
}
