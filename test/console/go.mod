module github.com/sidebus/sidebus/test/console

go 1.26.7

require github.com/sidebus/sidebus v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/sidebus/sidebus/proto v0.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/sidebus/sidebus => ../..
	github.com/sidebus/sidebus/proto => ../../proto
)
