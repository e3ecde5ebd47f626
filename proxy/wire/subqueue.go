package wire

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// SubQueueFrom translates a sub-queue. It reports false for one that is not known.
func SubQueueFrom(kind sidebusv1.SubQueue_Kind) (_ semantics.SubQueue, isKnown bool) {
	switch kind {
	case sidebusv1.SubQueue_NONE:
		return semantics.MainQueue, true
	case sidebusv1.SubQueue_DEAD_LETTER:
		return semantics.DeadLetterQueue, true
	case sidebusv1.SubQueue_TRANSFER_DEAD_LETTER:
		return semantics.TransferDeadLetterQueue, true
	default:
		return semantics.MainQueue, false
	}
}
