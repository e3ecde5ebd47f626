package dapr

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/sidebus/sidebus/test/dapr/daprtest"
)

// azure is a Component file as it was written for Azure Service Bus, with all its settings and not a word changed.
func azure(kind string) string {
	return fmt.Sprintf(`apiVersion: dapr.io/v1alpha1
kind: Component
metadata:
  name: bus
spec:
  type: pubsub.azure.%s
  version: v1
  metadata:
    - name: connectionString
      value: "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=c2VjcmV0;EntityPath="
    - name: timeoutInSec
      value: 60
    - name: handlerTimeoutInSec
      value: 60
    - name: lockRenewalInSec
      value: 20
    - name: maxActiveMessages
      value: 100
    - name: maxConcurrentHandlers
      value: 10
    - name: maxConnectionRecoveryInSec
      value: 300
    - name: minConnectionRecoveryInSec
      value: 2
    - name: maxRetriableErrorsPerSec
      value: 10
    - name: disableEntityManagement
      value: "false"
    - name: maxDeliveryCount
      value: 3
    - name: lockDurationInSec
      value: 60
    - name: defaultMessageTimeToLiveInSec
      value: 3600
    - name: autoDeleteOnIdleInSec
      value: 3600
    - name: publishMaxRetries
      value: 5
    - name: publishInitialRetryIntervalInMs
      value: 500
`, kind)
}

// The daprd of the tests has the components of Azure built in: those of Sidebus take their place.
func TestDAPR_1_DropInForAzureServiceBus(t *testing.T) {
	t.Parallel()
	for kind, source := range map[string]string{
		"servicebus.topics": subscription("orders"), "servicebus.queues": queue("orders"),
		"servicebus": subscription("orders"), "servicebusqueues": queue("orders"), // the older names
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := start(t, setup{resources: []string{azure(kind)}, serve: []string{"--dapr-drop-in"}})
			p.run(t, overGRPC, daprtest.Subscription{Topic: "orders", Metadata: map[string]string{
				"requireSessions": "true", "sessionIdleTimeoutInSec": "60", "maxConcurrentSessions": "8",
			}})
			p.publish(t, "orders", "tea", "SessionId", "s-1", "PartitionKey", "s-1")
			d := p.next(t, "tea")
			if d.Metadata["sessionid"] != "s-1" || d.Metadata["deliverycount"] != "1" {
				t.Errorf("got the metadata %v", d.Metadata)
			}
			d.Answer(daprtest.Success)
			p.awaitEmpty(t, source)
			options := p.bus.Must(t, http.MethodGet, "/v1/"+source, "").Body
			for name, want := range map[string]any{
				"maxDeliveryCount": 3.0, "lockDuration": "60s", "defaultMessageTimeToLive": "3600s", "autoDeleteOnIdle": "3600s", "requiresSession": true,
			} {
				if options[name] != want {
					t.Errorf("%s is %v, want %v", name, options[name], want)
				}
			}
		})
	}
}

// A user of pubsub.redis changes the type and nothing else.
func TestDAPR_1_NamesOfRedisAreTaken(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{
		"redisHost": "localhost:6379", "redisPassword": "secret", "enableTLS": "false", "redeliverInterval": "1s", "processingTimeout": "30s",
		"queueDepth": "50", "concurrency": "5", "maxLenApprox": "1000", "redisType": "node", "redisDB": "0",
	}})
	p.run(t, overHTTP, daprtest.Subscription{Topic: "orders"})
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	p.awaitEmpty(t, subscription("orders"))
}
