package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/reply"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/filter"
)

// limitsOnPage has the exported limits of the packages that TestLimitsPageIsComplete reads, as docs/limits.md writes
// them.
var limitsOnPage = map[string]string{
	"MaxIDLength":                   count(semantics.MaxIDLength, "characters each"),
	"MaxPropertyNameLength":         count(semantics.MaxPropertyNameLength, "characters each"),
	"MaxPropertyValueSize":          "one value " + size(semantics.MaxPropertyValueSize),
	"MaxHeaderSize":                 "properties " + size(semantics.MaxHeaderSize),
	"MaxMessageSize":                "at most " + size(semantics.MaxMessageSize),
	"MaxBatchSize":                  size(semantics.MaxBatchSize) + " where single messages",
	"MaxBatchMessages":              count(semantics.MaxBatchMessages, "messages"),
	"MaxHTTPMessageSize":            "a message of " + size(semantics.MaxHTTPMessageSize),
	"MaxDeadLetterText":             count(semantics.MaxDeadLetterText, "characters each"),
	"MaxPathLength":                 count(semantics.MaxPathLength, "characters"),
	"MaxNamespaceLength":            count(semantics.MaxNamespaceLength, "characters"),
	"MaxNameLength":                 count(semantics.MaxNameLength, "characters"),
	"MaxRequestsKept":               count(semantics.MaxRequestsKept, "ids of one queue"),
	"MaxLockDuration":               "5 s to " + period(semantics.MaxLockDuration),
	"MaxSizeMegabytes":              count(semantics.MaxSizeMegabytes, ""),
	"MaxMessageSizeKilobytes":       count(semantics.MaxMessageSizeKilobytes, ""),
	"MaxDuplicateWindow":            "20 s to " + period(semantics.MaxDuplicateWindow),
	"MaxOperations":                 count(semantics.MaxOperations, "operations"),
	"MaxTransactionItems":           count(semantics.MaxTransactionItems, "messages, tokens and numbers"),
	"MaxTransactionBytes":           size(semantics.MaxTransactionBytes) + " of messages, states, and texts and properties",
	"MaxTransactionSums":            count(semantics.MaxTransactionSums, "topics and subscriptions"),
	"MaxEndedBytes":                 size(broker.MaxEndedBytes),
	"MaxDeadLetterTokens":           count(semantics.MaxDeadLetterTokens, "abandoned or dead-lettered messages"),
	"MaxDeadLetterMoveSize":         "of " + size(semantics.MaxDeadLetterMoveSize) + " together",
	"MaxTransactions":               count(broker.MaxTransactions, "transactions"),
	"MaxBufferedBytes":              size(broker.MaxBufferedBytes) + " of operations",
	"MaxDelay":                      "0 s to " + period(semantics.MaxDelay),
	"MaxUserMetadata":               count(semantics.MaxUserMetadata, "characters"),
	"MaxSessionInFlight":            "1 to " + count(semantics.MaxSessionInFlight, ""),
	"MaxAnswerBytes":                size(semantics.MaxAnswerBytes),
	"MaxReceiveMessages":            count(semantics.MaxReceiveMessages, ""),
	"MaxSettleTokens":               count(semantics.MaxSettleTokens, ""),
	"MaxRenewTokens":                count(semantics.MaxRenewTokens, ""),
	"MaxWait":                       "0 s to " + period(semantics.MaxWait),
	"MaxAcceptWait":                 fmt.Sprintf("0 s to %d s", semantics.MaxAcceptWait/time.Second),
	"MaxSubscriptionsPerTopic":      count(semantics.MaxSubscriptionsPerTopic, ""),
	"MaxSQLFiltersPerTopic":         count(semantics.MaxSQLFiltersPerTopic, ""),
	"MaxCorrelationFiltersPerTopic": count(semantics.MaxCorrelationFiltersPerTopic, ""),
	"MaxRuleText":                   count(semantics.MaxRuleText, "characters each"),
	"MaxActionExpressions":          "; " + count(semantics.MaxActionExpressions, ""),
	"MaxSessionStates":              count(semantics.MaxSessionStates, ""),
	"MaxConcurrentSession":          "1 to " + count(semantics.MaxConcurrentSession, ""),
	"MaxIdleSessions":               count(semantics.MaxIdleSessions, ""),
	"MaxPageSize":                   "1 to " + count(semantics.MaxPageSize, ""),
	"MaxCopies":                     count(semantics.MaxCopies, "copies"),
	"MaxCopyBytes":                  size(semantics.MaxCopyBytes) + " together",
	"MaxForwardHops":                "| " + count(semantics.MaxForwardHops, "|"),
	"MaxWaiting":                    count(broker.MaxWaiting, ""),
	"MaxCancelNumbers":              count(broker.MaxCancelNumbers, ""),
	"MaxPurgeMessages":              count(broker.MaxPurgeMessages, ""),
	"MaxResubmitMessages":           count(broker.MaxResubmitMessages, "in one call"),
	"MaxPeekMessages":               "peek returns " + count(broker.MaxPeekMessages, "messages"),
	"MaxDeferredNumbers":            count(broker.MaxDeferredNumbers, ""),
	"MaxRequestTimeout":             "1 ms to " + period(reply.MaxRequestTimeout),
	"MaxCredits":                    count(stream.MaxCredits, ""),
	"MaxPartitions":                 "1 to " + count(semantics.MaxPartitions, ""),
	"MaxReceivers":                  "the first " + count(semantics.MaxReceivers, "sessions that are held"),
	"MaxPrefetch":                   count(stream.MaxPrefetch, "messages"),
	"MaxPrefetchBytes":              size(stream.MaxPrefetchBytes),
	"MaxAutoRenew":                  "0 s to " + period(stream.MaxAutoRenew),
	"MaxSessionIdle":                "0 s to " + period(stream.MaxSessionIdle),
	"MaxSubscriptionIDLen":          count(stream.MaxSubscriptionIDLen, "characters each"),
	"MaxTextLength":                 count(filter.MaxTextLength, "characters each"),
	"MaxDepth":                      "; " + count(filter.MaxDepth, "") + ".",
}

func TestLimitsPageIsComplete(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/limits.md")
	for _, name := range exportedLimits(t, "semantics", "semantics/broker", "semantics/broker/reply", "semantics/broker/stream", "semantics/filter") {
		switch text := limitsOnPage[name]; {
		case name == "MaxJoinSize": // of a value inside a filter: docs/filters.md has it
		case text == "":
			t.Errorf("%s is not in limitsOnPage", name)
		case !strings.Contains(page, text):
			t.Errorf("docs/limits.md lacks %s: %q", name, text)
		}
	}
}

// exportedLimits lists the exported constants that start with Max.
func exportedLimits(t *testing.T, folders ...string) []string {
	t.Helper()
	var names []string
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				if constants, ok := declaration.(*ast.GenDecl); ok && constants.Tok == token.CONST {
					names = append(names, limitsOf(constants)...)
				}
			}
		}
	}
	if len(names) < 50 {
		t.Fatalf("only %d limits were found", len(names))
	}
	return names
}

func limitsOf(constants *ast.GenDecl) []string {
	var names []string
	for _, spec := range constants.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names { //nolint:forcetypeassert // a const has nothing else
			if strings.HasPrefix(name.Name, "Max") {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// count writes 4500 as 4,500, and what it counts.
func count(n int, what string) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return strings.TrimSpace(digits + " " + what)
}

// size writes bytes as KiB or MiB.
func size(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// period writes days, hours or minutes.
func period(d time.Duration) string {
	switch {
	case d > 24*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d m", d/time.Minute)
	}
}
