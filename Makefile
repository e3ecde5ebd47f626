# Everything a developer does here. Needs Go, make and bash; installs the other tools.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables

BIN     := $(CURDIR)/.tmp/bin
VERSION := $(shell git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo unreleased)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# Static, and the same bytes wherever it is built. The version comes from here, not from the build's look at git.
BUILD   := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/sidebus/sidebus/cmd/sidebus/internal/version.linked=$(VERSION) \
  -X github.com/sidebus/sidebus/cmd/sidebus/internal/version.commit=$(COMMIT)"
GO_FILES = git ls-files --cached --others --exclude-standard '*.go' | grep -v '\.pb\.\(gw\.\)\?go$$'

GOLANGCI_VERSION    := v2.15.0
GORELEASER_VERSION  := v2.16.0
GOVULNCHECK_VERSION := v1.9.0

# Fuzz targets, as package:target: parsers and decoders of what clients send.
FUZZ := proxy/wire:FuzzEncoded proxy/grpcapi:FuzzMultiplexRequest semantics/filter:FuzzParse \
  semantics/filter:FuzzParseAction semantics/filter:FuzzEvaluate semantics/filter:FuzzAction \
  semantics/filter:FuzzCorrelation proxy/wirejson:FuzzDecode proxy/compat:FuzzSpelling \
  proxy/internal/brokerproperties:FuzzParse proxy/internal/brokerproperties:FuzzValue \
  proxy/amqp/internal/codec:FuzzDecode proxy/amqp/internal/frame:FuzzNext proxy/amqp/internal/convert:FuzzMessage \
  proxy/amqp/internal/engine:FuzzServe

# The pages of the console, and which of the pictures that its tests make are in docs/console.
WEB := proxy/console/web
CONSOLE_PICTURES := overview-1280-light.png overview-1280-dark.png overview-400-dark.png entity-1280-light.png dead-1280-light.png rules.png messages-1280-light.png compose.png selected.png letters-1280-light.png resubmitting.png sessions-1280-light.png receivers-1280-light.png flow-1280-light.png

# Two modules: the sidecar, and in proto/ the API with the client, which has few dependencies. This pattern is both.
MODULES := github.com/sidebus/sidebus/...

# Tests wait for processes and for time more than they work, those with Dapr most of all.
TEST_PARALLEL := 4
DAPR_PARALLEL := 8

# The tests of redisstore take longest and wait most, so they begin first, and the others run beside them.
LONGEST := ./redisstore

# What the caller may set.
ARGS      ?=
BENCH     ?= .
BENCHTIME ?= 1s
CHECKS    ?= 100000
COSIGN_KEY ?=
CROWDS    ?= 1
CUTS      ?= 1
DURABILITY ?= memory
FUZZTIME  ?= 20s
GAP       ?= 300ms
HISTORY   ?=
HISTORIES ?= 1000
IMAGE     ?= sidebus:$(VERSION)
KILLS     ?= 20
MESSAGES  ?= 20000
OLDER     ?=
PACKAGES  ?= $(LONGEST) $(MODULES)
RACE      ?= $(LONGEST) ./cmd/... ./proxy/... ./redisstore/... ./semantics/... ./test/history github.com/sidebus/sidebus/proto/client
RUN       ?= .
S         ?=
SEED      ?= 1
STEPS     ?= 200

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
	  /^## / { printf "\n%s\n", substr($$0, 4) } \
	  /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Use

.PHONY: build
build: ## Build bin/sidebus, one static binary
	$(BUILD) -o bin/sidebus ./cmd/sidebus

.PHONY: run
run: build ## Serve with a private Redis, which is installed if it is missing; ARGS="--log-level debug" adds flags
	@store=embedded; \
	if ! test/install.sh redis; then \
	  echo "make run: no redis-server could be installed, so messages are kept in memory only and do not survive" >&2; \
	  store=memory; \
	fi; \
	exec bin/sidebus serve --store "$$store" $(ARGS)

# The binary is compiled outside of the images, so that they need no base with Go; another processor's with GOARCH=arm64.
.PHONY: image-files
image-files:
	rm -rf .tmp/image
	GOOS=linux $(BUILD) -o .tmp/image/sidebus ./cmd/sidebus
	deploy/image-files.sh .tmp/image

.PHONY: image
image: image-files ## Build the container images with Docker or buildah, the sidecar as IMAGE=name:tag and the standalone one as name:tag-standalone; GOARCH=arm64
	VERSION=$(VERSION) COMMIT=$(COMMIT) deploy/image.sh "$(IMAGE)" .tmp/image

.PHONY: log-crunch
log-crunch: build ## Run the log-crunch example: 100,000 lines, four consumers, one killed
	examples/log-crunch/run.sh $(ARGS)

.PHONY: order-workflow
order-workflow: build ## Run the order-workflow example: steps in order and once, although workers are killed
	examples/order-workflow/run.sh

.PHONY: transact
transact: build ## Run the transact example: a message, a state and a reply in one step, although workers crash
	examples/transact/run.sh

.PHONY: partitions
partitions: build ## Run the partitions example: orders of many customers over the partitions of one queue, in order
	examples/partitions/run.sh

.PHONY: request-reply
request-reply: build ## Run the request-reply example: many requesters, each gets its own replies
	examples/request-reply/run.sh

.PHONY: demultiplex
demultiplex: build ## Run the demultiplex example: over 1,000 interleaved sessions of a real log, four workers
	examples/demultiplex/run.sh $(ARGS)

.PHONY: news
news: build python ## Run the news example: a topic, who gets what by rules, and why one did not
	examples/news/run.sh

.PHONY: reply-queues
reply-queues: build python ## Run the reply-queues example: a reply queue for each process, one of which is killed
	examples/reply-queues/run.sh

.PHONY: load-levelling
load-levelling: build ## Run the load-levelling example: bursts, deadlines, and a watch over the dead letters
	examples/load-levelling/run.sh

.PHONY: push
push: build ## Run the push example: the sidecar calls the app, whose answer settles the message
	examples/push/run.sh

.PHONY: curl-compat
curl-compat: build ## Run the curl-compat example: the REST API of Service Bus, with curl
	examples/curl-compat/run.sh

.PHONY: access
access: build ## Run the access example: who may do what, by a token, a client certificate and the user at a socket
	examples/access/run.sh

.PHONY: entities
entities: build ## Run the entities example: queues, topics and rules from a file, and from a file of the Service Bus emulator
	examples/entities/run.sh

.PHONY: dapr
dapr: build ## Run the dapr example: an order app on Dapr; ARGS=azure or ARGS=redis uses their Component file
	examples/dapr/run.sh $(ARGS)

## Check

.PHONY: test
test: redis python node java ## Run all tests against a real Redis, which is installed if it is missing; PACKAGES=./semantics/...
	@mkdir -p .tmp
	go test -json -timeout 20m -parallel $(TEST_PARALLEL) $(PACKAGES) | go run ./test/rules -show .tmp/tests.json

# Rules of a store that cannot keep the level replica.
NO_REPLICAS = 'TestStore/(DUR_3_LevelThat|PART_1_UpdateReaches)'

# Each line is a kind of server. The last are Debian 13's Redis and Valkey; the first run fetches them, as root.
.PHONY: test-all
test-all: redis ## Run the rules, the models and the histories on Sentinels, a cluster, at the levels disk and replica, with encryption, on Redis 8.0 and Valkey 8.1
	SIDEBUS_TEST_REDIS=cluster go test -count=1 -timeout 20m ./redisstore -run '(Model|TopicModelOverPartitions|Ways)$$'
	SIDEBUS_TEST_REDIS=cluster go test -count=1 -timeout 20m ./test/history -run 'SessionHistories$$|SESS_30'
	SIDEBUS_TEST_REDIS=sentinels go test -count=1 -timeout 30m ./redisstore -run 'Model($$|O(ver|f)Partitions$$)|Ways$$|TestStore$$' -skip $(NO_REPLICAS)
	SIDEBUS_TEST_REDIS=sentinels go test -count=1 -timeout 20m ./test/history -run 'SessionHistories$$|SESS_30'
	for level in disk replica; do \
	  SIDEBUS_TEST_DURABILITY="$$level" go test -count=1 -timeout 20m ./redisstore -run 'TestStore$$' -skip $(NO_REPLICAS); \
	done
	SIDEBUS_TEST_SEALED=1 go test -count=1 -timeout 20m ./redisstore -run 'TestStore$$|Model($$|O(ver|f)Partitions$$)'
	for server in redis valkey; do \
	  program="$$(test/servers.sh "$$server")"; \
	  SIDEBUS_TEST_SERVER="$$program" go test -count=1 -timeout 20m ./redisstore -run 'TestStore$$|Model($$|O(ver|f)Partitions$$)|TestCluster|Sentinels|TestERR_[67]|DUR_'; \
	  SIDEBUS_TEST_SERVER="$$program" go test -count=1 -timeout 20m ./test/history; \
	done

.PHONY: test-race
test-race: redis python ## Run the tests of concurrent code under the race detector (needs a C compiler); RACE=./proxy/...
	CGO_ENABLED=1 go test -race -short -timeout 15m $(RACE)

.PHONY: test-dapr
test-dapr: redis ## Run the end-to-end tests with Dapr's runtime; the first run builds it, which takes minutes
	cd test/dapr && go test -p 1 -parallel $(DAPR_PARALLEL) ./...

.PHONY: test-dapr-all
test-dapr-all: test-dapr ## The same, and with an older runtime, which passes all its messages to the app at once
	cd test/dapr && SIDEBUS_TEST_DAPRD=1.14 go test -parallel $(DAPR_PARALLEL) .

.PHONY: rules
rules: test ## Run all tests and write docs/rules.md: which rule is proved by which tests
	go run ./test/rules < .tmp/tests.json

.PHONY: rules-check
rules-check: test ## Run all tests and fail when a rule of docs/rules.md has no passing test
	go run ./test/rules -check < .tmp/tests.json

.PHONY: soak
soak: redis ## Run the model tests for hours, CHECKS=100000 runs of STEPS=200 steps, then HISTORIES=1000 of sessions, of losses, and half as many with processes, from SEED=1 on
	go test ./redisstore -run 'Model($$|O(ver|f)Partitions$$)' -count=1 -timeout 0 -rapid.checks $(CHECKS) -rapid.steps $(STEPS) -v
	go test ./test/history -run 'SessionHistories$$' -count=1 -timeout 0 -seed $(SEED) -histories $(HISTORIES) -faulty 5s -v
	go test ./test/history -run '(LossHistories|OneEndOfAForwardForgets)$$' -count=1 -timeout 0 -seed $(SEED) -histories $(HISTORIES) -v
	go test ./test/history -run 'LossHistoriesOfProcesses$$' -count=1 -timeout 0 -seed $(SEED) -histories $(HISTORIES) -v

.PHONY: faults
faults: redis ## Break sidecars, their lines, Redis, Sentinels and a cluster under load, KILLS=20 of a Redis and twice as many of sidecars in MESSAGES=20000, and look at every message; CROWDS=4 lets four times as many clients work, OLDER=v1.2.3 mixes two versions, DURABILITY=memory,replica makes a run at each level, RUN=Sentinels chooses
	go test ./test/faults -run '$(RUN)' -count=1 -timeout 0 -v -seed $(SEED) -gap $(GAP) \
	  -messages $(MESSAGES) -redis-kills $(KILLS) -sidecar-kills $$(( 2 * $(KILLS) )) -cuts $(KILLS) -crowds $(CROWDS) -durability $(DURABILITY) -older '$(OLDER)'

.PHONY: powerloss
powerloss: redis ## Cut the power of Redis CUTS=1 times at each setting, kill it as often, and count what is lost of what was acknowledged. Needs Linux with /dev/fuse, and root or the package fuse3
	@test -c /dev/fuse || { echo "make powerloss: no /dev/fuse; it needs Linux with the kernel module fuse (modprobe fuse), and root or the package fuse3" >&2; exit 1; }
	cd test/powerloss && go test -count=1 -timeout 0 -v . -cuts $(CUTS) -seed $(SEED)

.PHONY: fuzz
fuzz: ## Fuzz parsers and decoders for FUZZTIME=20s each; a failing input is written to testdata/fuzz
	@for target in $(FUZZ); do \
	  echo "== $$target"; \
	  go test "./$${target%:*}" -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME); \
	done

.PHONY: vuln
vuln: ## Report known vulnerabilities in what is linked; needs access to vuln.go.dev
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) $(MODULES)

.PHONY: cover
cover: redis python node java ## Run all tests and show how much of the code they reach
	@mkdir -p .tmp
	go test -coverpkg=$(MODULES) -coverprofile=.tmp/cover.out $(PACKAGES)
	go tool cover -func=.tmp/cover.out | tail -n 1

.PHONY: bench
bench: redis ## Run the benchmarks; BENCH=Send BENCHTIME=1x
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 1h $(PACKAGES)

.PHONY: bench-limits
bench-limits: redis ## Run every script at its limits; fails when one takes longer than docs/limits.md says. Needs an idle machine
	go test -run '^$$' -bench 'Limits$$' -benchtime 1x -timeout 10m ./redisstore

# Benchmarks that take turns. HISTORY=docs/benchmarks/history keeps the results there; the last -only counts.
COMPARE = cd test/bench && go run . $(if $(HISTORY),-history '$(abspath $(HISTORY))')

.PHONY: bench-peers
bench-peers: build redis rabbitmq bullmq ## Compare with NATS, RabbitMQ, asynq, BullMQ, Dapr's pubsub.redis or binaries, in one run; ARGS="-messages 10000 -rounds 3"
	$(COMPARE) -only sidebus,peers,floors,dapr $(ARGS)

.PHONY: test-bench
test-bench: ## Run the tests of test/bench, a module of its own, without a benchmark
	cd test/bench && go test ./...

.PHONY: test-monitoring
test-monitoring: ## Check the alert rules and the dashboard of deploy/monitoring with the packages of Prometheus
	cd test/monitoring && go test ./...

.PHONY: test-helm
test-helm: ## Check the Helm chart, and the manifests that are rendered from it, with the packages of Helm, Kustomize and Kubernetes
	cd test/helm && go test ./...

.PHONY: test-image
test-image: redis buildah image-files ## Build both images with buildah and start them: a message goes through each. Needs Linux and root
	VERSION=$(VERSION) COMMIT=$(COMMIT) test/images.sh .tmp/image

.PHONY: test-otel
test-otel: redis ## Trace messages over every wire to a collector of OpenTelemetry, which the test builds
	cd test/otel && go test ./...

AZURE_PYTHON := .tmp/azure-python/.installed
AZURE_JAVA := .tmp/azure-java/.installed
.PHONY: test-azure
test-azure: redis node npm java test/azure/js/node_modules/.package-lock.json $(AZURE_PYTHON) $(AZURE_JAVA) ## Run the official SDKs of Azure Service Bus for Go, JavaScript, Python and Java, and Qpid Proton, unchanged, against the sidecar
	cd test/azure && go test ./...

.PHONY: test-keda
test-keda: redis ## Run the tests of the scaler with KEDA's own client; the first run builds what KEDA links, which takes minutes
	cd test/keda && go mod tidy -diff && go vet ./... && go test -vet=off ./...

.PHONY: test-console
test-console: redis node npm chromium $(WEB)/node_modules/.package-lock.json ## Drive the console in Chromium, against a sidecar and a Redis with traffic; pictures are in .tmp/console
	cd test/console && go mod tidy -diff && go vet ./... && go test -vet=off -count=1 -timeout 30m -parallel 3 ./...

.PHONY: console-pictures
console-pictures: test-console ## Take over the pictures of docs/console.md from the tests
	cd .tmp/console && cp $(CONSOLE_PICTURES) $(CURDIR)/docs/console/

.PHONY: bench-dapr
bench-dapr: build redis ## Compare with Dapr's pubsub.redis in one run; ARGS="-messages 10000 -rounds 3"
	$(COMPARE) -only dapr $(ARGS)

.PHONY: bench-targets
bench-targets: build redis ## Measure what has no peer: store, fan-out, latency, memory, idle cost, start; ARGS="-only latency"
	$(COMPARE) -only targets $(ARGS)

.PHONY: bench-cluster
bench-cluster: build redis ## Measure a queue with 1 to 6 partitions by 1 to 4 sidecars on a cluster of three; ARGS="-messages 10000 -rounds 3"
	$(COMPARE) -only cluster $(ARGS)

.PHONY: bench-page
bench-page: ## Write the tables and plots of docs/benchmarks from its history
	go run ./test/figures/page

.PHONY: lint
lint: $(BIN)/.golangci-lint-$(GOLANGCI_VERSION) ## Check style and layering
	go vet $(MODULES)
	$(BIN)/golangci-lint run ./...
	cd proto && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/bench && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/powerloss && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/monitoring && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/helm && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/otel && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...
	cd test/azure && go mod tidy -diff && go vet ./... && $(BIN)/golangci-lint run ./...

# Packages that link all of Dapr would take the linter minutes.
.PHONY: lint-dapr
lint-dapr: $(BIN)/.golangci-lint-$(GOLANGCI_VERSION) ## Check the style of what is built with Dapr, in modules of its own
	cd test/dapr && go vet ./... && $(BIN)/golangci-lint run . ./bench ./daprtest
	cd examples/dapr && go vet ./... && $(BIN)/golangci-lint run ./...

.PHONY: fmt
fmt: $(BIN)/.golangci-lint-$(GOLANGCI_VERSION) ## Format the code
	$(GO_FILES) | xargs $(BIN)/golangci-lint fmt

.PHONY: ci
ci: ## Run everything that a change must pass, as continuous integration does
	bash .ci/run

## Release

.PHONY: release
release: $(BIN)/.goreleaser-$(GORELEASER_VERSION) ## Build archives, deb, rpm, brew formula, SBOM and checksums in .tmp/dist; publishes nothing
	$(BIN)/goreleaser release --config deploy/goreleaser.yaml --snapshot --clean $(if $(COSIGN_KEY),,--skip=sign) $(ARGS)

.PHONY: manifests
manifests: ## Render the manifests for kubectl from the Helm chart
	cd test/helm && go test -run TestManifestsAreCurrent . -update

## Look inside

.PHONY: proto
proto: ## Generate the code and the OpenAPI document of proto/
	bash proto/generate.sh

.PHONY: proto-check
proto-check: ## Fail when generated code is stale or the .proto files break a rule
	bash proto/check.sh

.PHONY: proto-baseline
proto-baseline: proto ## Write proto/baseline.binpb, the API that proto-check compares with until a version is tagged
	cd proto && ../.tmp/bin/buf build --exclude-source-info --output baseline.binpb

.PHONY: console
console: node npm $(WEB)/node_modules/.package-lock.json ## Build the pages of the console, which the binary embeds
	cd $(WEB) && npm run --silent check && npm run --silent build

.PHONY: console-check
console-check: node npm $(WEB)/node_modules/.package-lock.json ## Fail when the pages of the console are stale or have a wrong type
	cd $(WEB) && npm run --silent check && npm run --silent build -- $(CURDIR)/.tmp/console-assets
	diff -r .tmp/console-assets proxy/console/assets

.PHONY: lua-index
lua-index: ## Write the index of the functions that the Lua scripts share
	go test ./lua -run TestIndexIsCurrent -update

.PHONY: lua-flat
lua-flat: ## Print a script as Redis gets it, with line numbers; S=receive
	@go run ./test/luaflat "$(S)"

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .tmp

# What tests and examples need: found or installed, or the build stops here with the reason.
.PHONY: redis python venv node java maven npm rabbitmq buildah chromium
redis python venv node java maven npm rabbitmq buildah chromium:
	@test/install.sh $@

$(WEB)/node_modules/.package-lock.json test/azure/js/node_modules/.package-lock.json: %/node_modules/.package-lock.json: %/package-lock.json | node npm
	cd $* && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(AZURE_PYTHON): test/azure/python/requirements.txt | venv
	python3 -m venv --clear $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check \
	  --only-binary :all: --no-binary python-qpid-proton -r $<
	@touch $@

$(AZURE_JAVA): test/azure/java/pom.xml | java maven
	rm -rf $(@D)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

BULLMQ := test/bench/bullmq
.PHONY: bullmq
bullmq: $(BULLMQ)/node_modules/.package-lock.json
$(BULLMQ)/node_modules/.package-lock.json: $(BULLMQ)/package-lock.json | node npm
	cd $(BULLMQ) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Tools are built once for each pinned version; the stamp carries the version.
$(BIN)/.golangci-lint-$(GOLANGCI_VERSION):
	@mkdir -p $(BIN) && rm -f $(BIN)/.golangci-lint-*
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@

$(BIN)/.goreleaser-$(GORELEASER_VERSION):
	@mkdir -p $(BIN) && rm -f $(BIN)/.goreleaser-*
	GOBIN=$(BIN) go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	@touch $@
