package dapr

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Every name of the metadata of Azure's components and of Redis' is known; those that find or enter a server mean
// nothing here.
func TestDAPR_1_NamesOfOtherComponents(t *testing.T) {
	t.Parallel()
	azure := `connectionString namespaceName consumerID timeoutInSec handlerTimeoutInSec lockRenewalInSec maxActiveMessages maxConnectionRecoveryInSec
		minConnectionRecoveryInSec disableEntityManagement maxRetriableErrorsPerSec maxDeliveryCount lockDurationInSec defaultMessageTimeToLiveInSec
		ttlInSeconds ttl autoDeleteOnIdleInSec maxConcurrentHandlers publishMaxRetries publishInitialRetryIntervalInMs publishInitialRetryInternalInMs
		azureTenantId azureClientId azureClientSecret azureCertificate azureCertificateFile azureEnvironment spnClientId`
	redis := `redisHost redisPassword redisUsername redisDB redisType failover sentinelMasterName enableTLS consumerID redeliverInterval processingTimeout
		queueDepth concurrency redisMaxRetries redisMinRetryInterval redisMaxRetryInterval dialTimeout readTimeout writeTimeout poolSize poolTimeout
		maxConnAge minIdleConns idleCheckFrequency idleTimeout maxLenApprox streamTTL clientCert clientKey useEntraID`
	for _, name := range strings.Fields(azure + " " + redis) {
		if s, ok := findSetting(strings.ToUpper(name)); ok && s.at&atComponent == 0 || !ok && !isForeign(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"requireSessions", "sessionIdleTimeoutInSec", "maxConcurrentSessions"} {
		if s, ok := findSetting(name); !ok || s.at != anywhere {
			t.Errorf("%s is not known everywhere", name)
		}
	}
}

func TestDAPR_1_DefaultsOfAProfile(t *testing.T) {
	t.Parallel()
	for profile, want := range map[Profile]struct {
		kind semantics.Kind
		time time.Duration
	}{
		Sidebus: {semantics.TopicKind, 5 * time.Minute}, AzureTopics: {semantics.TopicKind, time.Minute}, AzureQueues: {semantics.QueueKind, time.Minute},
	} {
		s := profile.defaults()
		if s.kind != want.kind || s.handlerTimeout != want.time {
			t.Errorf("%d: %+v", profile, s)
		}
		if !s.manages || s.timeout != time.Minute || !s.renews || s.maxActive != 1000 || s.maxHandlers != 0 || s.firstRedelivery != 100*time.Millisecond ||
			s.requireSessions || s.sessionIdle != time.Minute || s.maxSessions != 8 || s.options.MaxDeliveryCount != 10 || s.options.LockDuration != time.Minute {
			t.Errorf("%d: %+v", profile, s)
		}
	}
}

func TestDAPR_1_ValuesOfMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		holds       func(settings) bool
	}{
		{"disableEntityManagement", "TRUE", func(s settings) bool { return !s.manages }},
		{"requireSessions", "y", func(s settings) bool { return s.requireSessions }},
		{"requireSessions", " 0 ", func(s settings) bool { return !s.requireSessions }},
		{"timeoutInSec", "7", func(s settings) bool { return s.timeout == 7*time.Second }},
		{"handlerTimeoutInSec", "1m30s", func(s settings) bool { return s.handlerTimeout == 90*time.Second }},
		{"processingTimeout", "15000", func(s settings) bool { return s.handlerTimeout == 15*time.Second }},
		{"processingTimeout", "0", func(s settings) bool { return s.handlerTimeout == 0 }},
		{"redeliverInterval", "60s", func(s settings) bool { return s.firstRedelivery == time.Minute && s.maxRedelivery == time.Minute }},
		{"maxRetriableErrorsPerSec", "4", func(s settings) bool { return s.firstRedelivery == 250*time.Millisecond }},
		{"queueDepth", "5", func(s settings) bool { return s.maxActive == 5 }},
		{"concurrency", "6", func(s settings) bool { return s.maxHandlers == 6 }},
		{"lockRenewalInSec", "0", func(s settings) bool { return !s.renews }},
		{"streamTTL", "1h", func(s settings) bool { return s.options.DefaultMessageTimeToLive == time.Hour }},
		{"ttl", "30", func(s settings) bool { return s.options.DefaultMessageTimeToLive == 30*time.Second }},
		{"consumerID", " c ", func(s settings) bool { return s.consumer == "c" }},
		{"requiresDuplicateDetection", "true", func(s settings) bool { return s.options.RequiresDuplicateDetection }},
		{"duplicateDetectionHistoryTimeWindowInSec", "30", func(s settings) bool {
			return s.options.DuplicateDetectionHistoryTimeWindow == 30*time.Second
		}},
	} {
		s, unknown, wrong := Sidebus.defaults().apply(map[string]string{c.name: c.value}, atComponent)
		if len(unknown)+len(wrong) > 0 || !c.holds(s) {
			t.Errorf("%s=%q: %v %v %+v", c.name, c.value, unknown, wrong, s)
		}
	}
	s := Sidebus.defaults()
	one, _, _ := s.apply(map[string]string{"maxDeliveryCount": "3"}, atComponent)
	two, _, _ := one.apply(map[string]string{"lockDurationInSec": "30"}, atSubscription)
	three, _, _ := one.apply(map[string]string{"streamTTL": "30s"}, atSubscription)
	if len(s.given) != 0 || !slices.Equal(one.given, []string{"maxDeliveryCount"}) || len(two.given) != 2 || two.given[1] != "lockDuration" || three.given[1] != "defaultMessageTimeToLive" {
		t.Errorf("%v %v %v %v", s.given, one.given, two.given, three.given)
	}
}

// The page that explains the component names all of its metadata.
func TestDAPR_4_PageNamesAllMetadata(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "dapr.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range knownSettings {
		names = append(append(names, s.name), s.aliases...)
	}
	for _, f := range metaFields {
		names = append(append(names, f.name), f.aliases...)
	}
	names = append(append(names, foreignNames...), metaRest, metaMaxBulkBytes, reasonTooLarge, reasonGivenUp)
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/dapr.md does not name `%s`", name)
		}
	}
}
