package httpapi

import (
	"context"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// keyHeader is the header with the request id of a send (IDEM-1) or a transaction (TX-12).
const keyHeader = "Idempotency-Key"

// takeKey copies the request id from the header to a send or a transaction. Other calls are refused with the header,
// because they are not idempotent.
func takeKey(ctx context.Context, request any) error {
	keys := exchangeOf(ctx).keys
	if len(keys) == 0 {
		return nil
	}
	var id **string
	switch r := request.(type) {
	case *sidebusv1.SendRequest:
		id = &r.RequestId
	case *sidebusv1.TransactRequest:
		id = &r.RequestId
	default:
		return wirejson.BadValue(keyHeader, "is accepted by messages:send and :transact only")
	}
	switch {
	case len(keys) > 1:
		return wirejson.BadValue(keyHeader, "appears twice")
	case *id != nil && **id != keys[0]:
		return wirejson.BadValue(keyHeader, "differs from requestId; set one of them, or both to the same value")
	}
	*id = proto.String(keys[0])
	return nil
}
